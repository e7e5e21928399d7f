// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// judgedScript is an agent that calls three tools: one call is denied, one held for approval, one passes.
const judgedScript = `
models: [scripted-1]
turns:
- name: calls
  match: {turn: 1}
  reply:
    toolCalls:
    - {name: code_exec, arguments: {language: bash, code: "curl http://example.com"}}
    - {name: file_write, arguments: {path: paid.txt, content: "500"}}
    - {name: file_read, arguments: {path: paid.txt}}
- name: end
  match: {turn: 2}
  reply: {text: done}
`

// examplePolicies installs the policies of a file of artifacts/examples.
func examplePolicies(t *testing.T, p *standalone.Platform, file string) {
	t.Helper()
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(kit.Must[[]byte](t)(os.ReadFile("../../../artifacts/examples/"+file))), 4096)
	for {
		var policy admissionv1.ValidatingAdmissionPolicy
		var binding admissionv1.ValidatingAdmissionPolicyBinding
		err := docs.Decode(&policy)
		if errors.Is(err, io.EOF) {
			return
		}
		if err := errors.Join(err, docs.Decode(&binding)); err != nil {
			t.Fatal(err)
		}
		host.Install(t, p.Kubernetes(t), &policy, &binding)
	}
}

// judge asks about a call without making it.
func judge(p *standalone.Platform, task, tool, arguments string) (v1alpha1.ToolCallStatus, error) {
	out, err := p.API().ToolCalls("default").Create(p.T.Context(), &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
		TaskName: task, ToolName: tool, Arguments: &apiextensionsv1.JSON{Raw: []byte(arguments)},
		Class: v1alpha1.ToolClassRead, Task: v1alpha1.ToolCallTask{CreatedBy: "forged"}, // the server sets these
	}}, metav1.CreateOptions{DryRun: []string{"All"}})
	if err != nil {
		return v1alpha1.ToolCallStatus{}, err
	}
	return out.Status, nil
}

func said(s v1alpha1.ToolCallStatus) string {
	out := string(s.Verdict)
	for _, f := range s.Findings {
		out += fmt.Sprintf("; %s %s: %s", f.Action, f.Policy, f.Message)
	}
	return out
}

// The example policies judge calls as their comments say.
func TestToolCallPolicies(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, "exit 0")
	if _, err := p.API().Tools("default").Create(t.Context(), &v1alpha1.Tool{
		ObjectMeta: metav1.ObjectMeta{Name: "order"},
		Spec: v1alpha1.ToolSpec{
			Description: "Orders.", BrokeredToolClass: v1alpha1.ToolClassWrite, HTTP: &v1alpha1.ToolHTTP{URL: "https://example.com/"},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Run("t")
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	examplePolicies(t, p, "policies/toolcall.yaml")
	const curl = `{"language":"bash","code":"ls; curl x"}`
	kit.Await(t, "the policies in force", func() bool {
		s, err := judge(p, "t", "order", `{}`)
		return err == nil && s.Verdict == v1alpha1.ToolCallDenied
	})
	for _, c := range []struct{ tool, arguments, want string }{
		{"code_exec", `{"language":"bash","code":"ls"}`, "Allowed"},
		{"code_exec", curl, "Denied; Deny no-network-commands: programs must not use curl, wget, nc or ssh"},
		{"file_write", `{"path":"curl","content":"curl"}`, "Allowed"},
		{"pay", `{"amount":100}`, "Allowed"},
		{"pay", `{"amount":100.5}`, "ApprovalRequired; RequireApproval large-amounts: an amount of 100.5 is above 100"},
		{"order", `{}`, "Denied; Deny writers-only: tools that write are for the group writers"},
		{"order", `{"amount":101}`, "Denied; Deny writers-only: tools that write are for the group writers; RequireApproval large-amounts: an amount of 101 is above 100"},
	} {
		got, err := judge(p, "t", c.tool, c.arguments)
		if err != nil || said(got) != c.want {
			t.Errorf("%s %s: %s, %v; want %s", c.tool, c.arguments, said(got), err, c.want)
		}
	}
	if _, err := judge(p, "none", "code_exec", curl); err == nil {
		t.Error("a call of a task that does not exist was judged")
	}
	if _, err := judge(p, "t", "pay", `{"amount":1,"amount":1000}`); err == nil || !strings.Contains(err.Error(), "ambiguous") {
		t.Errorf("an argument that is there twice: %v", err)
	}
	l := kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(),
		metav1.ListOptions{FieldSelector: "taskName=t,type=ToolCallJudged"}))
	if len(l.Items) != 0 {
		t.Errorf("dry runs left %d events", len(l.Items))
	}
}

// TestPolicyTestCountsTheNewestPolicy: a policy that was written just now judges the calls of the command that tries it.
func TestPolicyTestCountsTheNewestPolicy(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	s.RESTTask(t, "t")
	file := filepath.Join(t.TempDir(), "calls.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: core.platform.ai/v1alpha1\nkind: ToolCall\nspec: {taskName: t, toolName: file_read, arguments: {path: a}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	never := host.Policy("never", "false", "nothing is read here")
	never.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"toolcalls"}
	host.Install(t, s.Kubernetes(t), never, host.Deny("never"))
	out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "policy", "test", "--calls", file)
	if code != 2 || !strings.Contains(out, "never: nothing is read here") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// Policies hold back the calls of a real agent: one is denied, one waits for a person, one is made.
func TestPoliciesHoldCallsBack(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, judgedScript)
	examplePolicies(t, p, "policies/toolcall.yaml")
	hold := host.Policy("held", "!has(object.spec.fileWrite) || object.spec.fileWrite.content != '500'", "500 is a lot")
	hold.Labels = map[string]string{v1alpha1.LabelRequireApproval: "true"}
	hold.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"toolcalls"}
	b := host.Deny("held")
	b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
	host.Install(t, p.Kubernetes(t), hold, b)
	p.Run("probe", func(s *v1alpha1.TaskSpec) { s.Schedule = "@yearly"; s.Type = v1alpha1.TaskTypeContainer })
	kit.Await(t, "the policy in force", func() bool {
		s, err := judge(p, "probe", "file_write", `{"path":"x","content":"500"}`)
		return err == nil && s.Verdict == v1alpha1.ToolCallApprovalRequired
	})
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "pay",
		AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"code_exec", "file_write", "file_read"}},
	}}
	if _, err := p.Tasks().Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := p.API()
	var id string
	kit.Await(t, "a request for approval", func() bool {
		l, err := c.Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.taskName=t"})
		if err != nil || len(l.Items) == 0 {
			return false
		}
		id = l.Items[0].Name
		return true
	})
	kit.Must[*v1alpha1.Approval](t)(standalone.Decide(t, c, id, "approve"))
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	var got []string
	for _, e := range kit.Must[*v1alpha1.ExecutionEventList](t)(c.ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=t"})).Items {
		if strings.HasPrefix(string(e.Type), "ToolCall") || strings.HasPrefix(string(e.Type), "Approval") {
			line := string(e.Type) + " " + e.ToolName
			if e.Type == v1alpha1.EventToolCallJudged {
				var content struct{ Verdict string }
				if err := json.Unmarshal(e.Content.Raw, &content); err != nil {
					t.Error(err)
				}
				line += " " + content.Verdict
			}
			got = append(got, line)
		}
	}
	want := []string{
		"ToolCallJudged code_exec Denied",
		"ToolCallJudged file_write ApprovalRequired",
		"ApprovalRequested file_write", "ApprovalApproved file_write",
		"ToolCallStarted file_write", "ApprovalExecutionUpdated file_write", "ToolCallCompleted file_write", "ApprovalExecutionUpdated file_write",
		"ToolCallStarted file_read", "ToolCallCompleted file_read",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	testPolicies(p)
	tryPolicies(p)
}

// testPolicies: the command judges recorded calls again, with the policies of now, and calls of a file.
func testPolicies(p *standalone.Platform) {
	t := p.T
	t.Helper()
	run := func(args ...string) (string, string) {
		t.Helper()
		out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, append([]string{"policy", "test"}, args...)...)
		if code != 2 { // calls are denied
			t.Errorf("exit code %d: %s", code, errs)
		}
		return out, errs
	}
	out, errs := run("--task", "t")
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"TASK TOOL CALL ARGUMENTS FROM RECORDED NOW WHY",
		"t code_exec call_1_1 record Denied Denied no-network-commands: programs must not use curl, wget, nc or ssh",
		"t file_write call_1_2 record ApprovalRequired ApprovalRequired held: 500 is a lot",
		"t file_read call_1_3 record Allowed Allowed",
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if want := "3 calls: 1 allowed, 1 held for approval, 1 denied, 0 not judged\nplatform: 1 call denied\n"; errs != want {
		t.Errorf("said %s", errs)
	}
	file := filepath.Join(t.TempDir(), "calls.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: core.platform.ai/v1alpha1
kind: ToolCall
spec: {toolName: code_exec, arguments: {language: bash, code: "curl http://example.com"}}
---
apiVersion: core.platform.ai/v1alpha1
kind: ToolCall
spec: {taskName: t, toolName: file_read, arguments: {path: paid.txt}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var judged struct {
		Calls []struct{ Tool, Source, Verdict string }
	}
	out, _ = run("--task", "t", "--calls", file, "-o", "json")
	if err := json.Unmarshal([]byte(out), &judged); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(judged.Calls); got != "[{code_exec file Denied} {file_read file Allowed}]" {
		t.Errorf("judged %s", got)
	}
	if n := len(p.EventsOf("t", v1alpha1.EventToolCallJudged)); n != 2 {
		t.Errorf("%d verdicts are recorded, 2 of them before the test of policies", n)
	}
	for args, want := range map[string]string{"": "--task or --calls: one of them is required", "--task none": "not found", "--calls " + file: "spec.taskName: is required without --task"} {
		if _, errs, code := standalone.Command(t.Context(), p.Kubeconfig, append([]string{"policy", "test"}, strings.Fields(args)...)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
}

// What a policy says about a call may quote its arguments. Secrets of the run are in no verdict, event, log or message to
// the model, whole or in part.
func TestVerdictsQuoteNoSecrets(t *testing.T) {
	t.Parallel()
	const key = "k-1234567890" // of withModel
	p, model := standalone.WithModel(t, `
models: [scripted-1]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: "send `+key+`"}}]}
- match: {turn: 2}
  reply: {text: done}
`)
	quoting := host.Policy("quoting", "!has(object.spec.codeExec)", "")
	quoting.Spec.Validations[0].MessageExpression = `'no: ' + object.spec.codeExec.code + ' or ' + object.spec.codeExec.code.substring(6, 16).upperAscii() + (size(object.spec.?sensitive.orValue([])) > 0 ? ' seen' : '')`
	quoting.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"toolcalls"}
	host.Install(t, p.Kubernetes(t), quoting, host.Deny("quoting"))
	p.Run("probe", func(s *v1alpha1.TaskSpec) { s.Schedule = "@yearly"; s.Type = v1alpha1.TaskTypeContainer })
	kit.Await(t, "the policy in force", func() bool {
		s, err := judge(p, "probe", "code_exec", `{"language":"bash","code":"probe of the policy"}`)
		return err == nil && s.Verdict == v1alpha1.ToolCallDenied
	})
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "send it",
		AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"code_exec"}},
	}}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), task, metav1.CreateOptions{}))
	p.AwaitPhase("t", v1alpha1.TaskSucceeded)
	c := p.API()
	events := kit.Must[*v1alpha1.ExecutionEventList](t)(c.ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=t"})).Items
	log := kit.Must[[]byte](t)(c.RESTClient().Get().Namespace("default").Resource("tasks").Name("t").SubResource("log").DoRaw(t.Context()))
	asked := model.Exchanges()
	last := asked[len(asked)-1].Request.Messages
	kept := kit.Must[*v1alpha1.TaskCallList](t)(c.Tasks("default").GetCalls(t.Context(), "t", metav1.GetOptions{}))
	if len(kept.Calls) != 1 || !kept.Calls[0].Redacted || string(kept.Calls[0].Arguments.Raw) != `{"code":"send [REDACTED]","language":"bash"}` {
		t.Errorf("kept calls: %+v", kept.Calls)
	}
	texts := map[string]string{"the log": string(log), "the result that the model reads": last[len(last)-1].Text()}
	for _, e := range events {
		texts["event "+string(e.Type)] += e.Summary + string(e.Content.Raw)
	}
	const part = "1234567"
	for where, text := range texts {
		if strings.Contains(text, part) || strings.Contains(text, "seen") {
			t.Errorf("%s: %s", where, text)
		}
	}
	const want = "no: send [REDACTED] or [REDACTED]"
	for _, where := range []string{"event ToolCallJudged", "the result that the model reads"} {
		if !strings.Contains(texts[where], want) {
			t.Errorf("%s has no verdict: %q", where, texts[where])
		}
	}
}

// A worker asks only about calls of its own task, and about none once the task is cancelled.
func TestWorkersAskAboutTheirOwnCalls(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	mine, other := standalone.NewWaiting(t, s, admin, "mine"), standalone.NewWaiting(t, s, admin, "other")
	worker := s.Worker(t, "default", "mine", mine.Task.UID).Discovery().RESTClient()
	ask := func(task *v1alpha1.Task) error {
		body := fmt.Appendf(nil, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ToolCall","spec":{"taskName":%q,"toolName":"file_read"}}`, task.Name)
		return worker.Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/toolcalls").
			SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	}
	if err := ask(mine.Task); err != nil {
		t.Errorf("its own: %v", err)
	}
	refused(t, "another", ask(other.Task), 403, "another task")
	kit.Must[*v1alpha1.Task](t)(admin.Tasks("default").Cancel(t.Context(), "mine", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
	refused(t, "its own after the cancellation", ask(mine.Task), 403, "the task was cancelled and starts nothing more")
}
