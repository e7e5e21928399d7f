// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// call is one REST request.
type call struct {
	f      *Facade
	row    Row
	w      http.ResponseWriter
	r      *http.Request
	query  url.Values
	params map[string]string // of the path
	id     string
	ns     string // the namespace of the request
	limit  int64  // of the body, set by the row
	done   func() // ends the accounting of the body; nil if none was read
}

// native is a request to the chain.
type native struct {
	method string
	path   string
	query  url.Values
	// body may be nil.
	body io.Reader
	// contentType of the body. Default: JSON.
	contentType string
	header      http.Header
}

// namespace returns the first namespace that was given explicitly, otherwise the caller's own namespace, otherwise
// "default".
func (c *call) namespace(explicit ...string) (string, error) {
	ns := "default"
	if kind, own := c.f.external(c.r); own != "" {
		ns = own
	} else if own := ownNamespace(c.r); kind == "" && own != "" {
		ns = own
	}
	for _, e := range explicit {
		if e != "" {
			ns = e
			break
		}
	}
	if msgs := validation.IsDNS1123Label(ns); len(msgs) > 0 {
		return "", badRequest("namespace: %s", strings.Join(msgs, "; "))
	}
	if only := c.f.o.Namespace; only != "" && ns != only {
		return "", restError{code: http.StatusForbidden, message: "namespace not allowed"}
	}
	return ns, nil
}

// external returns the type of the request's credential if it is none of this host, and the namespace of its bearer.
func (f *Facade) external(r *http.Request) (authType, namespace string) {
	if f.o.External == nil {
		return "", ""
	}
	return f.o.External(r)
}

// request makes the native request: the caller's own request with another target. Query parameters are passed on only
// if n has them, because the same name may mean something else natively.
func (c *call) request(n native) *http.Request {
	r := c.r.Clone(context.WithValue(c.r.Context(), madeKey{}, true))
	r.Method = n.method
	// By default, the chain indents answers for some clients, which it recognizes by name.
	q := url.Values{"pretty": {"false"}}
	maps.Copy(q, n.query)
	r.URL = &url.URL{Path: n.path, RawQuery: q.Encode()}
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Audit-ID", c.id)
	for _, name := range []string{"Accept-Encoding", "Content-Type", "Content-Length", "Origin", "Prefer"} {
		r.Header.Del(name)
	}
	authorize(r, fromPage(c.r))
	maps.Copy(r.Header, n.header)
	r.Body, r.ContentLength = http.NoBody, 0
	if n.body != nil {
		r.Body, r.ContentLength = io.NopCloser(n.body), c.r.ContentLength // of the caller's own body
		if b, ok := n.body.(*bytes.Reader); ok {
			r.ContentLength = b.Size()
		}
		r.Header.Set("Content-Type", "application/json")
		if n.contentType != "" {
			r.Header.Set("Content-Type", n.contentType)
		}
	}
	return r
}

// madeKey marks the contexts of native requests.
type madeKey struct{}

// Made reports whether a request to the API was made for a REST request.
func Made(ctx context.Context) bool { return ctx.Value(madeKey{}) != nil }

// warn passes on the warnings of the API and its Retry-After.
func (c *call) warn(from http.Header) {
	for _, name := range []string{"Warning", "Retry-After"} {
		for _, v := range from.Values(name) {
			c.w.Header().Add(name, v)
		}
	}
}
