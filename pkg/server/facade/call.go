// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// call is one REST request.
type call struct {
	f      *Facade
	w      http.ResponseWriter
	r      *http.Request
	query  url.Values
	params map[string]string // of the path
	id     string
	limit  int64  // of the body, by the row
	done   func() // ends the accounting of the body; nil where none was read
}

func newCall(f *Facade, w http.ResponseWriter, r *http.Request, params map[string]string, id string) *call {
	return &call{f: f, w: w, r: r, query: r.URL.Query(), params: params, id: id}
}

// serve runs a row. A caller without credentials gets its answer before a row reads a body.
func (c *call) serve(r row) error {
	if !credentials(c.r) {
		return restError{code: http.StatusUnauthorized}
	}
	c.limit = r.body
	defer func() {
		if c.done != nil {
			c.done()
		}
	}()
	return r.serve(c)
}

// native is a request to the chain.
type native struct {
	method string
	path   string
	query  url.Values
	// body is nil for none.
	body io.Reader
	// contentType of the body. Default: JSON.
	contentType string
	header      http.Header
}

// in is the path of a resource of the platform: in("tasks", name, "events").
func in(namespace string, segments ...string) string {
	return "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/" + strings.Join(segments, "/")
}

// namespace decides by the first value that was given explicitly, then the caller's own namespace (supplement 0.3).
func (c *call) namespace(explicit ...string) (string, error) {
	ns := "default"
	if own := ownNamespace(c.r); own != "" {
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

// request makes the native request: the caller's own, with another target. Nothing of the REST query goes along
// unless n has it, for the same word may mean something else natively.
func (c *call) request(n native) *http.Request {
	r := c.r.Clone(c.r.Context())
	r.Method = n.method
	// Left to itself, the chain indents for some clients by their names.
	q := url.Values{"pretty": {"false"}}
	maps.Copy(q, n.query)
	r.URL = &url.URL{Path: n.path, RawQuery: q.Encode()}
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Audit-ID", c.id)
	for _, name := range []string{"Accept-Encoding", "Content-Type", "Content-Length", "Origin"} {
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

// stream writes the body of the answer to out, as it comes.
func (c *call) stream(n native, out io.Writer) error {
	a := &answer{ctx: c.r.Context(), header: http.Header{}, out: out}
	c.f.chain.ServeHTTP(a, c.request(n))
	c.warn(a.header)
	return a.problem()
}

// warn hands on the warnings of the API, and when to come again.
func (c *call) warn(from http.Header) {
	for _, name := range []string{"Warning", "Retry-After"} {
		for _, v := range from.Values(name) {
			c.w.Header().Add(name, v)
		}
	}
}

// fetch reads a small answer into the value that into points to; nil drops it.
func (c *call) fetch(n native, into any) error {
	var body bytes.Buffer
	out := io.Writer(&body)
	if into == nil {
		out = io.Discard
	}
	if err := c.stream(n, out); err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(body.Bytes(), into); err != nil {
		return fmt.Errorf("answer of %s %s: %w", n.method, n.path, err)
	}
	return nil
}

// shape says how an answer of the chain is changed on its way.
type shape struct {
	// code replaces the status; 0 keeps it.
	code int
	// header is set.
	header map[string]string
	// body, where set, gets the native body and writes another one. Close is called at its end.
	body func(w io.Writer) io.WriteCloser
}

// pass sends the answer on as it comes.
func (c *call) pass(n native, s shape) error {
	a := &answer{ctx: c.r.Context(), header: c.w.Header(), out: c.w, client: http.NewResponseController(c.w)}
	var body io.WriteCloser
	a.begin = func(code int) {
		if s.code != 0 {
			code = s.code
		}
		for k, v := range s.header {
			a.header.Set(k, v)
		}
		if s.body != nil {
			a.header.Del("Content-Length")
			body = s.body(c.w)
			a.out = body
		}
		c.w.WriteHeader(code)
	}
	c.f.chain.ServeHTTP(a, c.request(n))
	if err := a.problem(); err != nil {
		return err
	}
	a.WriteHeader(http.StatusOK) // where the chain wrote nothing at all
	if body != nil {
		_ = body.Close() // a client that is gone cannot be told
	}
	return nil
}

// without is a shape that leaves out members of a JSON object.
func without(members ...string) shape {
	return shape{body: func(w io.Writer) io.WriteCloser { return newFilter(w, members...) }}
}

// plain is a shape that leaves out what every Kubernetes object has.
func plain() shape { return without("kind", "apiVersion", "metadata") }

// post is a native create with a JSON body, of which unknown fields are refused.
func post(path string, body any) (native, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return native{}, fmt.Errorf("encode the body: %w", err)
	}
	return native{
		method: http.MethodPost, path: path, query: url.Values{"fieldValidation": {"Strict"}}, body: bytes.NewReader(data),
	}, nil
}
