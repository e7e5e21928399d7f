// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// monitoringScript: an agent has monitors made, of which one may be.
const monitoringScript = `
models: [scripted-1]
turns:
- match: {turn: 1, lastRole: user}
  reply:
    toolCalls:
    - {name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r/pull/1", schedule: "0 0 1 1 *", agent_ref: watcher}}
    - {name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r", schedule: "0 0 1 1 *", agent_ref: stranger}}
    - {name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r", schedule: "0 0 1 1 *", agent_ref: watcher, gitSecretRef: key}}
    - {name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r", schedule: "0 0 1 1 *", agent_ref: watcher, namespace: other}}
    - {name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r", schedule: "never", agent_ref: watcher}}
- match: {turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r", schedule: "0 0 1 1 *", agent_ref: watcher, review_event: APPROVE, prompt: "Look at tests."}}]}
- match: {turn: 3, lastRole: tool}
  reply: {toolCalls: [{name: create_pr_monitor, arguments: {name: watch, repo_url: "https://github.com/o/r", schedule: "0 0 1 1 *", agent_ref: watcher}}]}
- match: {turn: 4, lastRole: tool}
  reply: {text: "{{ range .All.create_pr_monitor }}[{{ if .success }}{{ .data.name }} {{ .data.schedule }}{{ else }}{{ .error }}{{ end }}]{{ end }}"}
`

// TestCreatePRMonitor: a coordinator has a monitor made, with the Secret that the server finds, of an agent to which it may delegate. The
// monitor goes on without its run, and asks for the approvals that the run needed.
func TestCreatePRMonitor(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	r := newReviewed(t, func(string) string { return monitoringScript })
	for name, key := range map[string]string{"github-token": "GITHUB_TOKEN", "git-credentials": "other"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: readerToken}}
		kit.Must[*corev1.Secret](t)(r.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	}
	for _, name := range []string{"watcher", "stranger"} {
		kit.Must[*v1alpha1.Agent](t)(r.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Coordination: &v1alpha1.AgentCoordination{Enabled: true},
		}}, metav1.CreateOptions{}))
	}
	const may = `{"spec":{"coordination":{"allowedAgents":[{"name":"watcher"}],"approvalRequiredTools":["post_review_comment"]}}}`
	kit.Must[*v1alpha1.Agent](t)(r.API().Agents("default").Patch(t.Context(), "reviewer", types.MergePatchType, []byte(may), metav1.PatchOptions{}))
	r.review("chief", nil)
	r.AwaitPhase("chief", v1alpha1.TaskSucceeded)
	says := r.ResultOf("chief")
	for _, want := range []string{"repo_url: must be the address", `"default/stranger" is not among those`, "gitSecretRef: must be one of", "namespace: only that of", "spec.schedule", "[watch 0 0 1 1 *]", "name: there is another task watch"} {
		if !strings.Contains(says, want) {
			t.Errorf("the agent says %q, want %q", says, want)
		}
	}
	made := kit.Must[*v1alpha1.Task](t)(r.Tasks().Get(t.Context(), "watch", metav1.GetOptions{}))
	w, s := made.Spec.Workspace, &made.Spec
	if s.Type != v1alpha1.TaskTypeAI || s.AgentRef.Name != "watcher" || w.GitRepo != "https://github.com/o/r" || w.ReadCredentialRef.Name != "github-token" || w.ReadCredentialRef.Key != "GITHUB_TOKEN" ||
		len(s.AI.Tools) != 5 || !strings.Contains(s.Prompt, "event APPROVE") || !strings.Contains(s.Prompt, "Look at tests.") {
		t.Errorf("%+v", s)
	}
	chief := kit.Must[*v1alpha1.Task](t)(r.Tasks().Get(t.Context(), "chief", metav1.GetOptions{}))
	if by := v1alpha1.AnnotationRequestedBy; made.Status.Delegation != nil || len(made.OwnerReferences) > 0 || made.Annotations[by] != chief.Annotations[by] ||
		strings.Join(made.Status.ApprovalRequiredTools, " ") != "post_review_comment" {
		t.Errorf("%+v %+v", made.ObjectMeta, made.Status)
	}
}

// validatingScript: a reviewer runs the checks of the repository.
const validatingScript = `
models: [scripted-1]
turns:
- match: {turn: 1, lastRole: user, contains: Review, offered: [run_validation]}
  reply: {toolCalls: [{name: run_validation, arguments: {}}]}
- match: {turn: 2, lastRole: tool}
  reply: {text: "{{ with .Results.run_validation.data }}{{ .status }} {{ .head_sha }} {{ .task_name }}: {{ .message }}{{ end }}"}
- match: {turn: 1, lastRole: user}
  reply: {text: not offered}
`

// TestRunValidation: a reviewer of a monitor with an image has its checks run on its head, as a task of its own, although it may not
// delegate. Where no containers run, it reads why they were not.
func TestRunValidation(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	r := newReviewed(t, func(string) string { return validatingScript })
	head := r.git.Commit(t, "ada/shop", "work", map[string]string{"README.md": "a shop with a door\n"})
	kit.Must[*v1alpha1.Agent](t)(r.API().Agents("default").Patch(t.Context(), "reviewer", types.MergePatchType, []byte(`{"spec":{"coordination":{"enabled":false}}}`), metav1.PatchOptions{}))
	create := func(name string, annotations map[string]string) {
		kit.Must[*v1alpha1.Task](t)(r.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: "reviewer"}, Prompt: "Review.",
			Workspace: &v1alpha1.TaskWorkspace{GitRepo: r.forge.Location(), Ref: head, ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"}},
		}}, metav1.CreateOptions{}))
		r.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	create("plain", nil)
	if got := r.ResultOf("plain"); got != "not offered" {
		t.Errorf("without a monitor: %q", got)
	}
	image := "example.com/check@sha256:" + strings.Repeat("0", 64)
	create("review", map[string]string{
		v1alpha1.AnnotationDisableCoordination: "true", v1alpha1.AnnotationMonitorValidation: `{"image":"` + image + `","commands":["make test"]}`,
	})
	below := r.Below("review")
	if len(below) != 1 {
		t.Fatalf("%d tasks below the review", len(below))
	}
	s := below[0].Spec
	if w := s.Workspace; s.Type != v1alpha1.TaskTypeContainer || s.Image != image || s.Command[len(s.Command)-1] != "make test" || w.Ref != head || w.ReadCredentialRef.Name != "reader" || w.ForgeCredentialRef != nil || w.Writes() {
		t.Errorf("%+v", s)
	}
	if got := r.ResultOf("review"); !strings.HasPrefix(got, "error "+head+" "+below[0].Name+": ") || !strings.Contains(got, "its task is Failed: container tasks are commands of the host here") {
		t.Errorf("the reviewer says %q", got)
	}
}

// openedByChat: a chat opens the pull request of a task, and looks at its checks.
const openedByChat = `
models: [scripted-1]
turns:
- match: {turn: 1, lastRole: user, contains: Make a door}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: "echo door > door"}}]}
- match: {turn: 2, lastRole: tool, offered: [code_exec]}
  reply: {text: made}
- match: {turn: 1, lastRole: user, offered: [create_pull_request]}
  reply: {toolCalls: [{name: create_pull_request, arguments: {task_name: TASK, head_branch: platform/door, base_branch: main, title: A door}}]}
- match: {turn: 2, lastRole: tool}
  reply: {toolCalls: [{name: check_pull_request_ci, arguments: {task_name: TASK, pr_number: 3}}, {name: check_pull_request_ci, arguments: {task_name: TASK, pr_number: 3, repo_url: "https://github.com/o/r"}}]}
- match: {turn: 3, lastRole: tool}
  reply: {text: done}
`

// TestChatOpensPullRequest: a chat opens the pull request of what a task of its namespace has published, and sees its checks, if its user may.
func TestChatOpensPullRequest(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	r := newReviewed(t, func(string) string { return strings.ReplaceAll(openedByChat, "TASK", "maker") })
	r.git.PushToken = writerToken
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	editor := r.REST(t, "default", "editor", "platform-editor")
	ask := func() []string {
		var failed []string
		for _, call := range editor.Chat(map[string]any{"message": "open the pull request", "provider": "model"}, http.StatusOK).ToolCalls {
			failed = append(failed, call.Result.Error)
		}
		return failed
	}
	if got := ask(); len(got) != 3 || !strings.Contains(got[0], "not found") {
		t.Errorf("a task that does not exist: %q", got)
	}
	r.OnModel("maker", func(s *v1alpha1.TaskSpec) {
		s.AI, s.AgentRef, s.Prompt = nil, &v1alpha1.NamespacedReference{Name: "reviewer"}, "Make a door."
		s.Workspace = &v1alpha1.TaskWorkspace{
			GitRepo: r.forge.Location(), Intent: v1alpha1.WorkspaceWrite, PushBranch: "platform/door", ReadCredentialRef: ref("reader"), PublicationReadCredentialRef: ref("reader"),
			PublicationCredentialRef: ref("writer"), ForgeCredentialRef: ref("writer"),
		}
	})
	r.AwaitPhase("maker", v1alpha1.TaskSucceeded)
	for range 2 {
		if got := ask(); len(got) != 3 || got[0] != "" || got[1] != "" || !strings.Contains(got[2], "repo_url: is not the repository of task maker") {
			t.Errorf("the chat's calls: %q", got)
		}
	}
	made := kit.Must[*v1alpha1.Task](t)(r.Tasks().Get(t.Context(), "maker", metav1.GetOptions{}))
	if pulls := r.forge.Pulls(); len(pulls) != 2 || pulls[1].Title != "A door" || made.Status.Delivery.PRReceipt == nil || made.Status.Delivery.PRReceipt.Number != 3 {
		t.Errorf("%+v, receipt %+v", pulls, made.Status.Delivery.PRReceipt)
	}
	call := &v1alpha1.TaskCodeHostCall{ToolName: "merge_pull_request", CallID: "x"}
	call.Arguments.Raw = []byte(`{"task_name":"maker","pr_number":3}`)
	if got := editor.Do(http.MethodPost, "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks/maker/codehost", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskCodeHostCall","toolName":"merge_pull_request","callId":"x","arguments":{"task_name":"maker","pr_number":3}}`); got.Code != http.StatusForbidden || !strings.Contains(got.Body, "is for the run of the task") {
		t.Errorf("people may merge: %d %s", got.Code, got.Body)
	}
	if _, err := r.Tasks().CallCodeHost(t.Context(), "maker", call, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("after its end: %v", err)
	}
}
