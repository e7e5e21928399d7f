// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// serve carries out a row for a caller with credentials, which the chain checks.
func (c *call) serve(r Row) error {
	for name, value := range c.params {
		if r.Names == nil {
			break
		}
		if err := r.Names(name, value); err != nil {
			return err
		}
	}
	if err := r.parameters(c.query); err != nil {
		return err
	}
	defer func() {
		if c.done != nil {
			c.done()
		}
	}()
	body, err := c.begin(r.Body)
	if err != nil {
		return err
	}
	x := &Call{c: c, row: r, body: body, parts: Parts{}}
	handle := func(x *Call) error { return x.Do() }
	if r.Handler != nil {
		handle = r.Handler
	}
	switch err := handle(x); {
	case err != nil || x.passed:
		return err
	case r.Answer.own():
		return c.f.describe(c.w, r.Answer)
	}
	return x.answer()
}

// begin reads a JSON body and determines the namespace. A namespace in the path is checked before the body.
func (c *call) begin(b *Body) (body any, err error) {
	_, inPath := c.params["namespace"]
	if inPath || b == nil || b.Raw {
		inQuery := c.query.Get("namespace")
		if c.row.Namespace != nil {
			inQuery = c.row.Namespace(c.query)
		}
		if c.ns, err = c.namespace(c.params["namespace"], inQuery); err != nil {
			return nil, err
		}
	}
	if b == nil {
		return nil, nil //nolint:nilnil // a row without a body
	}
	c.limit = b.Max
	if b.Raw {
		return nil, c.admit()
	}
	body, named, err := c.toNative(b)
	if err != nil || inPath {
		return body, err
	}
	asked := c.query.Get("namespace")
	if named != "" && asked != "" && named != asked {
		return nil, badRequest("namespace: is %q in the body and %q in the query", named, asked)
	}
	c.ns, err = c.namespace(named, asked)
	return body, err
}

var methods = map[string]string{"get": http.MethodGet, "list": http.MethodGet, "create": http.MethodPost, "patch": http.MethodPatch, "delete": http.MethodDelete}

// path returns the native path, with the parameters of the REST path filled in.
func (c *call) path(pattern string) string {
	segments := strings.Split(pattern, "/")
	for i, s := range segments {
		if name, param := strings.CutPrefix(s, ":"); param {
			segments[i] = c.params[name]
			if name == "namespace" {
				segments[i] = c.ns
			}
		}
	}
	path := strings.Join(segments, "/")
	if segments[0] == "" {
		return path
	}
	return "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + c.ns + "/" + path
}

// read returns a small answer as JSON; nil if there is none.
func (c *call) read(n Native, req native) (json.RawMessage, error) {
	var all []json.RawMessage
	for {
		var body bytes.Buffer
		err := c.stream(req, &body)
		p, failed := asError(err)
		switch {
		case failed && n.Optional && (p.code == http.StatusNotFound || p.code == http.StatusForbidden):
			return nil, nil
		case err != nil:
			return nil, err
		case n.Verb == "delete", n.Text && body.Len() == 0:
			return nil, nil
		case n.Text:
			return json.Marshal(body.String())
		case !json.Valid(body.Bytes()):
			return nil, fmt.Errorf("answer of %s %s is not JSON", req.method, req.path)
		case n.Hide != nil && n.Hide(partsOf(body.Bytes())):
			return nil, Refuse(http.StatusNotFound, "%s %q not found", v1alpha1.Resource(strings.Split(n.Path, "/")[0]), c.params["id"])
		case !n.All:
			return body.Bytes(), nil
		}
		var list struct {
			Metadata struct{ Continue string }
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(body.Bytes(), &list); err != nil {
			return nil, fmt.Errorf("answer of %s %s: %w", req.method, req.path, err)
		}
		for _, item := range list.Items {
			if n.Keep != nil {
				item = partsOf(item).object(n.Keep)
			}
			all = append(all, item)
		}
		if list.Metadata.Continue == "" {
			return json.Marshal(map[string]any{"items": slices.Concat([]json.RawMessage{}, all)})
		}
		req.query.Set("continue", list.Metadata.Continue)
	}
}

// pass streams the answer on, without the members that are left out.
func (c *call) pass(n native, s Answer) error {
	a := &answer{ctx: c.r.Context(), header: c.w.Header(), out: c.w, client: http.NewResponseController(c.w)}
	a.begin = func(code int) {
		if s.Code != 0 {
			code = s.Code
		}
		if len(s.Drop) > 0 {
			a.header.Del("Content-Length")
			a.out = newFilter(c.w, s.Drop...)
		}
		c.w.WriteHeader(code)
	}
	c.f.chain.ServeHTTP(a, c.request(n))
	if err := a.problem(); err != nil {
		return err
	}
	a.WriteHeader(http.StatusOK) // if the chain wrote nothing at all
	return nil
}

// stream writes the body of the answer to out as it arrives.
func (c *call) stream(n native, out io.Writer) error {
	a := &answer{ctx: c.r.Context(), header: http.Header{}, out: out}
	c.f.chain.ServeHTTP(a, c.request(n))
	c.warn(a.header)
	return a.problem()
}
