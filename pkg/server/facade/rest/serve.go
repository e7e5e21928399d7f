// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// serve carries out a row for a caller with credentials, which the chain checks.
func (c *call) serve(r Row) error {
	if err := acceptable(r, c); err != nil {
		return err
	}
	if err := r.parameters(c.query); err != nil {
		return err
	}
	defer func() {
		if c.done != nil {
			c.done()
		}
	}()
	body, err := c.begin(r.Body, r.Namespaces)
	if err != nil {
		return err
	}
	parts := document{}
	for i, n := range r.Native {
		last := i == len(r.Native)-1
		if n.Unless != "" && parts.has(n.Unless) {
			continue
		}
		req, err := c.native(n, parts)
		if err != nil {
			return err
		}
		if last && r.Body != nil {
			if err := c.send(&req, r.Body, body, parts); err != nil {
				return err
			}
		}
		if last && r.Answer.Fields == nil && r.Answer.Code != http.StatusNoContent && !r.Answer.own() {
			return c.pass(req, r.Answer)
		}
		answer, err := c.read(n, req)
		if err != nil {
			return err
		}
		parts.add(n.Name, answer)
	}
	if r.Answer.own() {
		return c.f.describe(c.w, r.Answer)
	}
	return c.answer(r.Answer, parts)
}

// acceptable refuses a request that a row does not serve, before its body is read.
func acceptable(r Row, c *call) error {
	for name, only := range r.Only {
		if v := c.params[name]; v != only.Value {
			return badRequest("%s: %q: %s", name, v, only.Else)
		}
	}
	return reserved(r.Reserved, c.params["name"])
}

// begin reads a JSON body and determines the namespace. A namespace in the path is checked before the body.
func (c *call) begin(b *Body, names []string) (body any, err error) {
	_, inPath := c.params["namespace"]
	if inPath || b == nil || b.Raw {
		explicit := []string{c.params["namespace"]}
		if names == nil {
			names = []string{"namespace"}
		}
		for _, name := range names {
			value := c.query.Get(name)
			if len(names) > 1 {
				value, _, _ = strings.Cut(value, ",")
			}
			explicit = append(explicit, value)
		}
		if c.ns, err = c.namespace(explicit...); err != nil {
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

// send sets the body of a native request.
func (c *call) send(n *native, b *Body, body any, parts document) error {
	if b.Raw {
		n.contentType = c.r.Header.Get("Content-Type")
		if n.contentType == "" {
			n.contentType = "application/octet-stream"
		}
		n.body = c.r.Body // the native path has the same limit, and its own error for a body without a declared length
		return nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the body: %w", err)
	}
	n.body = bytes.NewReader(data)
	n.query.Set("fieldValidation", "Strict") // unknown fields are refused
	object := document{}
	object.add("", data)
	if err := fixed(b.Fixed, object, parts, b.Replace); err != nil {
		return err
	}
	switch {
	case b.Merge:
		n.contentType = string(types.MergePatchType)
	case b.Replace != "":
		return replace(n, b, object, parts)
	}
	return nil
}

// native carries out the native request.
func (c *call) native(n Native, parts document) (native, error) {
	req := native{method: methods[n.Verb], path: c.path(n.Path), query: url.Values{}}
	if n.Page {
		q, err := page(c.query, n.Unlimited)
		if err != nil {
			return native{}, err
		}
		req.query = q
	}
	for name, value := range n.Set {
		req.query.Set(name, c.expand(value, parts))
	}
	for _, name := range n.Pass {
		values, has := c.query[name]
		selector := name == "labelSelector"
		if !has || c.query.Get(name) == "" && (selector || n.Set[name] != "") {
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
	switch uid := parts.text(n.Same + ".metadata.uid"); {
	case n.Same != "" && uid != "":
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID(uid))}}
		data, err := json.Marshal(options)
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

// expand replaces texts in braces.
func (c *call) expand(s string, parts document) string {
	before, rest, found := strings.Cut(s, "{")
	name, after, closed := strings.Cut(rest, "}")
	if !found || !closed {
		return s
	}
	value := ""
	for one := range strings.SplitSeq(name, "|") {
		if value = meant(strings.TrimSpace(one), c.params, parts); value != "" {
			break
		}
	}
	return before + value + c.expand(after, parts)
}

// meant returns what a text in braces stands for.
func meant(name string, params map[string]string, parts document) string {
	if label, ok := strings.CutPrefix(name, "label:"); ok {
		return v1alpha1.LabelValue(params[label])
	}
	if value, ok := params[name]; ok {
		return value
	}
	return parts.text(name)
}

// read returns a small answer as JSON; nil for an empty text.
func (c *call) read(n Native, req native) (json.RawMessage, error) {
	var all []json.RawMessage
	for {
		var body bytes.Buffer
		err := c.stream(req, &body)
		p, failed := asError(err)
		switch {
		case n.Missing != "" && failed && p.code == http.StatusNotFound:
			return nil, nothing(n.Missing, c.params["id"])
		case failed && n.Optional && (p.code == http.StatusNotFound || p.code == http.StatusForbidden):
			return nil, nil
		case err != nil:
			return nil, err
		case n.Text && body.Len() == 0 && n.Empty != "":
			return nil, nothing(n.Empty, c.params["id"])
		case n.Text && body.Len() == 0:
			return nil, nil
		case n.Text:
			return json.Marshal(body.String())
		case n.Verb == "delete":
			return nil, nil
		case !json.Valid(body.Bytes()):
			return nil, fmt.Errorf("answer of %s %s is not JSON", req.method, req.path)
		}
		if hidden(n.Hide, body.Bytes()) {
			return nil, restError{code: http.StatusNotFound, message: fmt.Sprintf("%s %q not found", v1alpha1.Resource(strings.Split(n.Path, "/")[0]), c.params["id"])}
		}
		if !n.All {
			return body.Bytes(), nil
		}
		var list struct {
			Metadata struct{ Continue string }
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(body.Bytes(), &list); err != nil {
			return nil, fmt.Errorf("answer of %s %s: %w", req.method, req.path, err)
		}
		all = append(all, reduced(list.Items, n.Keep)...)
		if list.Metadata.Continue == "" {
			return json.Marshal(map[string]any{"items": slices.Concat([]json.RawMessage{}, all)})
		}
		req.query.Set("continue", list.Metadata.Continue)
	}
}

// nothing returns the error of a row that found nothing under an id.
func nothing(message, id string) error {
	return restError{code: http.StatusNotFound, message: strings.ReplaceAll(message, "%q", strconv.Quote(id))}
}

// hidden reports whether an object has the member and the value of Native.Hide.
func hidden(rule string, object json.RawMessage) bool {
	path, value, _ := strings.Cut(rule, "=")
	if path == "" {
		return false
	}
	d := document{}
	d.add("", object)
	path, other := strings.CutSuffix(path, "!")
	return (d.text(path) == value) != other
}

// reduced returns items with only some members; all members if keep is nil.
func reduced(items []json.RawMessage, keep []Field) []json.RawMessage {
	for i := range items {
		if keep != nil {
			of := document{}
			of.add("", items[i])
			items[i] = of.object(keep)
		}
	}
	return items
}

// answer builds the answer from those of the native requests.
func (c *call) answer(a Answer, parts document) error {
	c.w.Header().Set("Audit-Id", c.id) // that of all native requests of the row
	if a.Code == http.StatusNoContent {
		c.w.WriteHeader(a.Code)
		return nil
	}
	code := a.Code
	if code == 0 || a.OKIf != "" && parts.text(a.OKIf) == "true" {
		code = http.StatusOK
	}
	if member, value, ok := strings.Cut(a.AcceptedIf, "="); ok && parts.text(member) == value {
		code = http.StatusAccepted
	}
	auth, _ := c.f.external(c.r)
	if _, has := authorization(c.r); auth == "" && has {
		auth = "tokenReview"
	} else if auth == "" {
		auth = "clientCertificate"
	}
	for name, value := range map[string]string{"request.namespace": c.ns, "request.authentication": auth} {
		parts[name] = &node{raw: json.RawMessage(strconv.Quote(value))}
	}
	if a.Bare {
		reply(c.w, code, parts.value(a.Fields[0]))
		return nil
	}
	reply(c.w, code, parts.extended(a.Of, a.Fields))
	return nil
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
