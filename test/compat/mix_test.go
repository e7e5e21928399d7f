// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/router"
)

// mixed is one kind of request: an endpoint with a Provider of its own protocol or of the other one, streamed or not, with the
// server's tools or without, directly or through the router.
type mixed struct {
	name, url, body string // the body has %d where its number goes
	tools           bool   // of the server
}

// mix returns every kind of request to the server and to the router. Providers are "default", of OpenAI's protocol, and "claude".
func mix(bases [2]string) (all []mixed) {
	const chat = `{"model":%q,"stream":%v,"messages":[{"role":"user","content":"#%%d#"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`
	const message = `{"model":%q,"stream":%v,"max_tokens":100,"messages":[{"role":"user","content":"#%%d#"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`
	const response = `{"model":%q,"stream":%v,"store":false,"input":"#%%d#","tools":[{"type":"function","name":"f","strict":false,"parameters":{}}]}`
	for _, e := range []struct {
		name, path, body, model string
		tools                   bool
	}{
		{"chat completion", "/openai/v1/chat/completions", chat, "m", false},
		{"chat completion, other protocol", "/openai/v1/chat/completions", chat, "claude/c", false},
		{"chat completion with tools", "/openai/v1/chat/completions", chat, "m", true},
		{"response", "/openai/v1/responses", response, "m", false},
		{"message", "/anthropic/v1/messages", message, "claude/c", false},
		{"message, other protocol", "/anthropic/v1/messages", message, "default/m", false},
		{"message with tools", "/anthropic/v1/messages", message, "claude/c", true},
	} {
		for _, stream := range []bool{false, true} {
			for i, base := range bases {
				all = append(all, mixed{
					name: fmt.Sprintf("%s, stream %v, %s", e.name, stream, [...]string{"directly", "through the router"}[i]), url: base + e.path, body: fmt.Sprintf(e.body, e.model, stream), tools: e.tools,
				})
			}
		}
	}
	return all
}

// request returns the request with a number, which is its ID as well.
func (m mixed) request(ctx context.Context, number int, token string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, strings.NewReader(fmt.Sprintf(m.body, number)))
	if err != nil {
		panic(err) // the URL of a test
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Request-Id", "n-"+strconv.Itoa(number))
	if !m.tools {
		r.Header.Set("X-Platform-Tools", "disabled")
	}
	return r
}

var numbered = regexp.MustCompile(`#(\d+)#`)

// fate is how the answer to a request ends.
type fate int

const (
	complete fate = iota
	silent        // about its usage
	broken        // in the middle, before anything is said about usage
)

// mixedVendor speaks all three protocols. Before each answer it asks next about the request with a number: how it ends, and how
// many tokens of input it reports; those of output are twice as many.
func mixedVendor(t testing.TB, next func(number int) (fate, int64)) *vendor {
	t.Helper()
	v := newVendor(t, nil)
	v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // keeps no requests
		body, _ := io.ReadAll(r.Body)
		found := numbered.FindSubmatch(body)
		if found == nil {
			http.Error(w, "no number", http.StatusBadRequest)
			return
		}
		number, _ := strconv.Atoi(string(found[1]))
		end, input := next(number)
		answer(w, r.URL.Path, strings.Contains(string(body), `"stream":true`), end, input)
	})
	return v
}

// answer writes an answer of some 2 KB. A stream has 5 events with text. The mark at its beginning ends a loop with the server's tools.
func answer(w http.ResponseWriter, path string, stream bool, end fate, input int64) {
	text, form := strings.Repeat("x", 400), forms[path[strings.LastIndex(path, "/"):]]
	usage := fmt.Sprintf(form.usage, input, 2*input)
	if !stream {
		body := fmt.Sprintf(form.whole, "[goal: reached]\\n"+strings.Repeat(text, 5), usage)
		if end != complete {
			body = strings.Replace(body, usage, "null", 1)
		}
		w.Header().Set("Content-Type", jsonKind)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if end == broken {
			_, _ = io.WriteString(w, body[:len(body)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, body)
		return
	}
	w.Header().Set("Content-Type", eventKind)
	send := func(event string) {
		_, _ = io.WriteString(w, event+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	first := ""
	if end == complete {
		first = fmt.Sprintf(`,"usage":{"input_tokens":%d}`, input)
	}
	for event := range strings.SplitSeq(strings.Replace(form.begin, "USAGE", first, 1), "\n\n") {
		send(event)
	}
	for i := range 5 {
		if end == broken && i == 3 {
			panic(http.ErrAbortHandler)
		}
		part := text
		if i == 0 {
			part = `[goal: reached]\n` + text
		}
		send(fmt.Sprintf(form.part, part))
	}
	last := fmt.Sprintf(form.end, usage)
	if end == silent {
		last = strings.Replace(last, usage, "null", 1)
	}
	for event := range strings.SplitSeq(last, "\n\n") {
		send(event)
	}
}

// forms are the answers of the vendors' endpoints: their usage, a whole answer, and the events of a stream.
var forms = map[string]struct{ usage, whole, begin, part, end string }{
	"/completions": {
		usage: `{"prompt_tokens":%d,"completion_tokens":%d}`,
		whole: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":%s}`,
		begin: `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		part:  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`,
		end: `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":%s}` + "\n\ndata: [DONE]",
	},
	"/responses": {
		usage: `{"input_tokens":%d,"output_tokens":%d}`,
		whole: `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"i","role":"assistant","status":"completed","content":[{"type":"output_text","text":"%s","annotations":[]}]}],"usage":%s}`,
		begin: "event: response.created\n" + `data: {"type":"response.created","response":{"id":"r","status":"in_progress","usage":null}}`,
		part:  "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"%s"}`,
		end:   "event: response.completed\n" + `data: {"type":"response.completed","response":{"id":"r","status":"completed","usage":%s}}`,
	},
	"/messages": {
		usage: `{"input_tokens":%d,"output_tokens":%d}`,
		whole: `{"id":"msg","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn","stop_sequence":null,"usage":%s}`,
		begin: "event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":nullUSAGE}}` + "\n\n" +
			"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		part: "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`,
		end: "event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
			"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":%s}` + "\n\n" +
			"event: message_stop\n" + `data: {"type":"message_stop"}`,
	},
}

// onMix starts a server and a router in this process for the requests of mix, and returns what sends them.
func onMix(t *testing.T, s *server, v *vendor) (kinds []mixed, token string) {
	t.Helper()
	s.namespace("team")
	s.provider("team", "default", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "c")
	return mix([2]string{s.RESTURL, s.routerHere()}), s.Token(t, "team", "client", "chat")
}

// routerHere starts a router for namespace team in this process and returns its address.
func (s *server) routerHere() string {
	t := s.t
	t.Helper()
	o := router.NewOptions()
	o.BindAddress = "127.0.0.1:0"
	o.RoutesFile, o.Kubeconfig = s.routerFiles()
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	o.Ready = func(address, _ net.Addr) { ready <- address }
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Background().V(10)))
	go func() { done <- router.Run(ctx, *o) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the router ended with: %v", err)
		}
	})
	select {
	case address := <-ready:
		return "http://" + address.String()
	case err := <-done:
		done <- nil
		t.Fatalf("the router did not start: %v", err)
	}
	return ""
}

// early lets clients leave once the vendor has their request, before it answers.
type early struct{ leave sync.Map }

// on calls leave when the vendor has the request with a number.
func (e *early) on(number int, leave func()) { e.leave.Store(number, leave) }

// asked is called by the vendor.
func (e *early) asked(number int) {
	if leave, ok := e.leave.LoadAndDelete(number); ok {
		leave.(func())()
	}
}
