// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// messageScript: a chief delegates to two clerks. The first greets its siblings and reports to the chief; the second reads the
// greeting. The model's answers wait for each other, see inTurn.
const messageScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Ask both, offered: [delegate_task, send_message, check_messages]}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Greet the others."}}, {name: delegate_task, arguments: {agent: clerk, prompt: "Read the greeting."}}]}
- name: greet
  match: {turn: 1, lastRole: user, contains: Greet the others, offered: [send_message, check_messages]}
  reply: {toolCalls: [{name: send_message, arguments: {to_task: "*", content: "good morning, the key is ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}]}
- name: write to a stranger
  match: {lastRole: tool, contains: "the message was sent to team-child-"}
  reply: {toolCalls: [{name: send_message, arguments: {to_task: other, content: "hello"}}]}
- name: report
  match: {lastRole: tool, contains: 'task \"other\" is not of its family'}
  reply: {toolCalls: [{name: send_message, arguments: {to_task: team, content: "I greeted them."}}]}
- name: greeted
  match: {lastRole: tool, contains: '"the message was sent to team"'}
  reply: {text: I greeted.}
- name: read
  match: {turn: 1, lastRole: user, contains: Read the greeting}
  reply: {toolCalls: [{name: check_messages, arguments: {}}]}
- name: read twice
  match: {turn: 2, lastRole: tool, contains: 'good morning'}
  reply: {toolCalls: [{name: check_messages, arguments: {}}]}
- name: has read
  match: {turn: 3, lastRole: tool, contains: 'no new messages'}
  reply: {text: "I have read it once."}
- name: wait
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: listen
  match: {turn: 3, lastRole: tool, contains: 'I have read it once.'}
  reply: {toolCalls: [{name: check_messages, arguments: {}}]}
- name: answer
  match: {turn: 4, lastRole: tool}
  reply: {text: "{{ (index .Results.check_messages.data 0).content }}"}
`

// TestMessagesOfATeam: children of one task write to each other and to their parent; the messages are events that people
// can read, and are served to workers on the documented path.
func TestMessagesOfATeam(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithModel(t, messageScript)
	inTurn(p, model)
	p.Team()
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Schedule: "@yearly"},
	}, metav1.CreateOptions{}))
	p.Give("team", "chief", "Ask both.", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("team"); got != "I greeted them." {
		t.Errorf("the result is %q", got)
	}
	list := kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{
		FieldSelector: "rootTask=team,type=" + string(v1alpha1.EventTaskMessageReceived),
	}))
	var texts []string
	for _, e := range list.Items {
		texts = append(texts, e.ContentText)
	}
	if got := strings.Join(texts, "; "); got != "good morning, the key is [REDACTED]; I greeted them." && got != "I greeted them.; good morning, the key is [REDACTED]" {
		t.Errorf("the messages are %q", got)
	}
}

// inTurn puts a server before the model. It answers the child which greets only once its sibling exists, because a message to all
// goes to those who exist, and the child which reads only once the greeting has arrived.
func inTurn(p *standalone.Platform, model http.Handler) {
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		ready := func() bool { return true }
		switch {
		case bytes.Contains(body, []byte("delegate_task")): // the chief
		case bytes.Contains(body, []byte("Greet the others")):
			ready = func() bool {
				list, err := p.Tasks().List(r.Context(), metav1.ListOptions{FieldSelector: "rootTask=team"})
				return err == nil && len(list.Items) == 3
			}
		case bytes.Contains(body, []byte("Read the greeting")):
			ready = func() bool {
				list, err := p.API().ExecutionEvents("default").List(r.Context(), metav1.ListOptions{
					FieldSelector: "rootTask=team,type=" + string(v1alpha1.EventTaskMessageReceived),
				})
				return err == nil && len(list.Items) > 0
			}
		}
		for tick := time.NewTicker(10 * time.Millisecond); !ready() && r.Context().Err() == nil; <-tick.C { // not a test's goroutine, so no Await
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	}))
	p.T.Cleanup(gate.Close)
	kit.Must[*v1alpha1.Provider](p.T)(p.API().Providers("default").Patch(p.T.Context(), "model", types.MergePatchType,
		[]byte(`{"spec":{"baseURL":"`+gate.URL+`/v1"}}`), metav1.PatchOptions{}))
}

// TestRESTMessages: workers send and read messages on the documented paths.
func TestRESTMessages(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	workers := s.RESTFamily(t)
	const all = "/internal/v1/messages/default"
	say := func(by, body string) host.Answer { return workers[by].Post(all, body) }
	if a := say("a", `{"fromTask":"a","toTask":"*","parentTask":"lead","content":"hello"}`); a.Code != 204 || a.Body != "" {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	for by, paths := range map[string][]string{"b": {"/b?parentTask=lead&markRead=false", "/b?parentTask=lead", "/b?parentTask=lead"}} {
		for i, want := range []string{`"read":false`, `"read":true`, "[]"} {
			workers[by].Get(all+paths[i]).Want(t, 200, want)
		}
	}
	say("b", `{"fromTask":"b","toTask":"lead","parentTask":"lead","content":"hello, too"}`).Want(t, 204)
	got := host.Decode[[]map[string]any](t, workers["lead"].Get(all+"/lead?parentTask=lead").Want(t, 200))
	if len(got) != 1 || got[0]["id"] == "" || got[0]["createdAt"] == nil || len(got[0]) != 8 || got[0]["fromTask"] != "b" || got[0]["toTask"] != "lead" ||
		got[0]["parentTask"] != "lead" || got[0]["namespace"] != "default" || got[0]["content"] != "hello, too" || got[0]["read"] != true {
		t.Errorf("got %v", got)
	}
	say("a", `{"fromTask":"b","toTask":"lead","parentTask":"lead","content":"x"}`).Problem(t, 403, "another task")
	say("a", `{"fromTask":"a/messages","toTask":"lead","parentTask":"lead","content":"x"}`).Problem(t, 400, "fromTask: ")
	say("a", `{"fromTask":"a","toTask":"lead","content":"x"}`).Problem(t, 400, "parentTask: is required")
	say("a", `{"fromTask":"a","toTask":"lead","parentTask":"other","content":"x"}`).Problem(t, 400, "the parent of the family is")
	say("a", `{"fromTask":"a","toTask":"lead","parentTask":"lead","content":"x","colour":"red"}`).Problem(t, 400, "colour")
	workers["a"].Get(all+"/a").Problem(t, 400, "parentTask: is required")
	workers["a"].Get(all+"/b?parentTask=lead").Problem(t, 403, "another task")
	workers["a"].Get(all+"/a?parentTask=other").Problem(t, 403, "spec.parentTask")
	s.REST(t, "default", "vi", "view").Get(all+"/a?parentTask=lead").Problem(t, 403, "cannot create")
}
