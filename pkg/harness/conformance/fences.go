// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/harness"
)

// fences are the checks of what protects a runtime from those who are late.
func fences() []Check {
	return []Check{
		{Number: "F1", Required: "Changes that mean another instance are refused.", Advice: "Compare X-Platform-Harness-Instance with the name of this process, and say its own in the error.", needs: []string{"R4", "A3"}, run: otherInstance},
		{Number: "F2", Required: "Changes whose digest is not that of the request are refused.", Advice: "Compute the digest of what was received, and compare.", needs: []string{"A3"}, run: otherDigest},
		{Number: "F3", Required: "A repeated operation gets the answer of the first time.", Advice: "Keep digest and answer of each operation with a success, and look there before anything is done.", needs: []string{"A3"}, run: repeated},
		{Number: "F4", Required: "An operation that is repeated with another request is refused.", Advice: "Compare the digest with the one that was kept: OperationConflict.", needs: []string{"F3"}, run: changed},
		{Number: "F5", Required: "After a higher epoch, changes of a lower one are refused.", Advice: "Keep the highest epoch of all requests that passed the earlier checks, and say it in the error.", needs: []string{"A3"}, run: stale},
		{Number: "F6", Required: "After a higher epoch, repetitions of a lower one are refused, too.", Advice: "Check the epoch before looking for the operation.", needs: []string{"F5", "F3"}, run: staleRepeated},
		{Number: "F7", Required: "The epoch of a request that is not proven is not kept.", Advice: "Keep the epoch after the capability was checked, not before.", needs: []string{"A4"}, run: unprovenEpoch},
		{Number: "F8", Required: "Changes of a session that mean another generation are refused.", Advice: "Compare X-Platform-Harness-Generation with that of the session, lower and higher ones, and say its own in the error.", needs: []string{"A3"}, run: otherGeneration},
		{Number: "F10", Required: "White space, the order of members and escapes make no difference to the digest.", Advice: "Digest the canonical form (RFC 8785) of the body, not its bytes.", needs: []string{"F2", "F3"}, run: otherwiseWritten},
	}
}

func otherInstance(ctx context.Context, p *probe) error {
	r := undrain()
	r.fence = func(f *harness.Fence) { f.Instance = "another-" + suffix() }
	_, err := p.send(ctx, r)
	if err := refused("PUT /v2/drain for another instance", err, harness.WrongInstance); err != nil {
		return err
	}
	if e, _ := errors.AsType[*harness.Error](err); e.Instance != p.instance {
		return found("the error says that the instance is %q; it is %q", e.Instance, p.instance)
	}
	return nil
}

func otherDigest(ctx context.Context, p *probe) error {
	r := undrain()
	r.fence = func(f *harness.Fence) {
		f.Digest, _ = harness.Digest(r.method, r.path, 0, f.Operation, []byte(`{"drain":true}`)) // the body is JSON
	}
	_, err := p.send(ctx, r)
	return refused("PUT /v2/drain with the digest of another body", err, harness.DigestMismatch)
}

// make returns the request that creates a session.
func (s *session) make(operation, body string) raw {
	return raw{method: http.MethodPut, path: harness.PathSession(s.id), generation: s.generation, operation: operation, body: body}
}

func repeated(ctx context.Context, p *probe) error {
	r := p.unmade(1).make(harness.NewOperation(), "{}")
	first, err := p.send(ctx, r)
	if err != nil {
		return did("creating a session", err)
	}
	again, err := p.send(ctx, r)
	if err != nil {
		return did("the same request once more", err)
	}
	if !same(first, again) {
		return found("the first answer was %s, the second %s", first, again)
	}
	return nil
}

// same reports whether two answers are alike.
func same(a, b []byte) bool { return bytes.Equal(a, b) || canonical.Equal(a, b) }

func changed(ctx context.Context, p *probe) error {
	s, operation := p.unmade(1), harness.NewOperation()
	if _, err := p.send(ctx, s.make(operation, "{}")); err != nil {
		return did("creating a session", err)
	}
	_, err := p.send(ctx, s.make(operation, `{"workspace":{"intent":"read"}}`))
	return refused("the same operation with another body", err, harness.OperationConflict)
}

func stale(ctx context.Context, p *probe) error {
	before := p.epoch
	p.mean(p.epoch + 1)
	if err := p.takes(ctx, "PUT /v2/drain of a higher epoch", undrain()); err != nil {
		return err
	}
	r := undrain()
	r.fence = func(f *harness.Fence) { f.Epoch = before }
	_, err := p.send(ctx, r)
	if err := refused("PUT /v2/drain of the lower epoch", err, harness.StaleEpoch); err != nil {
		return err
	}
	if e, _ := errors.AsType[*harness.Error](err); e.ControllerEpoch != p.epoch {
		return found("the error says that the epoch is %d; it is %d", e.ControllerEpoch, p.epoch)
	}
	return nil
}

func staleRepeated(ctx context.Context, p *probe) error {
	r := p.unmade(1).make(harness.NewOperation(), "{}")
	if _, err := p.send(ctx, r); err != nil {
		return did("creating a session", err)
	}
	before := p.epoch
	p.mean(p.epoch + 1)
	if _, err := p.send(ctx, r); err != nil {
		return did("the same operation of a higher epoch", err)
	}
	r.fence = func(f *harness.Fence) { f.Epoch = before }
	_, err := p.send(ctx, r)
	return refused("the same operation of the lower epoch", err, harness.StaleEpoch)
}

func unprovenEpoch(ctx context.Context, p *probe) error {
	r := undrain()
	r.key = bytes.Repeat([]byte("x"), harness.MinSecret)
	r.fence = func(f *harness.Fence) { f.Epoch = p.epoch + 1000 }
	_, err := p.send(ctx, r)
	if err := refused("PUT /v2/drain with a capability of another key", err, harness.CapabilityInvalid); err != nil {
		return err
	}
	st, err := p.client.Status(ctx)
	if err != nil {
		return did("GET /v2/status", err)
	}
	if st.ControllerEpoch > p.epoch {
		was := p.epoch
		p.mean(st.ControllerEpoch)
		return found("the status says the epoch %d; the highest that was proven is %d", st.ControllerEpoch, was)
	}
	return p.takes(ctx, "PUT /v2/drain of the epoch that was proven", undrain())
}

func otherGeneration(ctx context.Context, p *probe) error {
	s := p.unmade(5)
	if _, err := s.Create(ctx, harness.NewOperation(), harness.SessionSpec{}); err != nil {
		return did("creating a session of generation 5", err)
	}
	for _, generation := range []uint64{4, 6} {
		_, err := p.again(s.id, generation).Finalize(ctx, harness.NewOperation(), harness.Finalization{Delta: "d", Outcome: "NoChange"})
		if err := refused("a change of another generation", err, harness.WrongGeneration); err != nil {
			return err
		}
		if e, _ := errors.AsType[*harness.Error](err); e.Generation != 5 {
			return found("the error says that the generation is %d; it is 5", e.Generation)
		}
	}
	return nil
}

func usedGeneration(ctx context.Context, p *probe) error {
	s := p.unmade(5)
	if _, err := s.Create(ctx, harness.NewOperation(), harness.SessionSpec{}); err != nil {
		return did("creating a session of generation 5", err)
	}
	if err := s.Delete(ctx, harness.NewOperation()); err != nil {
		return did("deleting it", err)
	}
	for _, generation := range []uint64{5, 4} {
		_, err := p.again(s.id, generation).Create(ctx, harness.NewOperation(), harness.SessionSpec{})
		if err := refused("creating it again with a generation that is not higher", err, harness.WrongGeneration); err != nil {
			return err
		}
	}
	later := p.again(s.id, 6)
	p.made = append(p.made, later)
	_, err := later.Create(ctx, harness.NewOperation(), harness.SessionSpec{})
	return did("creating it again with generation 6", err)
}

func otherwiseWritten(ctx context.Context, p *probe) error {
	r := p.unmade(1).make(harness.NewOperation(), "{ \"workspace\" :\n\t{ \"intent\": \"re\\u0061d\" } }")
	first, err := p.send(ctx, r)
	if err != nil {
		return did("creating a session with white space and escapes in the body", err)
	}
	r.body = `{"workspace":{"intent":"read"}}`
	again, err := p.send(ctx, r)
	if err != nil {
		return did("the same without them", err)
	}
	if !same(first, again) {
		return found("the first answer was %s, the second %s", first, again)
	}
	return nil
}

// requests are the checks of what is not a request of the protocol.
func requests() []Check {
	return []Check{
		{Number: "B1", Required: "Requests with an unknown member are refused.", Advice: "Decode strictly: what is not understood may be a restriction.", needs: []string{"A3"}, run: unknownMember},
		{Number: "B2", Required: "Requests without one of the headers, or with a malformed one, are refused.", Advice: "Each header must be there once. Numbers have neither signs nor leading zeros.", needs: []string{"A3"}, run: malformedHeaders},
		{Number: "B3", Required: "A body above maxRequestBytes is refused.", Advice: "Stop reading there and answer 413 TooLarge.", needs: []string{"A3"}, run: tooLong},
		{Number: "B4", Required: "A body that is not JSON, or has a key twice, is refused.", Advice: "Most decoders take the last of two keys: look for a strict mode.", needs: []string{"A3"}, run: notJSON},
	}
}

func unknownMember(ctx context.Context, p *probe) error {
	r := undrain()
	r.body = `{"drain":false,"soon":true}`
	_, err := p.send(ctx, r)
	if err := refused("PUT /v2/drain with the member soon", err, harness.BadRequest, harness.NotSupported); err != nil {
		return err
	}
	for _, body := range []string{`{"readOnly":true}`, `{"workspace":{"intent":"read","readOnly":true}}`, `{"Workspace":{"intent":"read"}}`} {
		_, err := p.send(ctx, p.unmade(1).make("", body))
		if err := refused("creating a session with "+body, err, harness.BadRequest); err != nil {
			return err
		}
	}
	return nil
}

func malformedHeaders(ctx context.Context, p *probe) error {
	for _, change := range []struct{ header, value string }{
		{harness.HeaderOperation, ""},
		{harness.HeaderInstance, ""},
		{harness.HeaderEpoch, ""},
		{harness.HeaderGeneration, ""},
		{harness.HeaderDigest, ""},
		{harness.HeaderEpoch, "0"},
		{harness.HeaderEpoch, "+9"},
		{harness.HeaderEpoch, "1e9"},
		{harness.HeaderGeneration, "00"},
		{harness.HeaderOperation, "two words"},
		{harness.HeaderDigest, "sha256:" + strings.Repeat("A", 64)},
	} {
		r := undrain()
		r.header = func(h http.Header) {
			h.Set(change.header, change.value)
			if change.value == "" {
				h.Del(change.header)
			}
		}
		_, err := p.send(ctx, r)
		if err := refused("a request with "+change.header+": "+change.value, err, harness.BadRequest); err != nil {
			return err
		}
	}
	return nil
}

func tooLong(ctx context.Context, p *probe) error {
	most := *p.caps.Limits.MaxRequestBytes
	if most > 64<<20 {
		return &inapplicable{"maxRequestBytes is too large to be tried"}
	}
	r := p.unmade(1).make("", `{"systemPrompt":"`+strings.Repeat("x", int(most))+`"}`)
	_, err := p.send(ctx, r)
	return refused("a body above maxRequestBytes", err, harness.TooLarge)
}

func notJSON(ctx context.Context, p *probe) error {
	for _, body := range []string{`{"drain":false`, `{"drain":false} {}`, "{\"drain\":false,\"\xff\":1}"} {
		r := undrain()
		r.body = body
		_, err := p.send(ctx, r)
		if err := refused("a body that is not JSON", err, harness.BadRequest, harness.DigestMismatch); err != nil {
			return err
		}
	}
	r := undrain()
	r.body = `{"drain":false,"drain":false}`
	r.fence = func(f *harness.Fence) {
		f.Digest, _ = harness.Digest(r.method, r.path, 0, f.Operation, []byte(`{"drain":false}`)) // the body is JSON
	}
	_, err := p.send(ctx, r)
	return refused("a body with a key twice", err, harness.BadRequest, harness.DigestMismatch)
}
