// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// toolRows returns the rows of tools. The list has built-in tools and Tools; a single one is the row of a built-in
// tool, or the whole Tool.
func toolRows() []rest.Row {
	const tools = "/api/v1/tools"
	return []rest.Row{
		{
			Method: http.MethodGet, Path: tools, Native: []rest.Native{{Verb: "list", Path: "catalogtools", Page: true}},
			Answer: rest.Answer{Fields: append(list("items", toolRow("")), rest.Field{
				Name: "metadata", From: []string{"metadata"}, Default: "{}", Only: rest.Fields("continue: continue", "remainingItemCount: remainingItemCount"),
			})},
		},
		{
			Method: http.MethodGet, Path: tools + "/:name", Answer: rest.Answer{Of: "tool", Fields: toolRow("entry.")},
			Native: []rest.Native{
				{Name: "tool", Verb: "get", Path: "tools/:name", Optional: true},
				{Name: "entry", Verb: "get", Path: "catalogtools/:name", Unless: "tool"},
			},
		},
	}
}

// toolRow returns the fields of a tool in a list. A built-in tool has its parameters, a Tool its namespace, its address
// and whether it is available.
func toolRow(of string) []rest.Field {
	return rest.Fields(
		"name: "+of+"metadata.name", "namespace: "+of+"spec.toolRef.namespace", "builtin: "+of+"spec.builtin", "description: "+of+"spec.description",
		"parameters: "+of+"spec.parameters", "available: "+of+"spec.available", "url: "+of+"spec.url",
	)
}
