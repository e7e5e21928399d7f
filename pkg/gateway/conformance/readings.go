// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// readings are the checks of what an adapter says of itself.
func readings() []Check {
	return []Check{
		{Number: "H1", Required: "GET /v1/health answers 200 and the status ok.", Advice: `Answer {"status":"ok"} as application/json, and nothing more.`, run: health},
		{Number: "H2", Required: "GET /v1/capabilities has the name of the adapter and what it can do, idempotentDelivery among it, and no unknown member.", Advice: "Compare the answer with the example in docs/gateway-v1.md.", run: capabilities},
		{Number: "H3", Required: "The adapter speaks " + protocol.Version + ".", Advice: "Name it in protocolVersion, or have 1 in the range of protocolVersions.", needs: []string{"H2"}, run: version},
	}
}

func health(ctx context.Context, p *probe) error {
	var h protocol.Health
	if err := p.read(ctx, protocol.PathHealth, &h); err != nil {
		return err
	}
	if h.Status != "ok" {
		return fmt.Errorf("the status is %q", h.Status)
	}
	return nil
}

func capabilities(ctx context.Context, p *probe) error {
	if err := p.read(ctx, protocol.PathCapabilities, &p.caps); err != nil {
		return err
	}
	if err := p.caps.Check(); err != nil {
		return fmt.Errorf("the capabilities are not right: %w", err)
	}
	return nil
}

func version(_ context.Context, p *probe) error {
	if _, err := p.caps.Agree(); err != nil {
		return fmt.Errorf("there is no common version: %w", err)
	}
	return nil
}

// refusals are the checks of what an adapter must not accept.
func refusals() []Check {
	return []Check{
		{Number: "A1", Required: "Requests without a token are refused with 401, on every route.", Advice: "Check the token before anything else, also for health and capabilities.", run: func(ctx context.Context, p *probe) error { return strangers(ctx, p, none) }},
		{Number: "A2", Required: "Requests with another token are refused with 401, on every route.", Advice: "Compare the whole token, in constant time.", run: otherTokens},
		{Number: "A3", Required: "A delivery that was refused with 401 is accepted with the right token afterwards.", Advice: "Remember nothing of a request that was refused.", needs: []string{"A1", "A2"}, run: rightToken},
		{Number: "B1", Required: "A delivery with an unknown member is refused.", Advice: "Decode strictly and answer 400.", needs: []string{"A3"}, run: unknownMembers},
		{Number: "B2", Required: "A body that is not one JSON object, or that is followed by something, is refused.", Advice: "Read the body to its end after decoding, and answer 400.", needs: []string{"A3"}, run: badJSON},
		{Number: "B3", Required: "A body of another media type, or a compressed one, is refused.", Advice: "Answer 415.", needs: []string{"A3"}, run: mediaTypes},
		{Number: "B4", Required: "A text above 65,536 bytes is refused.", Advice: "Count bytes of UTF-8, not characters, and answer 400 or 413.", needs: []string{"A3"}, run: longText},
		{Number: "B5", Required: "A delivery without an id, of an unknown kind or of another version is refused.", Advice: "Check all members that are always there, and answer 400.", needs: []string{"A3"}, run: wrongMembers},
	}
}

// strangers asks all routes with an authorization that is not right.
func strangers(ctx context.Context, p *probe, authorization string) error {
	d, marker := p.delivery("this must not be posted")
	delivery, err := post(d)
	if err != nil {
		return err
	}
	for _, r := range []request{{method: http.MethodGet, path: protocol.PathHealth}, {method: http.MethodGet, path: protocol.PathCapabilities}, delivery} {
		r.authorization = authorization
		res, err := p.ask(ctx, r)
		if err != nil {
			return err
		}
		if res.code != http.StatusUnauthorized {
			return fmt.Errorf("%s %s was answered with %d", r.method, r.path, res.code)
		}
	}
	return p.posted(ctx, marker, 0, 0)
}

func otherTokens(ctx context.Context, p *probe) error {
	for _, wrong := range []string{"Bearer " + suffix(), "Bearer " + p.o.Token + "x", "Bearer " + p.o.Token[:len(p.o.Token)/2], "Bearer ", "Basic " + p.o.Token} {
		if err := strangers(ctx, p, wrong); err != nil {
			return err
		}
	}
	return nil
}

func rightToken(ctx context.Context, p *probe) error {
	d, marker := p.delivery("a delivery that was refused before")
	r, err := post(d)
	if err != nil {
		return err
	}
	r.authorization = "Bearer " + suffix()
	if _, err := p.ask(ctx, r); err != nil {
		return err
	}
	if _, err := p.delivered(ctx, d); err != nil {
		return err
	}
	return p.posted(ctx, marker, 1, 1)
}

// changed returns the request of a delivery whose JSON was changed.
func changed(d protocol.Delivery, change func(m map[string]any)) (request, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return request{}, fmt.Errorf("encode a delivery: %w", err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return request{}, fmt.Errorf("decode a delivery: %w", err)
	}
	change(m)
	if raw, err = json.Marshal(m); err != nil {
		return request{}, fmt.Errorf("encode a delivery: %w", err)
	}
	return body(raw), nil
}

// body returns the request that posts some bytes as a delivery.
func body(raw []byte) request {
	return request{method: http.MethodPost, path: protocol.PathDeliveries, mediaType: "application/json", body: bytes.NewReader(raw)}
}

// changes sends deliveries that are each wrong in one way. None may be posted.
func changes(ctx context.Context, p *probe, all []change) error {
	for _, c := range all {
		d, marker := p.delivery("this must not be posted")
		r, err := changed(d, c.apply)
		if err != nil {
			return err
		}
		if err := p.refused(ctx, c.what, r); err != nil {
			return err
		}
		if err := p.posted(ctx, marker, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// change makes a delivery wrong.
type change struct {
	what  string
	apply func(m map[string]any)
}

func unknownMembers(ctx context.Context, p *probe) error {
	return changes(ctx, p, []change{
		{"a delivery with the member conformanceUnknown", func(m map[string]any) { m["conformanceUnknown"] = true }},
		{"a delivery with the member taskRef.conformanceUnknown", func(m map[string]any) {
			m["taskRef"] = map[string]any{"namespace": "conformance", "name": "gw-x", "conformanceUnknown": 1}
		}},
	})
}

func badJSON(ctx context.Context, p *probe) error {
	d, marker := p.delivery("this must not be posted")
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode a delivery: %w", err)
	}
	for _, b := range []struct{ what, body string }{
		{"an object that is followed by another one", string(raw) + "{}"},
		{"an object that is followed by text", string(raw) + " x"},
		{"an object that is cut off", string(raw[:len(raw)-1])},
		{"a list", "[" + string(raw) + "]"},
		{"null", "null"},
		{"an empty body", ""},
	} {
		if err := p.refused(ctx, b.what, body([]byte(b.body))); err != nil {
			return err
		}
	}
	return p.posted(ctx, marker, 0, 0)
}

func mediaTypes(ctx context.Context, p *probe) error {
	d, marker := p.delivery("this must not be posted")
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode a delivery: %w", err)
	}
	for _, mediaType := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		r := body(raw)
		r.mediaType = mediaType
		if err := p.refused(ctx, fmt.Sprintf("a body of the media type %q", mediaType), r); err != nil {
			return err
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(raw); err != nil {
		return fmt.Errorf("compress a delivery: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("compress a delivery: %w", err)
	}
	r := body(packed.Bytes())
	r.encoding = "gzip"
	if err := p.refused(ctx, "a compressed body", r); err != nil {
		return err
	}
	return p.posted(ctx, marker, 0, 0)
}

func longText(ctx context.Context, p *probe) error {
	for _, char := range []string{"x", wide} {
		d, marker := p.delivery("this must not be posted ")
		fill := protocol.MaxText - len(d.Text)
		d.Text += strings.Repeat(char, fill/len(char)) + strings.Repeat("x", fill%len(char)) + "x" // one byte more
		r, err := post(d)
		if err != nil {
			return err
		}
		if err := p.refused(ctx, fmt.Sprintf("a text of %d bytes", len(d.Text)), r); err != nil {
			return err
		}
		if err := p.posted(ctx, marker, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

func wrongMembers(ctx context.Context, p *probe) error {
	var all []change
	for _, member := range []string{"idempotencyId", "deliveryId", "kind", "accountId", "contextId", "text", "protocolVersion"} {
		all = append(all, change{"a delivery without " + member, func(m map[string]any) { delete(m, member) }})
	}
	all = append(all,
		change{"a delivery with an empty idempotencyId", func(m map[string]any) { m["idempotencyId"] = "" }},
		change{"a delivery of the kind conformance", func(m map[string]any) { m["kind"] = "conformance" }},
		change{"a delivery of platform.gateway.v999", func(m map[string]any) { m["protocolVersion"] = "platform.gateway.v999" }},
	)
	return changes(ctx, p, all)
}
