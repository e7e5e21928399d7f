// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestRESTDocument: the served document is a valid OpenAPI 3.1 document, for authenticated callers alone.
func TestRESTDocument(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	a := s.REST(t, "default", "vi", "").Get(facade.DocumentPath).Want(t, 200)
	s.Stranger(t).Get(facade.DocumentPath).Problem(t, 401, "Unauthorized")
	s.Stranger(t).With("Authorization", "Bearer x").Get(facade.DocumentPath).Problem(t, 401, "Unauthorized")
	c := jsonschema.NewCompiler()
	official, err := c.Compile("testdata/oas-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(a.Body))
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
		_, op := kit.Must[*standalone.Contract](t)(standalone.TheContract()).Operation(row.Method, strings.ReplaceAll(row.Path, ":", ""))
		if op == nil {
			t.Errorf("%s %s is not described", row.Method, row.Path)
		}
	}
	if _, err := kit.Must[*standalone.Contract](t)(standalone.TheContract()).Schema(standalone.ClosedDocument, "components", "schemas", "Error"); err != nil {
		t.Error(err)
	}
}

// eachOperation calls f for each operation of the document.
func eachOperation(t *testing.T, f func(method, path string, op map[string]any)) {
	t.Helper()
	paths, _ := kit.Must[*standalone.Contract](t)(standalone.TheContract()).Doc["paths"].(map[string]any)
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			f(strings.ToUpper(method), path, op.(map[string]any))
		}
	}
}

// TestParametersAreDescribed: the document lists the query parameters that rows accept, and no others.
func TestParametersAreDescribed(t *testing.T) {
	t.Parallel()
	c := kit.Must[*standalone.Contract](t)(standalone.TheContract())
	together := map[string][]string{} // what the rows of one method and path accept
	for _, r := range facade.Rows() {
		key := r.Method + " " + r.Path
		together[key] = append(together[key], r.Parameters()...)
	}
	for _, r := range facade.Rows() {
		_, op := c.Operation(r.Method, r.Path)
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
