// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/sse"
)

// chatRows returns the rows of chats. A turn is a stream, unless the client accepts exactly JSON.
func chatRows() []rest.Row {
	const chat = "/api/v1/chat"
	body := &rest.Body{Max: maxObject, Kind: "Chat", Under: "spec", Same: []string{"namespace"}, Required: []string{"message"}}
	turn := append(rest.Fields(`sessionId: status.sessionId = ""`, `message: status.message = ""`, "outcome: status.outcome", "usage: status.usage = {}"),
		rest.Field{Name: "toolCalls", From: []string{"status.toolCalls"}, Default: "[]", Each: rest.Fields(`name: name = ""`, "args: args = {}", "result: result = null")})
	asJSON := func(r *http.Request, _ string) bool { return r.Header.Get("Accept") == "application/json" } // and nothing else
	noChat := func(s rest.Parts) bool { return s.Text("spec.sessionType") != string(v1alpha1.SessionTypeChat) }
	failed := []int{http.StatusBadGateway} // of the model; a stream has an error as its last frame
	return []rest.Row{
		{Method: http.MethodPost, Path: chat, When: asJSON, Native: one("create", "chats"), Body: body, Handler: rest.StatusIf("status.outcome", string(v1alpha1.ChatRunning), http.StatusAccepted), Answer: rest.Answer{Fields: turn, Also: map[int]string{http.StatusAccepted: "Accepted"}, Errors: failed}},
		{Method: http.MethodPost, Path: chat, Native: []rest.Native{{Verb: "create", Path: "chats", Accept: sse.ContentType}}, Body: body, Answer: rest.Answer{Media: sse.ContentType}},
		{Method: http.MethodGet, Path: chat + "/config", Native: one("get", "chats/default/config"), Answer: rest.Answer{Drop: []string{"kind", "apiVersion", "metadata"}}},
		{Method: http.MethodGet, Path: chat + "/:id/stream", Native: one("get", "sessions/:id/turn", "after"), Answer: rest.Answer{Media: sse.ContentType, Over: true, Errors: []int{http.StatusGone}}},
		{
			Method: http.MethodDelete, Path: chat + "/:id", Handler: rest.DeleteSame, Answer: rest.Answer{Code: http.StatusNoContent},
			Native: []rest.Native{
				{Name: "session", Verb: "get", Path: "sessions/:id", Hide: noChat, Optional: true},
				{Verb: "delete", Path: "sessions/:id"},
			},
		},
	}
}
