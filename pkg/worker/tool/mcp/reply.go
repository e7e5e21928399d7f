// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/platform-ai/platform/pkg/tool"
)

const (
	// maxAsked is how many requests a server may send in a session.
	maxAsked = 256
	// maxID is the length of the longest id of a request of a server, in bytes of JSON.
	maxID = 256
)

// reply answers a request of the server, which may wait for that before it goes on with the call. A ping is answered; for all
// else, such as samples of the model, files or the input of a person, there is no method. The answer is on its way when reply
// returns, so a server that does not take it delays nothing.
func (x *exchange) reply(id json.RawMessage, method string) error {
	if absent(id) || len(id) > maxID || id[0] == '{' || id[0] == '[' {
		return nil // a notification, or nothing that can be answered
	}
	w := x.wire
	w.mu.Lock()
	w.asked++
	over := w.asked > maxAsked
	w.mu.Unlock()
	if over {
		return w.fail(tool.Errorf(tool.TypeLimitReached, "the server of %s sends more than %d requests during a call", w.server.name, maxAsked))
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": id}
	if method == methodPing {
		answer["result"] = struct{}{}
	} else {
		answer["error"] = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	req, err := again(w.life, x, http.MethodPost, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	w.replies.Go(func() {
		res, err := w.send(req, false)
		if err != nil {
			return // nobody waits for it any more, or the call fails for the same cause
		}
		defer func() { _ = res.Body.Close() }()
		_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // so that the connection can be reused
	})
	return nil
}

// again returns another request to where that of an exchange went, of the same session.
func again(ctx context.Context, x *exchange, method string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, x.request.URL.String(), body)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{headerSession, headerVersion} {
		if value := x.request.Header.Get(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	if x.session != "" {
		req.Header.Set(headerSession, x.session)
	}
	return req, nil
}
