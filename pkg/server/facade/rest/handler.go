// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Call carries out the native requests of a row for one REST request. A request is named as in the row.
type Call struct {
	c      *call
	row    Row
	body   any // of the last native request
	parts  Parts
	code   int  // of the answer, if the Handler chose one
	passed bool // whether the answer was passed on
}

// Param returns a parameter of the path.
func (x *Call) Param(name string) string { return x.c.params[name] }

// Text returns the value at a path in the answers so far; see Parts.Text.
func (x *Call) Text(path string) string { return x.parts.Text(path) }

// Has reports whether a request has had an answer.
func (x *Call) Has(name string) bool { return x.parts.has(name) }

// Do makes the requests of these names, or all of them, in the order of the row, and keeps their answers. The answer of the last one of
// a row that makes no answer of its own is passed on to the client as it arrives.
func (x *Call) Do(names ...string) error {
	for i, n := range x.row.Native {
		if len(names) > 0 && !slices.Contains(names, n.Name) {
			continue
		}
		if err := x.do(i, ""); err != nil {
			return err
		}
	}
	return nil
}

// StatusIf returns the Handler of a row with one request. An answer that has the value at the path has the status code.
func StatusIf(path, value string, code int) func(*Call) error {
	return func(x *Call) error {
		err := x.Do()
		if x.Text(path) == value {
			x.code = code
		}
		return err
	}
}

// DeleteSame is the Handler of a row that reads an object and deletes it, but no later object of its name. If the first answer is Optional
// and missing, the delete decides alone.
func DeleteSame(x *Call) error {
	if err := x.do(0, ""); err != nil {
		return err
	}
	return x.do(1, x.Text(x.row.Native[0].Name+".metadata.uid"))
}

// do makes a request; uid is that of the only object that it may delete, or "".
func (x *Call) do(i int, uid string) error {
	n, a, last := x.row.Native[i], x.row.Answer, i == len(x.row.Native)-1
	if n.Unless != "" && x.parts.has(n.Unless) {
		return nil
	}
	req, err := x.native(n, uid)
	if err != nil {
		return err
	}
	if last && x.row.Body != nil {
		if err := x.send(&req); err != nil {
			return err
		}
	}
	if last && a.Fields == nil && a.Code != http.StatusNoContent && !a.own() {
		x.passed = true
		return x.c.pass(req, a)
	}
	answer, err := x.c.read(n, req)
	x.parts.add(n.Name, answer)
	return err
}

// native returns a native request.
func (x *Call) native(n Native, uid string) (native, error) {
	c := x.c
	req := native{method: methods[n.Verb], path: c.path(n.Path), query: url.Values{}}
	if n.Page {
		q, err := page(c.query, n.Unlimited)
		if err != nil {
			return native{}, err
		}
		req.query = q
	}
	for name, value := range n.Set {
		req.query.Set(name, value)
	}
	if err := c.narrow(n, req.query); err != nil {
		return native{}, err
	}
	if n.With != nil {
		n.With(x, req.query)
	}
	for _, name := range n.Pass {
		values, has := c.query[name]
		selector := name == "labelSelector"
		if !has || selector && c.query.Get(name) == "" {
			continue
		}
		if selector {
			if _, err := labels.Parse(values[0]); err != nil {
				return native{}, badRequest("labelSelector: %v", err)
			}
		}
		req.query[name] = values
	}
	if n.Accept != "" {
		req.header = http.Header{"Accept": {n.Accept}}
	}
	switch {
	case uid != "":
		data, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID(uid))}})
		if err != nil {
			return native{}, fmt.Errorf("delete options: %w", err)
		}
		req.body = bytes.NewReader(data)
	case n.Ask != "":
		data, err := c.ask(n)
		if err != nil {
			return native{}, err
		}
		req.body = bytes.NewReader(data)
	case n.Send != "":
		req.body = bytes.NewReader([]byte(n.Send))
	}
	return req, nil
}

// send sets the body of the last native request.
func (x *Call) send(n *native) error {
	b := x.row.Body
	if b.Raw {
		n.contentType = x.c.r.Header.Get("Content-Type")
		if n.contentType == "" {
			n.contentType = "application/octet-stream"
		}
		n.body = x.c.r.Body // the native path has the same limit, and its own error for a body without a declared length
		return nil
	}
	data, err := json.Marshal(x.body)
	if err != nil {
		return fmt.Errorf("encode the body: %w", err)
	}
	n.body = bytes.NewReader(data)
	n.query.Set("fieldValidation", "Strict") // unknown fields are refused
	object := partsOf(data)
	if err := fixed(b.Fixed, object, x.parts, b.Replace); err != nil {
		return err
	}
	switch {
	case x.row.Merges():
		n.contentType = string(types.MergePatchType)
	case b.Replace != "":
		return replace(n, b, object, x.parts)
	}
	return nil
}

// answer builds the answer from those of the native requests.
func (x *Call) answer() error {
	c, a, code := x.c, x.row.Answer, x.code
	c.w.Header().Set("Audit-Id", c.id) // that of all native requests of the row
	if a.Code == http.StatusNoContent {
		c.w.WriteHeader(a.Code)
		return nil
	}
	if code == 0 {
		code = cmp.Or(a.Code, http.StatusOK)
	}
	auth, _ := c.f.external(c.r)
	if _, has := authorization(c.r); auth == "" && has {
		auth = "tokenReview"
	} else if auth == "" {
		auth = "clientCertificate"
	}
	for name, value := range map[string]string{"request.namespace": c.ns, "request.authentication": auth} {
		x.parts[name] = &node{raw: json.RawMessage(strconv.Quote(value))}
	}
	if a.Bare {
		reply(c.w, code, x.parts.value(a.Fields[0]))
		return nil
	}
	reply(c.w, code, x.parts.extended(a.Of, a.Fields))
	return nil
}
