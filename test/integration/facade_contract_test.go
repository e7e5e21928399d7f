// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const closedDocument, openDocument = "mem:///doc", "mem:///open"

// contract is the OpenAPI document of the REST paths. Every answer that a restClient gets is compared with it.
type contract struct {
	doc      map[string]any
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

var theContract = sync.OnceValues(func() (*contract, error) {
	data, err := facade.Document(openapi.GetOpenAPIDefinitions)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	open, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	closed(doc)
	c := &contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.doc, _ = doc.(map[string]any)
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	// A schema that consists of several others cannot be closed, so bodies of requests are compared with the document as it is.
	return c, errors.Join(c.compiler.AddResource(closedDocument, doc), c.compiler.AddResource(openDocument, open))
})

// closed forbids members that no schema of an object describes, so that an undocumented member fails a test.
func closed(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			closed(one)
		}
	case map[string]any:
		for _, one := range v {
			closed(one)
		}
		if _, has := v["properties"].(map[string]any); has && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
	}
}

// operation returns the template of a path and the description of a request, or nil if it is not described.
func (c *contract) operation(method, path string) (template string, op map[string]any) {
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	best := -1
	paths, _ := c.doc["paths"].(map[string]any)
	for candidate, item := range paths {
		literal, pattern := 0, strings.Split(candidate, "/")
		if len(pattern) != len(segments) {
			continue
		}
		for i, p := range pattern {
			switch {
			case p == segments[i]:
				literal++
			case !strings.HasPrefix(p, "{"):
				literal = -1000
			}
		}
		if found, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any); ok && literal > best {
			template, op, best = candidate, found, literal
		}
	}
	return template, op
}

// check returns what an answer has that the document does not describe.
func (c *contract) check(method, path string, a answer) error {
	template, op := c.operation(method, path)
	if op == nil {
		return nil // answered with 404 or 405, or by Kubernetes' own API
	}
	responses, _ := op["responses"].(map[string]any)
	response, ok := responses[fmt.Sprint(a.code)].(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s answers %d, which is not documented: %.300s", method, template, a.code, a.body)
	}
	contents, _ := response["content"].(map[string]any)
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if len(contents) == 0 {
		if a.body != "" {
			return fmt.Errorf("%s %s: %d has an undocumented body: %.300s", method, template, a.code, a.body)
		}
		return nil
	}
	if contents["*/*"] != nil {
		return nil
	}
	if _, ok := contents[media]; !ok {
		return fmt.Errorf("%s %s: the media type %q of %d is not documented", method, template, media, a.code)
	}
	if media != "application/json" {
		return nil
	}
	schema, err := c.schema(closedDocument, "paths", template, strings.ToLower(method), "responses", fmt.Sprint(a.code), "content", media, "schema")
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		return fmt.Errorf("%s %s: %d: %w: %.300s", method, template, a.code, err, a.body)
	}
	if err := schema.Validate(body); err != nil {
		return fmt.Errorf("%s %s: the body of %d differs from its schema: %w\n%.600s", method, template, a.code, err, a.body)
	}
	return nil
}

// checkBody returns what a JSON body that was accepted has that the document does not describe.
func (c *contract) checkBody(method, path, body string) error {
	template, op := c.operation(method, path)
	request, _ := op["requestBody"].(map[string]any)
	contents, _ := request["content"].(map[string]any)
	switch {
	case op == nil, contents["*/*"] != nil:
		return nil
	case body == "" && request["required"] != true:
		return nil
	case contents["application/json"] == nil:
		if body != "" && body != "{}" {
			return fmt.Errorf("%s %s accepts an undocumented body: %.300s", method, template, body)
		}
		return nil
	}
	schema, err := c.schema(openDocument, "paths", template, strings.ToLower(method), "requestBody", "content", "application/json", "schema")
	if err != nil {
		return err
	}
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = schema.Validate(parsed)
	}
	if err != nil {
		return fmt.Errorf("%s %s accepts a body that differs from its schema: %w\n%.600s", method, template, err, body)
	}
	return nil
}

// schema compiles a part of a document.
func (c *contract) schema(document string, path ...string) (*jsonschema.Schema, error) {
	at := document + "#"
	for _, p := range path {
		at += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[at]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(at)
	if err == nil {
		c.schemas[at] = s
	}
	return s, err
}

// comply fails the test if an answer of the REST paths, or the body of a request that was accepted, is not as documented.
func (a answer) comply(t testing.TB, method, path, body string) answer {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.check(method, path, a); err != nil {
		t.Error(err)
	}
	if a.code < 300 {
		if err := c.checkBody(method, path, body); err != nil {
			t.Error(err)
		}
	}
	return a
}

// TestRESTDocument: the served document is a valid OpenAPI 3.1 document, for authenticated callers alone.
func TestRESTDocument(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	a := restAs(t, s, "default", "vi", "").get(facade.DocumentPath).want(t, 200)
	restOf(t, s).get(facade.DocumentPath).problem(t, 401, "Unauthorized")
	restOf(t, s).with("Authorization", "Bearer x").get(facade.DocumentPath).problem(t, 401, "Unauthorized")
	c := jsonschema.NewCompiler()
	official, err := c.Compile("testdata/oas-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if err := official.Validate(doc); err != nil {
		t.Error(err)
	}
	ids := map[string]bool{}
	eachOperation(t, func(method, path string, op map[string]any) {
		id := fmt.Sprint(op["operationId"])
		if ids[id] {
			t.Errorf("%s %s: the operationId %s is not unique", method, path, id)
		}
		ids[id] = true
	})
	// Every row is in the document, with its permissions.
	for _, row := range facade.Rows() {
		_, op := must[*contract](t)(theContract()).operation(row.Method, strings.ReplaceAll(row.Path, ":", ""))
		if op == nil {
			t.Errorf("%s %s is not described", row.Method, row.Path)
		}
	}
	if _, err := must[*contract](t)(theContract()).schema(closedDocument, "components", "schemas", "Error"); err != nil {
		t.Error(err)
	}
}

// eachOperation calls f for each operation of the document.
func eachOperation(t *testing.T, f func(method, path string, op map[string]any)) {
	t.Helper()
	paths, _ := must[*contract](t)(theContract()).doc["paths"].(map[string]any)
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			f(strings.ToUpper(method), path, op.(map[string]any))
		}
	}
}

// TestParametersAreDescribed: the document lists the query parameters that rows accept, and no others.
func TestParametersAreDescribed(t *testing.T) {
	t.Parallel()
	c := must[*contract](t)(theContract())
	together := map[string][]string{} // what the rows of one method and path accept
	for _, r := range facade.Rows() {
		key := r.Method + " " + r.Path
		together[key] = append(together[key], r.Parameters()...)
	}
	for _, r := range facade.Rows() {
		_, op := c.operation(r.Method, r.Path)
		described := map[string]bool{"namespace": true} // rows that name it in the path accept it, too
		params, _ := op["parameters"].([]any)
		for _, p := range params {
			if p, ok := p.(map[string]any); ok && p["in"] == "query" {
				described[fmt.Sprint(p["name"])] = true
			}
		}
		accepted := slices.Compact(slices.Sorted(slices.Values(together[r.Method+" "+r.Path])))
		if r.Answer.Unsupported == "" && !slices.Equal(accepted, slices.Sorted(maps.Keys(described))) {
			t.Errorf("%s %s accepts %v and describes %v", r.Method, r.Path, accepted, described)
		}
	}
}
