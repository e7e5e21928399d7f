// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
)

// maxRedirects is how many redirects a call follows.
const maxRedirects = 10

// send makes the request and follows redirects itself, because net/http would send the body,
// which may hold a credential, to any host that a redirect names.
func (t *httpTool) send(ctx context.Context, target *url.URL, body []byte) (*http.Response, error) {
	method := t.method
	home := true
	for hops := 0; ; hops++ {
		req, err := t.request(ctx, method, target, body, home)
		if err != nil {
			return nil, err
		}
		client := t.client
		switch {
		case !home:
			client = t.away
		case tool.ApprovalOf(ctx) != "" && t.linked == nil:
			client = t.single
		}
		res, err := client.Do(req)
		if err != nil {
			return nil, t.ledAstray(err, home)
		}
		if t.linked != nil || !isRedirect(res.StatusCode) || res.Header.Get("Location") == "" {
			return res, nil
		}
		next, err := res.Location()
		// Read some of the rest of the body, so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
		_ = res.Body.Close()
		if err != nil {
			return nil, tool.Errorf(tool.TypeUnavailable, "%s redirects to an address that is not valid", t.definition.Name)
		}
		if hops == maxRedirects {
			return nil, tool.Errorf(tool.TypeLimitReached, "%s redirects more than %d times", t.definition.Name, maxRedirects)
		}
		keepBody := res.StatusCode == http.StatusTemporaryRedirect || res.StatusCode == http.StatusPermanentRedirect
		if !keepBody && method != http.MethodGet {
			method, body = http.MethodGet, nil
		}
		// After a redirect to another origin the credential is not sent again, even if a later redirect leads back.
		home = home && egress.SameOrigin(next, t.url)
		if err := t.mayFollow(next, target, body != nil, home); err != nil {
			return nil, err
		}
		target = next
	}
}

func (t *httpTool) request(ctx context.Context, method string, target *url.URL, body []byte, home bool) (*http.Request, error) {
	if home && t.credential != "" || body != nil && t.authKey != "" {
		if err := t.hosts.Check(target); err != nil {
			return nil, tool.Errorf(tool.TypePermissionDenied, "the credential of %s %v", t.definition.Name, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if home {
		for name, value := range t.headers {
			req.Header.Set(name, value)
		}
		if t.authHeader {
			req.Header.Set("Authorization", "Bearer "+t.credential)
		}
	}
	if home && t.traceparent != "" {
		req.Header.Set("Traceparent", t.traceparent)
	}
	if id := tool.ApprovalOf(ctx); id != "" {
		req.Header.Set("Idempotency-Key", id)
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, text/plain;q=0.9, */*;q=0.5")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "platform-tool/1.0")
	}
	return req, nil
}

func (t *httpTool) mayFollow(next, from *url.URL, withBody, home bool) error {
	switch {
	case next.Scheme != "http" && next.Scheme != "https", next.User != nil:
		return tool.Errorf(tool.TypePermissionDenied, "%s redirects to an address that is not allowed", t.definition.Name)
	case from.Scheme == "https" && next.Scheme == "http":
		return tool.Errorf(tool.TypePermissionDenied, "%s redirects from https to http", t.definition.Name)
	case !home && withBody && t.authKey != "":
		return tool.Errorf(tool.TypePermissionDenied, "%s redirects a request with a credential to another host", t.definition.Name)
	}
	return nil
}

// ledAstray returns the error of a request. If a redirect led to an address that may not be dialled, it says what an operator
// can do.
func (t *httpTool) ledAstray(err error, home bool) error {
	if home || !errors.Is(err, egress.ErrRefused) {
		return err
	}
	return tool.Errorf(tool.TypePermissionDenied, "%s redirects to another host whose address is private, local or reserved; an operator can allow it (--web-fetch-allow)", t.definition.Name)
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}
