// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/server/facade"
)

// operation is what the page of the REST paths shows of an operation.
type operation struct {
	Description string
	Permissions []string `json:"x-permissions"`
	Parameters  []struct{ Name, In string }
	Responses   map[string]struct{ Content map[string]any }
}

// restPaths describes every REST path, from the OpenAPI document that servers give.
func restPaths(string) (string, error) {
	data, err := facade.Document(openapi.GetOpenAPIDefinitions)
	if err != nil {
		return "", err
	}
	var doc struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return "", err
	}
	var built, absent [][]string
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			name := code(strings.ToUpper(method) + " " + path)
			if answers(op) == "" {
				absent = append(absent, []string{name, op.Description})
				continue
			}
			built = append(built, []string{name, strings.Join(op.Permissions, ", "), query(op), answers(op), op.Description})
		}
	}
	p := &page{}
	p.heading(1, "REST paths")
	p.text("`GET " + facade.DocumentPath + "` returns the same as an OpenAPI 3.1 document, with the schemas of bodies and answers. Every path " +
		"but the health checks needs a credential: `Authorization: Bearer`, `x-api-key` or a client certificate. An error has the body " +
		"`{\"error\":{\"code\":404,\"message\":\"…\"}}`. Query parameters that a path does not know are refused with 400, and so are unknown members of bodies.")
	p.text("The columns list what the caller needs permission for, the query parameters, and the codes of success.")
	p.table([]string{"Path", "Permissions", "Query", "Success", "Note"}, built)
	p.heading(2, "Not built yet")
	p.text("These paths answer 501.")
	p.table([]string{"Path", "Reason"}, absent)
	return p.String(), nil
}

func query(op operation) string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, code(p.Name))
		}
	}
	return strings.Join(names, ", ")
}

// answers returns the codes of success, with media types other than JSON.
func answers(op operation) string {
	var list []string
	for _, c := range slices.Sorted(maps.Keys(op.Responses)) {
		if !strings.HasPrefix(c, "2") {
			continue
		}
		media := slices.DeleteFunc(slices.Sorted(maps.Keys(op.Responses[c].Content)), func(m string) bool { return m == "application/json" })
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s", c, strings.Join(media, ", "))))
	}
	return strings.Join(list, "; ")
}
