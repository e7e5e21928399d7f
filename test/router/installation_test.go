// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// installation is a stand-in for the API of one installation: it speaks the two APIs on the wire and records its requests.
// Its answers name the installation.
type installation struct {
	*httptest.Server
	name string
	// serve, if set, answers instead.
	serve http.HandlerFunc
	// next, if set, is received from before each part of a stream is sent.
	next chan struct{}

	mu   sync.Mutex // guards seen
	seen []seen
}

// seen is a request as it arrived.
type seen struct {
	method, path, query string
	header              http.Header
	bodySize            int64
}

func newInstallation(t *testing.T, name string) *installation {
	t.Helper()
	in := &installation{name: name}
	in.Server = httptest.NewServer(in)
	t.Cleanup(in.Close)
	return in
}

func (in *installation) requests() []seen {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]seen(nil), in.seen...)
}

func (in *installation) last(t *testing.T) seen {
	t.Helper()
	all := in.requests()
	if len(all) == 0 {
		t.Fatal("nothing reached the installation")
	}
	return all[len(all)-1]
}

func (in *installation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if in.serve != nil {
		in.note(r, 0)
		in.serve(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	in.note(r, int64(len(body)))
	var request struct {
		Stream bool `json:"stream"`
	}
	if len(body) > 0 && json.Unmarshal(body, &request) != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"the installation says no","type":"invalid_request_error","param":null,"code":null}}`)
		return
	}
	switch {
	case r.URL.Path == "/openai/v1/models" || r.URL.Path == "/anthropic/v1/models":
		in.json(w, `{"object":"list","data":[{"id":"%s/model","object":"model","created":1,"owned_by":"openai"}]}`)
	case r.URL.Path == "/openai/v1/chat/completions" && request.Stream:
		in.stream(w, "", `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"%s"},"finish_reason":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"stop"}]}`, `[DONE]`)
	case r.URL.Path == "/openai/v1/chat/completions":
		in.json(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%s!"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	case r.URL.Path == "/openai/v1/responses" && request.Stream:
		in.stream(w, "", `{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"sequence_number":1,"delta":"%s"}`,
			`{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"sequence_number":2,"delta":"!"}`)
	case r.URL.Path == "/openai/v1/responses":
		in.json(w, `{"id":"r","object":"response","created_at":1,"model":"m","status":"completed","output":[{"type":"message","id":"i","role":"assistant","status":"completed","content":[{"type":"output_text","text":"%s!","annotations":[]}]}]}`)
	case r.URL.Path == "/anthropic/v1/messages" && request.Stream:
		in.stream(w, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"!"}}`)
	case r.URL.Path == "/anthropic/v1/messages":
		in.json(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"%s!"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	case r.URL.Path == "/anthropic/v1/messages/count_tokens":
		in.json(w, `{"input_tokens":1,"installation":"%s"}`)
	default:
		http.NotFound(w, r)
	}
}

func (in *installation) note(r *http.Request, size int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.seen = append(in.seen, seen{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, header: r.Header.Clone(), bodySize: size})
}

func (in *installation) json(w http.ResponseWriter, format string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, format, in.name)
}

// stream sends server-sent events; the first names the installation.
func (in *installation) stream(w http.ResponseWriter, event, first string, rest ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	for _, data := range append([]string{fmt.Sprintf(first, in.name)}, rest...) {
		if in.next != nil {
			<-in.next
		}
		if event != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", event)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		_ = flush()
	}
}
