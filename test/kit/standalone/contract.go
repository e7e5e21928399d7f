// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/test/kit/host"
)

// ClosedDocument is the document with nothing allowed that it does not describe; openDocument is the document as it is.
const ClosedDocument, openDocument = "mem:///doc", "mem:///open"

// Contract is the OpenAPI document of the REST paths. Every answer that a Client gets is compared with it.
type Contract struct {
	Doc      map[string]any
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// TheContract reads the document, once.
var TheContract = sync.OnceValues(func() (*Contract, error) {
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
	c := &Contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.Doc, _ = doc.(map[string]any)
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	// A schema that consists of several others cannot be closed, so bodies of requests are compared with the document as it is.
	return c, errors.Join(c.compiler.AddResource(ClosedDocument, doc), c.compiler.AddResource(openDocument, open))
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

// Operation returns the template of a path and the description of a request, or nil if it is not described.
func (c *Contract) Operation(method, path string) (template string, op map[string]any) {
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	best := -1
	paths, _ := c.Doc["paths"].(map[string]any)
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
func (c *Contract) check(method, path string, a host.Answer) error {
	template, op := c.Operation(method, path)
	if op == nil {
		return nil // answered with 404 or 405, or by Kubernetes' own API
	}
	responses, _ := op["responses"].(map[string]any)
	response, ok := responses[fmt.Sprint(a.Code)].(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s answers %d, which is not documented: %.300s", method, template, a.Code, a.Body)
	}
	contents, _ := response["content"].(map[string]any)
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if len(contents) == 0 {
		if a.Body != "" {
			return fmt.Errorf("%s %s: %d has an undocumented body: %.300s", method, template, a.Code, a.Body)
		}
		return nil
	}
	if contents["*/*"] != nil {
		return nil
	}
	if _, ok := contents[media]; !ok {
		return fmt.Errorf("%s %s: the media type %q of %d is not documented", method, template, media, a.Code)
	}
	if media != "application/json" {
		return nil
	}
	schema, err := c.Schema(ClosedDocument, "paths", template, strings.ToLower(method), "responses", fmt.Sprint(a.Code), "content", media, "schema")
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(a.Body))
	if err != nil {
		return fmt.Errorf("%s %s: %d: %w: %.300s", method, template, a.Code, err, a.Body)
	}
	if err := schema.Validate(body); err != nil {
		return fmt.Errorf("%s %s: the body of %d differs from its schema: %w\n%.600s", method, template, a.Code, err, a.Body)
	}
	return nil
}

// checkBody returns what a JSON body that was accepted has that the document does not describe.
func (c *Contract) checkBody(method, path, body string) error {
	template, op := c.Operation(method, path)
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
	schema, err := c.Schema(openDocument, "paths", template, strings.ToLower(method), "requestBody", "content", "application/json", "schema")
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

// Schema compiles a part of a document.
func (c *Contract) Schema(document string, path ...string) (*jsonschema.Schema, error) {
	pointer := []string{document + "#"}
	for _, p := range path {
		pointer = append(pointer, url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(p)))
	}
	at := strings.Join(pointer, "/")
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

// Comply fails the test if an answer of the REST paths, or the body of a request that was accepted, is not as documented.
func Comply(t testing.TB, a host.Answer, method, path, body string) host.Answer {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	c, err := TheContract()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.check(method, path, a); err != nil {
		t.Error(err)
	}
	if a.Code < 300 {
		if err := c.checkBody(method, path, body); err != nil {
			t.Error(err)
		}
	}
	return a
}
