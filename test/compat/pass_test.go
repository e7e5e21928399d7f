// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A request to a Provider of the same protocol arrives as it was sent, but for the model's name and the credentials,
// and the answer comes back byte for byte.
func TestPass(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	open, claude := newVendor(t, nil), newVendor(t, nil)
	s.provider("team", "default", v1alpha1.ProviderOpenAI, open.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, claude.URL, "c")
	token := s.Token(t, "team", "client", "chat")

	const chat = `{ "model":"%s" , "messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],` +
		`"parallel_tool_calls":true, "future":{"z":1,"a":1e2}, "max_tokens":16}`
	const message = `{"model":"%s","max_tokens":1,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"assistant","content":` +
		`[{"type":"thinking","thinking":"x","signature":"s=="}]},{"role":"user","content":"h"}] , "future": [ ] }`
	const response = `{"model":"%s","store":false,"input":"h","future":1}`
	stream := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}\n\n" +
		"event: ping\r\ndata: {}\r\n\r\n: comment\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":7}, \"new\":1}\n\n"
	for name, tc := range map[string]struct {
		vendor               *vendor
		path, body, as, want string // the model's name as the client and as the vendor has it
		at                   string // the vendor's path
		kind, answer         string
	}{
		"chat":                {open, "/openai/v1/chat/completions", chat, "m2", "m2", "/v1/chat/completions", jsonKind, chatAnswer},
		"chat at a provider":  {open, "/openai/v1/chat/completions", chat, "default/m2", "m2", "/v1/chat/completions", jsonKind, chatAnswer},
		"chat with a slash":   {open, "/provider-a/v1/chat/completions", chat, "org/m2", "org/m2", "/v1/chat/completions", jsonKind, chatAnswer},
		"response":            {open, "/openai/v1/responses", response, "m2", "m2", "/v1/responses", jsonKind, `{"output":[], "usage":{"input_tokens":1,"output_tokens":2}}`},
		"message":             {claude, "/anthropic/v1/messages", message, "claude/c2", "c2", "/v1/messages", jsonKind, messageAnswer},
		"message by alias":    {claude, "/provider-b/v1/messages", message, "claude/c2", "c2", "/v1/messages", jsonKind, messageAnswer},
		"streamed message":    {claude, "/anthropic/v1/messages", strings.Replace(message, `"future"`, `"stream":true,"future"`, 1), "claude/c2", "c2", "/v1/messages", eventKind, stream},
		"tokens of a message": {claude, "/anthropic/v1/messages/count_tokens", message, "claude/c2", "c2", "/v1/messages/count_tokens", jsonKind, `{"input_tokens": 14}`},
	} {
		tc.vendor.answer = says(http.StatusOK, tc.kind, tc.answer)
		got := s.post(tc.path+"?beta=true&namespace=team&future=a%20b&future=c", strings.Replace(tc.body, "%s", tc.as, 1), "Authorization", "Bearer "+token, "Anthropic-Beta", "x", "Cookie", "a=b", "X-Request-Id", "id-1")
		if got.Code != http.StatusOK || got.Body != tc.answer {
			t.Errorf("%s: %d %s\nwant %s", name, got.Code, got.Body, tc.answer)
		}
		for header, want := range map[string]string{
			"Content-Type": tc.kind, "Cache-Control": "private, no-store", "X-Request-Id": "id-1", "Set-Cookie": "", "Openai-Organization": "",
			"X-Platform-Tools": "disabled",
		} {
			if got.Header.Get(header) != want {
				t.Errorf("%s: header %s is %q, want %q", name, header, got.Header.Get(header), want)
			}
		}
		last, _ := tc.vendor.last()
		if want := strings.Replace(tc.body, "%s", tc.want, 1); last.body != want || last.path != tc.at {
			t.Errorf("%s: the vendor got %s %s\nwant %s", name, last.path, last.body, want)
		}
		if last.query != "beta=true&future=a+b&future=c" {
			t.Errorf("%s: query at the vendor: %s", name, last.query)
		}
		credential := last.header.Get("Authorization") + last.header.Get("X-Api-Key")
		if strings.TrimPrefix(credential, "Bearer ") != vendorKey || last.header.Get("Cookie") != "" || last.header.Get("Anthropic-Beta") != "x" {
			t.Errorf("%s: header at the vendor: %v", name, last.header)
		}
	}
}

// Who may not chat, in either style, gets an error of that style, and the vendor gets nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	s.namespace("other")
	v := newVendor(t, says(http.StatusOK, jsonKind, chatAnswer))
	for _, ns := range []string{"team", "other"} {
		s.provider(ns, "default", v1alpha1.ProviderOpenAI, v.URL, "m")
	}
	chat, half, other := s.Token(t, "team", "client", "chat"), s.Token(t, "team", "half", "chats-only"), s.Token(t, "team", "other", "providers-only")
	const body = `{"model":"m","max_tokens":16,"messages":[{"role":"user","content":"h"}]}`
	for name, tc := range map[string]struct {
		query, body string
		header      []string
		code        int
		kind        string
	}{
		"nobody":                    {"", body, nil, 401, "authentication_error"},
		"a wrong token":             {"", body, []string{"Authorization", "Bearer x"}, 401, "authentication_error"},
		"a wrong token with a key":  {"", body, []string{"Authorization", "Bearer x", "X-Api-Key", chat}, 401, "authentication_error"},
		"a transaction token":       {"", body, []string{"Txn-Token", "x"}, 401, "authentication_error"},
		"a transaction token, too":  {"", body, []string{"X-Api-Key", chat, "Txn-Token", "x"}, 401, "authentication_error"},
		"an empty one":              {"", body, []string{"X-Api-Key", chat, "Txn-Token", ""}, 401, "authentication_error"},
		"no providers":              {"", body, []string{"X-Api-Key", half}, 403, "permission_error"},
		"no chats":                  {"", body, []string{"X-Api-Key", other}, 403, "permission_error"},
		"another namespace":         {"?namespace=other", body, []string{"X-Api-Key", chat}, 403, "permission_error"},
		"no namespace":              {"?namespace=A_B", body, []string{"X-Api-Key", chat}, 400, "invalid_request_error"},
		"a malformed query":         {"?beta=%zz", body, []string{"X-Api-Key", chat}, 400, "invalid_request_error"},
		"two namespaces":            {"?namespace=team&namespace=other", body, []string{"X-Api-Key", chat}, 400, "invalid_request_error"},
		"an agent":                  {"?agent=a", body, []string{"X-Api-Key", chat}, 403, "permission_error"},
		"no JSON":                   {"", `{"model":`, []string{"X-Api-Key", chat}, 400, "invalid_request_error"},
		"two models":                {"", `{"model":"a","model":"b","max_tokens":16,"messages":[1]}`, []string{"X-Api-Key", chat}, 400, "invalid_request_error"},
		"no messages":               {"", `{"model":"m","max_tokens":16,"messages":[]}`, []string{"X-Api-Key", chat}, 400, "invalid_request_error"},
		"a long body":               {"", `{"model":"` + strings.Repeat("x", 15<<20) + `"}`, []string{"X-Api-Key", chat}, 413, "request_too_large"},
		"a worker's rights in vain": {"", body, []string{"X-Api-Key", chat, "Impersonate-User", "system:admin"}, 403, "permission_error"},
	} {
		for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages"} {
			got := s.post(path+tc.query, tc.body, tc.header...)
			var e struct {
				Type  string
				Error struct{ Type, Message string }
			}
			err := json.Unmarshal([]byte(got.Body), &e)
			if got.Code != tc.code || err != nil || e.Error.Type != tc.kind || e.Error.Message == "" || (e.Type == "error") != strings.Contains(path, "anthropic") {
				t.Errorf("%s: %s: %d %.300s, want %d %s", name, path, got.Code, got.Body, tc.code, tc.kind)
			}
			if strings.Contains(got.Body, vendorKey) {
				t.Errorf("%s: the answer has the vendor's key", name)
			}
		}
	}
	if _, n := v.last(); n != 0 {
		t.Errorf("the vendor got %d requests", n)
	}
	for path, code := range map[string]int{"/openai/v1/embeddings": 404, "/anthropic/v1": 404, "/openai/v1/models": 405} {
		if got := s.post(path, body, "X-Api-Key", chat); got.Code != code || !strings.Contains(got.Body, "not_found_error") {
			t.Errorf("%s: %d %s, want %d", path, got.Code, got.Body, code)
		}
	}
}

// The list has each default model with and without its Provider's name, in a form that both protocols' clients read.
func TestModels(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	s.provider("team", "default", v1alpha1.ProviderOpenAI, "http://localhost:1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, "http://localhost:1", "c")
	s.provider("team", "none", v1alpha1.ProviderAnthropic, "http://localhost:1", "")
	token := s.Token(t, "team", "client", "providers-only")
	for _, path := range []string{"/openai/v1/models", "/anthropic/v1/models", "/provider-a/v1/models"} {
		got := s.Send(t, http.MethodGet, path, "", "X-Api-Key", token)
		var list struct {
			Object string
			Data   []struct{ ID, Object, Type string }
		}
		var ids []string
		err := json.Unmarshal([]byte(got.Body), &list)
		for _, m := range list.Data {
			ids = append(ids, m.ID)
		}
		if got.Code != http.StatusOK || err != nil || list.Object != "list" || strings.Join(ids, " ") != "claude/c c default/m m" {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := s.Send(t, http.MethodGet, "/openai/v1/models", "", "X-Api-Key", s.Token(t, "team", "nobody", "")); got.Code != http.StatusForbidden {
		t.Errorf("a caller without permissions: %d %s", got.Code, got.Body)
	}
}
