// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/scriptedagent/agent"
)

// TestMain makes this program the scripted agent when it is started as one.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "codex" {
		os.Exit(agent.Run(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// outcome is what a run left.
type outcome struct {
	*runnertest.Run
	server *server
	// lose are events that Commit cannot store.
	lose   v1alpha1.EventType
	result runner.Result
	err    error
}

func (o *outcome) reason() string {
	if failed, ok := errors.AsType[*runner.Error](o.err); ok {
		return failed.Reason
	}
	return fmt.Sprint(o.err)
}

// types returns the types of the events, without the prefix AgentRuntime.
func (o *outcome) types() string {
	var list []string
	for _, e := range o.Events() {
		list = append(list, strings.TrimPrefix(string(e.Type), "AgentRuntime"))
	}
	return strings.Join(list, " ")
}

// said returns the messages.
func (o *outcome) said() string {
	var said []string
	for _, e := range o.Events() {
		if e.Type == v1alpha1.EventModelMessage {
			said = append(said, e.ContentText)
		}
	}
	return strings.Join(said, " ")
}

// Record keeps an event, which also reaches the server.
func (o *outcome) Record(e *v1alpha1.ExecutionEvent) {
	o.Run.Record(e)
	o.server.add(e)
}

// Commit is Record, or fails.
func (o *outcome) Commit(ctx context.Context, e *v1alpha1.ExecutionEvent) error {
	if e.Type == o.lose {
		return errors.New("the server refused")
	}
	o.Record(e)
	return ctx.Err()
}

// do runs a task with the scripted agent.
func do(t *testing.T, prompt string, change ...func(*v1alpha1.TaskSpec, *v1alpha1.AgentSpec)) *outcome {
	t.Helper()
	return prepared(t, prompt, change...).run(t.Context())
}

// run runs the task.
func (o *outcome) run(ctx context.Context) *outcome {
	o.result, o.err = Runner.Run(ctx, o.Run.Run)
	return o
}

// prepared makes everything ready to run a task with the scripted agent.
func prepared(t *testing.T, prompt string, change ...func(*v1alpha1.TaskSpec, *v1alpha1.AgentSpec)) *outcome {
	t.Helper()
	a := v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, SystemPrompt: &v1alpha1.AgentSystemPrompt{Inline: "Be brief."}}
	spec := v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAgent, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: "coder"}}
	for _, f := range change {
		f(&spec, &a)
	}
	o := &outcome{server: newServer(t, a)}
	o.Run = runnertest.New(t, o.server.URL, spec)
	o.Recorder = o
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "codex")
	if err := os.Link(self, program); err != nil {
		raw, err := os.ReadFile(self)
		if err == nil {
			err = os.WriteFile(program, raw, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o.Agents.Given = agentprogram.Given{v1alpha1.RuntimeCodex: program, v1alpha1.RuntimeOpenCode: program}
	o.Policy = sandbox.Policy{Read: sandbox.System(), Write: []string{o.WorkDir, o.TempDir}}
	if err := os.WriteFile(filepath.Join(o.WorkDir, "README"), []byte("about\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, v := range spec.Env { // what the repository has, too
		if err := os.Mkdir(filepath.Join(o.WorkDir, v.Value), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestSurroundings: the agent has a home folder of its own, none of the worker's variables and no file outside of the run.
func TestSurroundings(t *testing.T) {
	t.Setenv("PLATFORM_TEST_SECRET", "s3cret")
	outside := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(outside, []byte("k3y"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := do(t, `do: shell env; cat `+outside+`; cd "$HOME" && pwd`)
	home := filepath.Join(o.TempDir, "agent")
	for _, want := range []string{"HOME=" + home + "\n", "XDG_CONFIG_HOME=" + home + "/.config\n", "PWD=" + o.WorkDir} {
		if !strings.Contains(o.result.Text, want) {
			t.Errorf("it lacks %q: %s", want, o.result.Text)
		}
	}
	if strings.Contains(o.result.Text, "s3cret") || strings.Contains(o.result.Text, "k3y") {
		t.Errorf("it sees too much: %s", o.result.Text)
	}
}

// TestPermissions: the lists of the task and of the Agent decide what an agent may do.
func TestPermissions(t *testing.T) {
	no, yes := false, true
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TaskAgentRuntime, *v1alpha1.AgentSpec)
		// want are the answers for commands, reading, and the tool Edit.
		want string
	}{
		"default":  {func(*v1alpha1.TaskAgentRuntime, *v1alpha1.AgentSpec) {}, "yes yes yes"},
		"no bash":  {func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.AllowBash = &no }, "no yes yes"},
		"of agent": {func(_ *v1alpha1.TaskAgentRuntime, a *v1alpha1.AgentSpec) { a.Runtime.DefaultAllowBash = &no }, "no yes yes"},
		"overridden": {func(t *v1alpha1.TaskAgentRuntime, a *v1alpha1.AgentSpec) {
			t.AllowBash, a.Runtime.DefaultAllowBash = &yes, &no
		}, "yes yes yes"},
		"allowed": {func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.AllowedTools = []string{"edit"} }, "no no yes"},
		"none":    {func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) { t.AllowedTools = []string{} }, "no no no"},
		"agent's": {func(_ *v1alpha1.TaskAgentRuntime, a *v1alpha1.AgentSpec) {
			a.Runtime.DefaultAllowedTools = []string{"Read"}
		}, "no yes no"},
		"disallowed": {func(t *v1alpha1.TaskAgentRuntime, _ *v1alpha1.AgentSpec) {
			t.DisallowedTools = []string{"Bash", "Edit"}
		}, "no yes no"},
	} {
		o := do(t, "do: permit execute ls\ndo: think .\ndo: permit read x\ndo: think .\ndo: permit-tool Edit", func(s *v1alpha1.TaskSpec, a *v1alpha1.AgentSpec) {
			s.AgentRuntime = &v1alpha1.TaskAgentRuntime{}
			tc.change(s.AgentRuntime, a)
		})
		if got := o.said(); got != tc.want {
			t.Errorf("%s: %s, want %s; %v, %s", name, got, tc.want, o.err, o.Logged())
		}
	}
}

// TestPlan: the agent's plan becomes the plan of the task, and its titles are in no event.
func TestPlan(t *testing.T) {
	o := do(t, "do: plan look+,repair,test\ndo: tool execute rm --secret-name x\ndo: plan look+,repair+,test\ndo: say ok")
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	last := len(o.server.plans) - 1
	if o.err != nil || last < 0 {
		t.Fatal(o.err, o.server.plans)
	}
	if p := o.server.plans[last]; p.Summary != "2 of 3 steps are done" || *p.ProgressPct != 66 || p.PlanDocument != "- [x] look\n- [x] repair\n- [ ] test\n" || p.GoalComplete {
		t.Errorf("plan %+v", p)
	}
	if events := fmt.Sprintf("%+v", o.Events()); strings.Contains(events, "secret-name") || !strings.Contains(o.Logged(), "secret-name") {
		t.Errorf("events %s, log %s", events, o.Logged())
	}
	i := slices.IndexFunc(o.Events(), func(e *v1alpha1.ExecutionEvent) bool { return e.Type == v1alpha1.EventToolCallStarted })
	if e := o.Events()[i]; e.ToolName != "execute" || e.AgentName != "coder" || !strings.Contains(string(e.Content.Raw), `"kind":"execute"`) {
		t.Errorf("%+v %s", e, e.Content.Raw)
	}
}

// TestConfiguredRepository: a repository that configures coding agents is refused before the agent is started.
func TestConfiguredRepository(t *testing.T) {
	for _, name := range []string{".mcp.json", ".Claude", "opencode.json", ".codex"} {
		o := do(t, "do: say hello", func(s *v1alpha1.TaskSpec, _ *v1alpha1.AgentSpec) {
			s.Env = []corev1.EnvVar{{Name: "MAKE", Value: name}}
		})
		if o.reason() != v1alpha1.ReasonWorkspaceRefused || !strings.Contains(o.err.Error(), name) || len(o.Events()) > 0 {
			t.Errorf("%s: %v, %s", name, o.err, o.types())
		}
	}
}

// TestMissing: a program that is gone ends the run with what to do.
func TestMissing(t *testing.T) {
	r := runnertest.New(t, newServer(t, v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeOpenCode}}).URL,
		v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAgent, Prompt: "x", AgentRef: &v1alpha1.NamespacedReference{Name: "coder"}})
	r.Getenv = func(string) string { return "" }
	_, err := Runner.Run(t.Context(), r.Run)
	if failed, ok := errors.AsType[*runner.Error](err); !ok || failed.Reason != v1alpha1.ReasonRuntimeNotAvailable || !strings.Contains(err.Error(), "npm install -g opencode-ai") {
		t.Error(err)
	}
}
