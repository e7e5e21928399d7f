// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// What the other protocol cannot carry is refused, and the vendor gets nothing.
func TestUntranslatable(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	v := newVendor(t, says(http.StatusOK, jsonKind, "{}"))
	s.provider("team", "openai", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "m")
	token := s.Token(t, "team", "client", "chat")
	const user = `{"role":"user","content":"h"}`
	for what, member := range map[string]string{
		"a seed":              `"seed":1,"messages":[` + user + `]`,
		"an unknown member":   `"future":1,"messages":[` + user + `]`,
		"a format":            `"response_format":{"type":"json_object"},"messages":[` + user + `]`,
		"a choice of tools":   `"tool_choice":"required","messages":[` + user + `]`,
		"an image":            `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]`,
		"a member of a part":  `"messages":[{"role":"user","content":[{"type":"text","text":"h","future":1}]}]`,
		"arguments, not JSON": `"messages":[` + user + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}]`,
		"a custom tool":       `"tools":[{"type":"custom","custom":{"name":"f"}}],"messages":[` + user + `]`,
	} {
		got := s.post("/openai/v1/chat/completions", `{"model":"claude/m",`+member+`}`, "X-Api-Key", token)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body, `"invalid_request_error"`) {
			t.Errorf("chat: %s: %d %s", what, got.Code, got.Body)
		}
	}
	for what, member := range map[string]string{
		"an unknown member": `"future":1,"messages":[` + user + `]`,
		"an image":          `"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]`,
		"a tool of theirs":  `"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[` + user + `]`,
		"a begun answer":    `"messages":[` + user + `,{"role":"assistant","content":"I"}]`,
		"no blocks":         `"messages":[{"role":"user","content":[]}]`,
	} {
		got := s.post("/anthropic/v1/messages", `{"model":"openai/m","max_tokens":9,`+member+`}`, "X-Api-Key", token)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body, `"invalid_request_error"`) {
			t.Errorf("message: %s: %d %s", what, got.Code, got.Body)
		}
	}
	const call = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	for what, member := range map[string]string{
		"an unknown member":         `"future":1,"input":"h"`,
		"a form":                    `"text":{"format":{"type":"json_object"}},"input":"h"`,
		"a choice of tools":         `"tool_choice":"required","input":"h"`,
		"a tool of theirs":          `"tools":[{"type":"web_search"}],"input":"h"`,
		"a small limit":             `"max_output_tokens":15,"input":"h"`,
		"an image":                  `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,"}]}]`,
		"a reference":               `"input":[{"type":"item_reference","id":"msg_1"}]`,
		"a message between":         `"input":[` + user + `,` + call + `,` + user + `,{"type":"function_call_output","call_id":"a","output":"x"}]`,
		"arguments, not JSON":       `"input":[` + user + `,{"type":"function_call","call_id":"a","name":"f","arguments":"{"},{"type":"function_call_output","call_id":"a","output":"x"}]`,
		"a result of no call":       `"input":[` + user + `,{"type":"function_call_output","output":"x"}]`,
		"an end with the assistant": `"input":[` + user + `,{"role":"assistant","content":"I"}]`,
		"an id with a dot":          `"input":[` + user + `,{"type":"function_call","call_id":"a.b","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a.b","output":"x"}]`,
		"no text":                   `"input":" "`,
		"no list":                   `"input":{}`,
	} {
		got := s.post("/openai/v1/responses", `{"model":"claude/m","store":false,`+member+`}`, "X-Api-Key", token)
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body, `"invalid_request_error"`) {
			t.Errorf("response: %s: %d %s", what, got.Code, got.Body)
		}
	}
	if last, n := v.last(); n != 0 {
		t.Errorf("the vendor got %d requests, the last one %s", n, last.body)
	}
}

// Another candidate of an Agent is asked if the first one fails before its answer has begun, and only then. A Provider's
// key is in no error.
func TestFallback(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	first, second := newVendor(t, nil), newVendor(t, says(http.StatusOK, jsonKind, chatAnswer))
	s.provider("team", "first", v1alpha1.ProviderOpenAI, first.URL, "m1")
	s.provider("team", "second", v1alpha1.ProviderOpenAI, second.URL, "m2")
	ref := func(name string) *v1alpha1.NamespacedReference { return &v1alpha1.NamespacedReference{Name: name} }
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: ref("first"), Model: &v1alpha1.AgentModel{Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref("second")}}},
	}}
	if _, err := s.admin.Agents("team").Create(context.Background(), agent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := s.Token(t, "team", "client", "cluster-admin")
	const body = `{"stream":%v,"messages":[{"role":"user","content":"h"}]}`
	echo := `{"error":{"message":"bad key ` + vendorKey + `","type":"x"}}`
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", eventKind)
		_, _ = w.Write([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"cho"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	for what, tc := range map[string]struct {
		answer http.HandlerFunc
		stream bool
		code   int
		says   string
		asked  int // how often the second one is asked
	}{
		"overloaded":           {says(503, jsonKind, echo), false, 200, "Hello", 1},
		"a refused key":        {says(401, jsonKind, echo), false, 200, "Hello", 1},
		"a page":               {says(200, "text/html", "<html>"), false, 200, "Hello", 1},
		"an error, 200":        {says(200, jsonKind, echo), false, 200, "Hello", 1},
		"nothing":              {says(200, jsonKind, ""), false, 200, "Hello", 1},
		"a stream of an error": {says(200, eventKind, "data: "+echo+"\n\n"), false, 200, "Hello", 1},
		"too many requests":    {says(429, jsonKind, echo), false, 200, "Hello", 1},
		"a redirect":           {http.RedirectHandler("http://localhost:1", http.StatusTemporaryRedirect).ServeHTTP, false, 502, "redirect", 0},
		"an invalid request":   {says(400, jsonKind, echo), false, 400, "bad key [REDACTED]", 0},
		"a stream that broke":  {cut, true, 200, "broke off", 0},
	} {
		first.answer = tc.answer
		_, before := second.last()
		got := s.post("/openai/v1/chat/completions?agent=a", fmt.Sprintf(body, tc.stream), "X-Api-Key", token)
		_, after := second.last()
		if got.Code != tc.code || !strings.Contains(got.Body, tc.says) || after-before != tc.asked {
			t.Errorf("%s: %d %s, and the second one was asked %d times", what, got.Code, got.Body, after-before)
		}
		if strings.Contains(got.Body, vendorKey) || strings.Contains(got.Body, "[DONE]") {
			t.Errorf("%s: %s", what, got.Body)
		}
	}
	second.answer = says(401, jsonKind, echo)
	first.answer = says(403, jsonKind, echo)
	got := s.post("/openai/v1/chat/completions?agent=a", fmt.Sprintf(body, false), "X-Api-Key", token)
	if got.Code != http.StatusBadGateway || strings.Contains(got.Body, vendorKey) || !strings.Contains(got.Body, "its API key was refused") {
		t.Errorf("both keys refused: %d %s", got.Code, got.Body)
	}
}

// A fallback whose protocol cannot carry a request is passed over, which the answer says: the one behind it is asked, and if there
// is none, the error of the one before stands.
func TestFallbackOfAnotherProtocol(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := start(t)
	s.namespace("team")
	busy, other, third := newVendor(t, says(http.StatusServiceUnavailable, jsonKind, `{"error":{"message":"try later","type":"x"}}`)), newVendor(t, says(http.StatusOK, jsonKind, messageAnswer)), newVendor(t, says(http.StatusOK, jsonKind, chatAnswer))
	s.provider("team", "busy", v1alpha1.ProviderOpenAI, busy.URL, "m1")
	s.provider("team", "other", v1alpha1.ProviderAnthropic, other.URL, "m2")
	s.provider("team", "third", v1alpha1.ProviderOpenAI, third.URL, "m3")
	ref := func(name string) *v1alpha1.NamespacedReference { return &v1alpha1.NamespacedReference{Name: name} }
	for name, behind := range map[string][]string{"three": {"other", "third"}, "two": {"other"}} {
		agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{ProviderRef: ref("busy"), Model: &v1alpha1.AgentModel{}}}
		for _, f := range behind {
			agent.Spec.Model.Fallbacks = append(agent.Spec.Model.Fallbacks, v1alpha1.ModelFallback{ProviderRef: ref(f)})
		}
		if _, err := s.admin.Agents("team").Create(t.Context(), agent, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token := s.Token(t, "team", "client", "cluster-admin")
	const plain, seeded = `{"messages":[{"role":"user","content":"h"}],"max_tokens":64}`, `{"seed":7,"messages":[{"role":"user","content":"h"}],"max_tokens":64}`
	for _, tc := range []struct {
		agent, body string
		code        int
		says        string
		passed      string
	}{
		{"three", plain, http.StatusOK, "Hello", ""}, // of the other protocol
		{"three", seeded, http.StatusOK, "Hello", "other (seed)"},
		{"two", seeded, http.StatusServiceUnavailable, "try later", "other (seed)"},
	} {
		if got := s.post("/openai/v1/chat/completions?agent="+tc.agent, tc.body, "X-Api-Key", token); got.Code != tc.code || !strings.Contains(got.Body, tc.says) || got.Header.Get("X-Platform-Passed-Over") != tc.passed {
			t.Errorf("%s, %s: %d %v %s", tc.agent, tc.body, got.Code, got.Header, got.Body)
		}
	}
	for v, want := range map[*vendor]int{busy: 3, other: 1, third: 1} {
		if _, n := v.last(); n != want {
			t.Errorf("a vendor was asked %d times, want %d", n, want)
		}
	}
}

// A client that leaves in the middle of a stream does not lose its usage.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := start(t, func(o *standalone.Options) { o.Metrics = reg })
	s.namespace("team")
	next, ended := make(chan struct{}), make(chan error, 1)
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventKind)
		for _, data := range []string{`{"choices":[{"delta":{"content":"x"}}],"usage":null}`, `{"choices":[{"delta":{"content":"y"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1234,"completion_tokens":5678}}`, `[DONE]`} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		ended <- r.Context().Err()
	})
	s.provider("team", "default", v1alpha1.ProviderOpenAI, v.URL, "m")
	token := s.Token(t, "team", "client", "chat")
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.RESTURL+"/openai/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", token)
	req.Header.Set("X-Platform-Tools", "disabled")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 1000)
	n, err := resp.Body.Read(buf)
	if err != nil || string(buf[:n]) != "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n" {
		t.Fatalf("the first event: %q, %v", buf[:n], err)
	}
	leave()
	for range 4 {
		next <- struct{}{}
	}
	if err := <-ended; err != nil {
		t.Errorf("the vendor's request ended with the client's: %v", err)
	}
	if last, _ := v.last(); !strings.Contains(last.body, `"stream_options":{"include_usage":true}`) {
		t.Errorf("the vendor was not asked for its usage: %s", last.body)
	}
	kit.Await(t, "1234 tokens of input and 5678 of output are counted", func() bool {
		return tokens(t, reg, "input") == 1234 && tokens(t, reg, "output") == 5678
	})
}

// tokens returns the tokens that were counted in a direction.
func tokens(t *testing.T, reg *prometheus.Registry, direction string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "platform_compat_model_tokens_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "direction" && l.GetValue() == direction {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}
