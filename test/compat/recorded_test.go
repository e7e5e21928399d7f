// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// recordedSecret is said by the client and by the vendor.
const recordedSecret = "ghp_0123456789abcdefghijklmnopqrstuvwxAB"

// What clients and vendors of each API say, as whole answers and as streams.
const (
	saidChat = `{"model":"default/m","max_tokens":16,"stream":%t,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Look for ` + recordedSecret + `."}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"found"}],` +
		`"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"}}}]}`
	saidMessages = `{"model":"claude/c","max_tokens":16,"stream":%t,"system":"Be brief.","messages":[{"role":"user","content":"Look for ` + recordedSecret + `."},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{"at":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"found"}]}],` +
		`"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"}}]}`
	saidResponses = `{"model":"default/m","store":false,"max_output_tokens":16,"stream":%t,"instructions":"Be brief.","input":[{"role":"user","content":"Look for ` + recordedSecret + `."},` +
		`{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":1}"},{"type":"function_call_output","call_id":"c1","output":"found"}],` +
		`"tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"}}]}`

	wholeChat      = `{"choices":[{"message":{"role":"assistant","content":"Here: ` + recordedSecret + `.","tool_calls":[{"id":"c2","type":"function","function":{"name":"look","arguments":"{\"at\":2}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
	wholeMessages  = `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"Here: ` + recordedSecret + `."},{"type":"tool_use","id":"c2","name":"look","input":{"at":2}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`
	wholeResponses = `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Here: ` + recordedSecret + `."}]},{"type":"function_call","call_id":"c2","name":"look","arguments":"{\"at\":2}"}],"usage":{"input_tokens":1,"output_tokens":2}}`

	streamChat = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Here: ghp_0123456789abcdef"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"ghijklmnopqrstuvwxAB."}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"name":"look","arguments":"{\"at\""}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":2}"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	streamMessages = `data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Here: ` + recordedSecret + `."}}` + "\n\n" +
		`data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c2","name":"look","input":{}}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"at\":2}"}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
	streamResponses = `data: {"type":"response.created","response":{"object":"response","status":"in_progress"}}` + "\n\n" +
		`data: {"type":"response.completed","response":` + wholeResponses + `}` + "\n\n"
)

// TestRequestsAreRecorded: in a namespace that wants it, what clients of each API say, and what the vendor answers, is kept with the
// usage of the request, for those who may read it and without secrets; in every other namespace nothing is.
func TestRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	s := start(t)
	open, claude := newVendor(t, nil), newVendor(t, nil)
	for _, ns := range []string{"team", "quiet"} {
		s.namespace(ns)
		s.provider(ns, "default", v1alpha1.ProviderOpenAI, open.URL+"/v1", "m")
		s.provider(ns, "claude", v1alpha1.ProviderAnthropic, claude.URL, "c")
	}
	label := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelRecordRequests + `":"Full"}}}`)
	if _, err := s.Kubernetes(t).CoreV1().Namespaces().Patch(t.Context(), "team", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the label to be seen", func() bool {
		open.answer = says(http.StatusOK, jsonKind, chatAnswer)
		return s.recordingOf(t, "team", s.measured(t, "team", "/openai/v1/chat/completions", `{"model":"default/m","messages":[{"role":"user","content":"Hello."}]}`)) != nil
	})
	var quiet []string

	for _, c := range []struct {
		name, path, body, whole, stream string
		vendor                          *vendor
		thinks                          string
	}{
		{"chat completions", "/openai/v1/chat/completions", saidChat, wholeChat, streamChat, open, ""},
		{"messages", "/anthropic/v1/messages", saidMessages, wholeMessages, streamMessages, claude, "Hm."},
		{"responses", "/openai/v1/responses", saidResponses, wholeResponses, streamResponses, open, ""},
	} {
		for _, stream := range []bool{false, true} {
			kind, answer := jsonKind, c.whole
			if stream {
				kind, answer = eventKind, c.stream
			}
			c.vendor.answer = says(http.StatusOK, kind, answer)
			quiet = append(quiet, s.measured(t, "quiet", c.path, fmt.Sprintf(c.body, stream)))
			name := s.measured(t, "team", c.path, fmt.Sprintf(c.body, stream))
			var r *v1alpha1.RequestRecording
			kit.Await(t, c.name+" to be recorded", func() bool {
				r = s.recordingOf(t, "team", name)
				return r != nil
			})
			if got, want := saidBy(r), "system:Be brief.|user:Look for [REDACTED].|assistant: look {\"at\":1}|tool:found|assistant:Here: [REDACTED]. look {\"at\":2}"; !strings.EqualFold(got, want) {
				t.Errorf("%s, stream %t: recorded %s\nwant %s", c.name, stream, got, want)
			}
			if r.Answer.Message.Thinking != c.thinks || len(r.Tools.Tools) != 1 || r.Tools.Tools[0].Name != "look" || r.Tools.Tools[0].Parameters == nil || r.Parameters.MaxTokens != 16 {
				t.Errorf("%s, stream %t: %+v %+v %+v", c.name, stream, r.Answer.Message, r.Tools, r.Parameters)
			}
			if raw, err := json.Marshal(r); err != nil || strings.Contains(string(raw), recordedSecret) {
				t.Errorf("%s, stream %t: the recording has the secret (%v)", c.name, stream, err)
			}
		}
	}
	for _, name := range quiet {
		if s.recordingOf(t, "quiet", name) != nil {
			t.Errorf("%s: a namespace that did not ask for it has a recording", name)
		}
	}
}

// saidBy returns a conversation with its answer on one line.
func saidBy(r *v1alpha1.RequestRecording) string {
	var out []string
	for _, p := range append(r.Conversation, *r.Answer) {
		line := p.Omitted
		if p.Message != nil {
			line = p.Message.Role + ":" + p.Message.Text
			for _, c := range p.Message.ToolCalls {
				line += " " + c.Name + " " + c.Arguments
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "|")
}

// measured makes a request, and returns the name of its measurement when it is complete.
func (s *server) measured(t *testing.T, namespace, path, body string) (name string) {
	t.Helper()
	token := s.Token(t, namespace, "client", "chat")
	if got := s.post(path+"?namespace="+namespace, body, "Authorization", "Bearer "+token); got.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, got.Code, got.Body)
	}
	kit.Await(t, "the end of the request", func() bool {
		list := kit.Must[*v1alpha1.UsageMeasurementList](t)(s.admin.UsageMeasurements(namespace).List(t.Context(), metav1.ListOptions{}))
		var newest *v1alpha1.UsageMeasurement
		for i := range list.Items {
			if m := &list.Items[i]; newest == nil || m.Status.StartedAt.After(newest.Status.StartedAt.Time) {
				newest = m
			}
		}
		if newest == nil || newest.Status.State != "completed" {
			return false
		}
		name = newest.Name
		return true
	})
	return name
}

// recordingOf returns what is recorded of a request; nil for nothing.
func (s *server) recordingOf(t *testing.T, namespace, name string) *v1alpha1.RequestRecording {
	t.Helper()
	r, err := s.admin.UsageMeasurements(namespace).GetRecording(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return kit.Must[*v1alpha1.RequestRecording](t)(r, err)
}
