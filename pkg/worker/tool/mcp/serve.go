// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/version"
)

// ServerName is the name of the server that Serve makes.
const ServerName = "platform"

// maxServed bounds a request to the server, and the text of a result, in bytes.
const maxServed = 1 << 20

// Call carries out a call. The arguments are as the client sent them.
type Call func(ctx context.Context, name, arguments string) tool.Result

// Serve returns a server of the protocol, over streamable HTTP and without sessions, that offers tools and leaves each call to call. A
// failed call is a result with isError, which models read.
func Serve(offered []tool.Definition, call Call) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: ServerName, Version: version.Version()}, nil)
	for _, d := range offered {
		s.AddTool(&mcp.Tool{Name: d.Name, Description: d.Description, InputSchema: schemaOf(d)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			arguments := string(r.Params.Arguments)
			if arguments == "" {
				arguments = "{}"
			}
			result := call(ctx, r.Params.Name, arguments)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: clip.Marked(result.Text, maxServed)}}, IsError: result.Failed()}, nil
		})
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxServed,
	})
}

// schemaOf returns the schema of a tool's arguments, which are an object whether it says so or not.
func schemaOf(d tool.Definition) map[string]json.RawMessage {
	schema := map[string]json.RawMessage{}
	_ = json.Unmarshal(d.Parameters, &schema) // without one, any object will do
	schema["type"] = json.RawMessage(`"object"`)
	return schema
}
