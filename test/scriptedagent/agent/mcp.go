// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// server is an MCP server that the client names.
type server struct {
	Type, Name, URL string
	Headers         []struct{ Name, Value string }
}

// mcp sends a request to the first MCP server, and returns what it is answered: the names of tools, the text of a result, or an error.
func (a *agent) mcp(method string, params any) string {
	return a.mcpWithin(context.Background(), method, params)
}

// mcpWithin is mcp that gives the request up when ctx ends.
func (a *agent) mcpWithin(ctx context.Context, method string, params any) string {
	if len(a.servers) == 0 {
		return "no server"
	}
	s := a.servers[0]
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range s.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	var said struct {
		Result struct {
			Tools   []struct{ Name string }
			Content []struct{ Text string }
			IsError bool
		}
		Error *failure
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return fmt.Sprintf("%d %s", answer.StatusCode, text)
	}
	var out []string
	for _, t := range said.Result.Tools {
		out = append(out, t.Name)
	}
	for _, c := range said.Result.Content {
		out = append(out, c.Text)
	}
	if said.Error != nil {
		out = append(out, said.Error.Message)
	}
	return strings.Join(out, " ")
}
