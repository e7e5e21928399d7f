// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/quickclock"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
	"github.com/platform-ai/platform/test/tokenservice"
)

// tools is a world whose tasks have real workers, on a scripted model.
type tools struct {
	*world
	model *script.Server
}

// newTools starts a server whose model follows a script. People may create tasks in namespace team, whose agent clerk has tools.
func newTools(t *testing.T, text string, names ...string) *tools {
	t.Helper()
	w := &world{tokens: tokenservice.New(t), clock: &quickclock.Ahead{}, metrics: prometheus.NewRegistry(), provider: oauthprovider.New(t)}
	x := &tools{world: w}
	w.Platform, x.model = standalone.WithModel(t, text, standalone.OnAPort(t), func(o *standalone.Options) {
		o.Clock, o.Metrics = w.clock, w.metrics
		o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, base, w.provider.Transport()
		o.Identity = identity(w.tokens.URL)
	})
	w.Namespaces(t, "team")
	w.secret()
	w.apply()
	model := kit.Must[*v1alpha1.Provider](t)(w.API().Providers("default").Get(t.Context(), "model", metav1.GetOptions{}))
	w.Answers("team", strings.TrimSuffix(model.Spec.BaseURL, "/v1"))
	w.people()
	clerk := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "clerk"}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "default"}}}
	for _, name := range names {
		clerk.Spec.Tools = append(clerk.Spec.Tools, v1alpha1.AgentTool{Name: name})
	}
	kit.Must[*v1alpha1.Agent](t)(w.API().Agents("team").Create(t.Context(), clerk, metav1.CreateOptions{}))
	return x
}

// ask has a person create a task of the clerk, and waits for its end.
func (x *tools) ask(c *standalone.Client, name string) *v1alpha1.Task {
	x.T.Helper()
	x.begin(c, name)
	return x.end(name)
}

// begin has a person create a task of the clerk.
func (x *tools) begin(c *standalone.Client, name string) {
	x.T.Helper()
	c.Post("/api/v1/tasks", `{"name":"`+name+`","type":"ai","prompt":"Go.","agentRef":{"name":"clerk"}}`).Want(x.T, http.StatusCreated)
}

// end waits for the end of a task.
func (x *tools) end(name string) *v1alpha1.Task {
	x.T.Helper()
	var task *v1alpha1.Task
	kit.Await(x.T, "the end of "+name, func() bool {
		task = x.task(name)
		return task.Status.Phase.Terminal()
	})
	return task
}

func (x *tools) task(name string) *v1alpha1.Task {
	x.T.Helper()
	return kit.Must[*v1alpha1.Task](x.T)(x.API().Tasks("team").Get(x.T.Context(), name, metav1.GetOptions{}))
}

// result returns what a task came to.
func (x *tools) result(c *standalone.Client, name string) string {
	x.T.Helper()
	return host.Decode[struct{ Result string }](x.T, c.Get("/api/v1/tasks/"+name+"/result").Want(x.T, http.StatusOK)).Result
}

// readScript calls the tool find once, and says what came of it.
const readScript = `
models: [scripted-1]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: find, arguments: {q: shoes}}]}
- match: {turn: 2, lastRole: tool}
  reply: {text: "{{ printf \"%v\" .Results.find }}"}
`

// An agent reads with the account of whoever asked for its task, and with nobody else's. Without an account it says which one to connect.
func TestReadWithAnAccount(t *testing.T) {
	t.Parallel()
	x := newTools(t, readScript, "find")
	ann, ben := x.person("user-ann"), x.person("user-ben")
	linked := x.linked(ann, "")

	if task := x.ask(ann, "hers"); task.Status.Phase != v1alpha1.TaskSucceeded {
		t.Fatalf("task: %+v", task.Status)
	}
	if got := x.result(ann, "hers"); !strings.Contains(got, "q:shoes") || !strings.Contains(got, "status:200") {
		t.Errorf("result: %s", got)
	}
	calls := x.provider.Calls()
	if len(calls) != 1 || calls[0].Method != http.MethodPost || calls[0].Body != `{"q":"shoes"}` {
		t.Fatalf("calls: %+v", calls)
	}
	want := v1alpha1.TaskConnectionBinding{Tool: "find", ConnectorProvider: "provider", Connection: linked.Name, ConnectionUID: x.get(linked.Name).UID, GrantSequence: 1}
	got := x.task("hers").Status.ConnectionBindings
	if len(got) != 1 {
		t.Fatalf("bindings: %+v", got)
	}
	want.ToolDigest, want.AuthorityDigest = got[0].ToolDigest, got[0].AuthorityDigest
	if got[0] != want || want.ToolDigest == "" || want.AuthorityDigest == "" {
		t.Errorf("bindings: %+v", got)
	}

	x.ask(ben, "his")
	if got := x.result(ben, "his"); !strings.Contains(got, "has not connected an account") || !strings.Contains(got, "platform connection connect provider -n team") {
		t.Errorf("without an account: %s", got)
	}
	if n := len(x.provider.Calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
	// Nobody is known to have asked for a task of an administrator.
	kit.Must[*v1alpha1.Task](t)(x.API().Tasks("team").Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "nobodys"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "Go.", AgentRef: &v1alpha1.NamespacedReference{Name: "clerk"}},
	}, metav1.CreateOptions{}))
	x.end("nobodys")
	if got := x.result(ann, "nobodys"); !strings.Contains(got, "unknown_tool") {
		t.Errorf("nobody's task: %s", got)
	}
	x.leaked(x.provider.Secrets())
}

// writeScript calls the tool note once, and says what came of it.
const writeScript = `
models: [scripted-1]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: note, arguments: {text: hello}}]}
- match: {turn: 2, lastRole: tool}
  reply: {text: "{{ printf \"%v\" .Results.note }}"}
`

// What an agent writes with an account waits for an approval, which names the effect. Declined, nothing is sent.
func TestWriteWithAnAccount(t *testing.T) {
	t.Parallel()
	x := newTools(t, writeScript, "note")
	ann := x.person("user-ann")
	linked := x.linked(ann, "readWrite")

	x.begin(ann, "hers")
	a := x.asked("hers")
	e := x.effect(a.Spec.Binding.Effect)
	if e.Status.State != v1alpha1.ToolEffectPending || e.Spec.TaskName != "hers" || e.Spec.RequestDigest != a.Spec.TargetArgsDigest || e.Spec.Connection.Name != linked.Name || len(x.provider.Calls()) != 0 {
		t.Fatalf("before the approval: %+v %+v", e.Spec, e.Status)
	}
	x.decide(ann, "hers", a.Name, "approve")
	if task := x.end("hers"); task.Status.Phase != v1alpha1.TaskSucceeded {
		t.Fatalf("task: %+v", task.Status)
	}
	if got := x.result(ann, "hers"); !strings.Contains(got, "text:hello") || !strings.Contains(got, "status:200") {
		t.Errorf("result: %s", got)
	}
	if calls := x.provider.Calls(); len(calls) != 1 || calls[0].Body != `{"text":"hello"}` || calls[0].Header.Get("Idempotency-Key") != a.Name {
		t.Errorf("calls: %+v", calls)
	}
	if s := x.effect(e.Name).Status; s.State != v1alpha1.ToolEffectSucceeded || s.ApprovalID != a.Name {
		t.Errorf("effect: %+v", s)
	}

	x.begin(ann, "declined")
	a = x.asked("declined")
	x.decide(ann, "declined", a.Name, "decline")
	x.end("declined")
	if got := x.result(ann, "declined"); !strings.Contains(got, "approval_declined") || len(x.provider.Calls()) != 1 {
		t.Errorf("declined: %s", got)
	}
	x.leaked(x.provider.Secrets())
}

// asked waits for the approval that a task asks for.
func (x *tools) asked(task string) *v1alpha1.Approval {
	x.T.Helper()
	var found *v1alpha1.Approval
	kit.Await(x.T, "an approval of "+task, func() bool {
		for _, a := range kit.Must[*v1alpha1.ApprovalList](x.T)(x.API().Approvals("team").List(x.T.Context(), metav1.ListOptions{})).Items {
			if a.Spec.TaskName == task && a.Status.State == v1alpha1.ApprovalPending {
				found = &a
			}
		}
		return found != nil
	})
	return found
}

// decide has a person decide on an approval.
func (x *tools) decide(c *standalone.Client, task, id, decision string) {
	x.T.Helper()
	c.Post("/api/v1/tasks/"+task+"/approvals/"+id+"/decision", `{"decision":"`+decision+`"}`).Want(x.T, http.StatusOK)
}
