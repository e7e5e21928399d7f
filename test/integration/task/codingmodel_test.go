// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// modelKey is the key of the Provider of WithModel.
const modelKey = "k-1234567890"

const askedScript = `
models: [scripted-1]
turns:
- name: refuse
  match: {contains: refuse me}
  fault: {status: 400}
- name: fail
  match: {contains: fail me}
  fault: {status: 500}
- name: answer
  reply: {text: "forty-two"}
`

// asking is a server whose coding agents have a model.
type asking struct {
	*standalone.Platform
	t     *testing.T
	model *script.Server
}

// newAsking returns a server with the agents "codex" and "claude", which both are the scripted agent and have the Provider "model", and
// "lost", which has none.
func newAsking(t *testing.T, more ...func(*standalone.Options)) *asking {
	t.Helper()
	program := kit.Bin(t, "scriptedagent")
	p, model := standalone.WithModel(t, askedScript, append(more, func(o *standalone.Options) {
		o.AgentPrograms = []string{"codex=" + program, "claude=" + program}
	})...)
	a := &asking{Platform: p, t: t, model: model}
	for name, kind := range map[string]v1alpha1.AgentRuntimeType{"codex": v1alpha1.RuntimeCodex, "claude": v1alpha1.RuntimeClaude, "lost": v1alpha1.RuntimeCodex} {
		spec := v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: kind}}
		if name != "lost" {
			spec.Model = &v1alpha1.AgentModel{Provider: v1alpha1.ProviderOpenAI}
		}
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
	}
	return a
}

func (a *asking) task(name, agent, prompt string, more ...func(*v1alpha1.TaskSpec)) {
	a.t.Helper()
	a.Run(name, func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAgent, nil, prompt, &v1alpha1.NamespacedReference{Name: agent}
		for _, f := range more {
			f(s)
		}
	})
}

// used returns the tokens of a task by its usage, and how many of its requests have no report.
func (a *asking) used(task string) (in, out int64) {
	a.t.Helper()
	for _, e := range a.EventsOf(task, v1alpha1.EventModelRequestCompleted) {
		if e.InputTokens != nil && e.OutputTokens != nil {
			in, out = in+*e.InputTokens, out+*e.OutputTokens
		}
	}
	return in, out
}

// TestCodingAgentModel: a coding agent asks its model without a key, in the protocol of either vendor. Each request is an event of its
// task, what a vendor refuses costs nothing, and nothing of the run has the key.
func TestCodingAgentModel(t *testing.T) {
	a := newAsking(t)
	a.task("codex", "codex", "do: ask hello\ndo: ask refuse me\ndo: shell env; cat /proc/self/environ; cat $HOME/.codex/config.toml; cat /proc/*/environ")
	a.task("claude", "claude", "do: ask hello")
	a.task("lost", "lost", "do: ask hello")
	a.task("limited", "codex", "do: ask one\ndo: ask two\ndo: ask three\ndo: await-cancel waiting", func(s *v1alpha1.TaskSpec) {
		s.AgentRuntime = &v1alpha1.TaskAgentRuntime{MaxTurns: new(int32(2))}
	})

	a.AwaitPhase("codex", v1alpha1.TaskSucceeded)
	said := a.messages("codex")
	if !strings.Contains(said, "forty-two\n") || !strings.Contains(said, "400 ") || strings.Contains(said, modelKey) || !strings.Contains(said, "OPENAI_API_KEY=") {
		t.Errorf("codex says %s; the log is %s", said, a.log("codex"))
	}
	if strings.Contains(said, "sk-run-") {
		t.Errorf("the key of the door is recorded: %s", said)
	}
	a.AwaitPhase("claude", v1alpha1.TaskSucceeded)
	if got := a.ResultOf("claude"); got != "forty-two\n" {
		t.Errorf("claude says %q", got)
	}
	for _, task := range []string{"codex", "claude"} {
		if n := len(a.EventsOf(task, v1alpha1.EventModelRequestCompleted)); n != 1 {
			t.Errorf("%s: %d requests are completed", task, n)
		}
		if in, out := a.used(task); in == 0 || out == 0 {
			t.Errorf("%s: %d tokens in, %d out", task, in, out)
		}
	}
	var refused struct{ Unsent bool }
	if failed := a.EventsOf("codex", v1alpha1.EventModelRequestFailed); len(failed) != 1 || json.Unmarshal(failed[0].Content.Raw, &refused) != nil || !refused.Unsent {
		t.Errorf("refused requests: %+v", failed)
	}

	a.AwaitPhase("lost", v1alpha1.TaskSucceeded)
	if got := a.ResultOf("lost"); !strings.Contains(got, "no model") {
		t.Errorf("an agent without a model says %q", got)
	}

	limited := a.AwaitPhase("limited", v1alpha1.TaskFailed)
	if c := meta.FindStatusCondition(limited.Status.Conditions, v1alpha1.ConditionFailed); c == nil || c.Reason != v1alpha1.ReasonAgentLimitReached {
		t.Errorf("limited: %+v", c)
	}
	if n := len(a.EventsOf("limited", v1alpha1.EventModelRequestStarted)); n != 2 {
		t.Errorf("limited: %d requests", n)
	}

	err := filepath.WalkDir(a.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(modelKey)) {
			t.Errorf("%s has the key of the Provider", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// log returns the log of a task.
func (a *asking) log(task string) string {
	a.t.Helper()
	return string(kit.Must[[]byte](a.t)(a.API().RESTClient().Get().Namespace("default").Resource("tasks").Name(task).SubResource("log").Do(a.t.Context()).Raw()))
}

// messages returns what an agent says.
func (a *asking) messages(task string) string {
	a.t.Helper()
	var all strings.Builder
	for _, e := range a.EventsOf(task, v1alpha1.EventModelMessage) {
		all.WriteString(e.ContentText)
	}
	return all.String()
}

// TestCodingAgentBudget: a budget that is spent ends a coding agent in the middle, and the task says so.
func TestCodingAgentBudget(t *testing.T) {
	a := newAsking(t)
	limit := int64(3000)
	kit.Must[*v1alpha1.Budget](t)(a.API().Budgets("default").Create(t.Context(), &v1alpha1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: v1alpha1.BudgetSpec{Limit: v1alpha1.BudgetLimit{Tokens: &limit}, Window: v1alpha1.BudgetMonth},
	}, metav1.CreateOptions{}))
	a.task("spends", "codex", strings.Repeat("do: ask hello\n", 400)+"do: say done", func(s *v1alpha1.TaskSpec) {
		s.AgentRuntime = &v1alpha1.TaskAgentRuntime{MaxTurns: new(int32(1000))}
	})
	failed := a.AwaitPhase("spends", v1alpha1.TaskFailed)
	if c := meta.FindStatusCondition(failed.Status.Conditions, v1alpha1.ConditionFailed); c == nil || c.Reason != v1alpha1.ReasonBudgetExhausted || !strings.Contains(c.Message, "small") {
		t.Errorf("%+v", c)
	}
	if n := len(a.EventsOf("spends", v1alpha1.EventModelRequestCompleted)); n == 0 || n >= 400 {
		t.Errorf("%d requests were answered", n)
	}
}

// TestCodingAgentForeign: nobody but the worker of a running task asks models in its name, and a worker cannot write the events of the
// requests itself.
func TestCodingAgentForeign(t *testing.T) {
	a := newAsking(t)
	a.task("waits", "codex", "do: ask hello\ndo: await-cancel waiting")
	kit.Await(t, "the agent has asked", func() bool { return len(a.EventsOf("waits", v1alpha1.EventModelRequestCompleted)) == 1 })
	ask := func(task, path string) error {
		return a.API().RESTClient().Post().Namespace("default").Resource("tasks").Name(task).SubResource("proxy").Suffix(path).
			Body([]byte(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`)).SetHeader("Content-Type", "application/json").Do(t.Context()).Error()
	}
	if err := ask("waits", "openai/v1/nothing"); !apierrors.IsNotFound(err) {
		t.Errorf("an unknown path: %v", err)
	}
	if err := ask("absent", "openai/v1/chat/completions"); !apierrors.IsNotFound(err) {
		t.Errorf("an unknown task: %v", err)
	}
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestCompleted, Summary: "mine"}
	if _, err := a.Tasks().AppendEvent(t.Context(), "waits", e, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("an event of a request: %v", err)
	}
	kit.Must[*v1alpha1.Task](t)(a.Tasks().Cancel(t.Context(), "waits", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	a.AwaitPhase("waits", v1alpha1.TaskCancelled)
	if err := ask("waits", "openai/v1/chat/completions"); apierrors.ReasonForError(err) != metav1.StatusReasonForbidden && !strings.Contains(err.Error(), http.StatusText(http.StatusForbidden)) {
		t.Errorf("a task that has ended: %v", err)
	}
}
