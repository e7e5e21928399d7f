// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/prepare"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const repositoryToken = "rt-9f8e7d6c5b4a3210ffee"

// withRepositories returns a server whose runs may fetch from a host, with the programs of some coding agents, and the Secret "reader" with the host's token.
func withRepositories(t *testing.T, h *githost.Host, script string, agents ...string) *standalone.Platform {
	t.Helper()
	program := kit.Bin(t, "platform-workspace")
	p, _ := standalone.WithModel(t, script, func(o *standalone.Options) {
		o.AllowHostCommands, o.WorkspaceBinary, o.RepositoryAllow, o.AgentPrograms = true, program, []string{h.Address()}, agents
	})
	for name, hosts := range map[string]string{"reader": "", "elsewhere": "git.example.com"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": repositoryToken}}
		if hosts != "" {
			s.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: hosts}
		}
		kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}))
	}
	return p
}

// contentOf returns the content of a task's only event of a type.
func contentOf(t *testing.T, p *standalone.Platform, task string, typ v1alpha1.EventType) (content map[string]any) {
	t.Helper()
	events := p.EventsOf(task, typ)
	if len(events) != 1 {
		t.Fatalf("%s has %d events %s", task, len(events), typ)
	}
	if err := json.Unmarshal(events[0].Content.Raw, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

const readingScript = `
models: [scripted-1]
turns:
- name: read
  match: {turn: 1, lastRole: user}
  reply: {toolCalls: [{name: file_read, arguments: {path: docs/plan.md}}]}
- name: answer
  match: {turn: 2, lastRole: tool}
  reply: {text: "{{ .Results.file_read.data.content }}"}
`

// TestWorkspace: a task finds the repository's files in its folder, and nothing else that came with them.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	h := githost.New(t, repositoryToken)
	h.Create(t, "shop")
	commit := h.Commit(t, "shop", "main", map[string]string{
		"README.md": "a shop\n", "docs/plan.md": "sell more", ".gitconfig": "[alias]\n\tst = !touch pwned\n", ".bashrc": "touch pwned\n", "tools/run": githost.Executable + "#!/bin/sh\necho tool ran\n",
	})
	p := withRepositories(t, h, readingScript)
	reader := &v1alpha1.WorkspaceCredentialReference{Name: "reader"}
	p.Run("command", func(s *v1alpha1.TaskSpec) {
		s.Command = []string{"sh", "-c", `ls -A; cat README.md; tools/run; echo "home:"; ls -A "$HOME"; env; cat /proc/$PPID/environ /proc/$PPID/cmdline 2>&1; ls -A "$TMPDIR"`}
		s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: h.Location("shop"), ReadCredentialRef: reader}
	})
	p.OnModel("model", func(s *v1alpha1.TaskSpec) {
		s.AI.Tools = []string{"file_read"}
		s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: h.Location("shop"), ReadCredentialRef: reader, Intent: v1alpha1.WorkspaceRead}
	})
	_, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "create", "--name", "flags", "--command", "cat", "--arg", "plan.md", "--git-repo", h.Location("shop"),
		"--branch", "main", "--sub-path", "docs", "--workspace-intent", "read", "--read-credential", "reader", "--read-credential-key", "token")
	if code != 0 {
		t.Fatal(errs)
	}
	if p.AwaitPhase("flags", v1alpha1.TaskSucceeded); p.ResultOf("flags") != "sell more" {
		t.Errorf("by flags: result %q", p.ResultOf("flags"))
	}
	if said, _, _ := standalone.Command(t.Context(), p.Kubeconfig, "task", "describe", "flags"); !strings.Contains(said, "Repository: "+h.Location("shop")+" at "+commit+", folder docs\n") {
		t.Errorf("described: %s", said)
	}
	for name, want := range map[string]string{"command": "README.md\ndocs\ntools\na shop\ntool ran\nhome:\n", "model": "sell more"} {
		task := p.AwaitPhase(name, v1alpha1.TaskSucceeded)
		result := p.ResultOf(name)
		if !strings.Contains(result, want) || strings.Contains(result, "pwned\n") || strings.Contains(result, repositoryToken) {
			t.Errorf("%s: result %q, want it to have %q", name, result, want)
		}
		if d := task.Status.Delivery; d == nil || d.StartingSHA != commit || d.State != v1alpha1.DeliveryNotRequested {
			t.Errorf("%s: delivery %+v, want it to begin with %s", name, d, commit)
		}
		content := contentOf(t, p, name, v1alpha1.EventWorkspacePreparationCompleted)
		if content["commit"] != commit || content["ref"] != "refs/heads/main" || content["files"] != float64(5) {
			t.Errorf("%s: prepared %v", name, content)
		}
	}
}

// TestWorkspaceIsFrozen: an attempt that follows another works on the same commit, wherever the branch is by then.
func TestWorkspaceIsFrozen(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	first := h.Commit(t, "r", "main", map[string]string{"v": "one"})
	var opened atomic.Int32
	h.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && opened.Add(1) == 2 {
			h.Commit(t, "r", "main", map[string]string{"v": "two"})
		}
		return false
	}
	p := withRepositories(t, h, readingScript)
	p.Run("again", func(s *v1alpha1.TaskSpec) {
		s.Command = []string{"sh", "-c", `cat v; [ "$PLATFORM_TASK_ATTEMPT" = 2 ]`}
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(1e9)}
		s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), Branch: "main"}
	})
	task := p.AwaitPhase("again", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("again"); got != "one" || task.Status.Delivery.StartingSHA != first || h.Git(t, "r", "", "rev-parse", "main") == first {
		t.Errorf("attempt %d read %q of %s, want the first commit, %s", task.Status.Attempts, got, task.Status.Delivery.StartingSHA, first)
	}
}

// TestWorkspaceFailures: what cannot be fetched fails the task with a reason before its command runs, and the token is in no text.
func TestWorkspaceFailures(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := githost.New(t, repositoryToken)
	h.Create(t, "r")
	h.Commit(t, "r", "main", map[string]string{"v": "one"})
	h.CommitTree(t, "r", "evil", h.Tree(t, "r", githost.Entry{Mode: "100644", Name: ".git", Content: "gitdir: /"}))
	p := withRepositories(t, h, readingScript)
	reader := &v1alpha1.WorkspaceCredentialReference{Name: "reader"}
	for name, tc := range map[string]struct {
		workspace v1alpha1.TaskWorkspace
		reason    string
	}{
		"branch":     {v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), Branch: "none", ReadCredentialRef: reader}, v1alpha1.ReasonRepositoryNotRead},
		"repository": {v1alpha1.TaskWorkspace{GitRepo: h.Location("s"), ReadCredentialRef: reader}, v1alpha1.ReasonRepositoryNotRead},
		"credential": {v1alpha1.TaskWorkspace{GitRepo: h.Location("r")}, v1alpha1.ReasonRepositoryNotRead},
		"address":    {v1alpha1.TaskWorkspace{GitRepo: "http://127.0.0.1:9/r.git"}, v1alpha1.ReasonRepositoryNotRead},
		"tree":       {v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), Branch: "evil", ReadCredentialRef: reader}, v1alpha1.ReasonWorkspaceRefused},
		"secret":     {v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "none"}}, v1alpha1.ReasonSecretNotFound},
		"hosts":      {v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "elsewhere"}}, v1alpha1.ReasonSecretHostNotAllowed},
	} {
		p.Run(name, func(s *v1alpha1.TaskSpec) { s.Workspace = &tc.workspace })
		task := p.AwaitPhase(name, v1alpha1.TaskFailed)
		c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionFailed)
		if c == nil || c.Reason != tc.reason {
			t.Errorf("%s: %+v, want %s", name, c, tc.reason)
		}
		if text := fmt.Sprintf("%+v", task); strings.Contains(text, repositoryToken) {
			t.Errorf("%s: the task shows the token: %s", name, text)
		}
	}
	for field, change := range map[string]func(*v1alpha1.TaskSpec){
		"spec.workspace.gitRepo": func(s *v1alpha1.TaskSpec) { s.Workspace = &v1alpha1.TaskWorkspace{Branch: "main"} },
		"https or http":          func(s *v1alpha1.TaskSpec) { s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: "git@example.com:a/b"} },
		"spec.workspace.publicationCredentialRef": func(s *v1alpha1.TaskSpec) {
			s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), Intent: v1alpha1.WorkspaceWrite}
		},
		"spec.workspace.sourceRepository": func(s *v1alpha1.TaskSpec) {
			s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), SourceRepository: &v1alpha1.RepositoryIdentity{Provider: "github", ID: "1"}}
		},
	} {
		task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
		change(&task.Spec)
		if _, err := p.Tasks().Create(t.Context(), task, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestWorkspaceKilled: a worker that is killed while its repository is fetched takes the program with the credential with it, and the
// next attempt begins anew.
func TestWorkspaceKilled(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := githost.New(t, repositoryToken)
	h.Create(t, "r")
	h.Commit(t, "r", "main", map[string]string{"v": "one"})
	asked, gone := make(chan struct{}), make(chan struct{})
	var opened atomic.Int32
	h.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || opened.Add(1) != 1 {
			return false
		}
		close(asked)
		<-r.Context().Done() // its connection ends with the program
		close(gone)
		return true
	}
	p := withRepositories(t, h, readingScript)
	p.Run("killed", func(s *v1alpha1.TaskSpec) {
		s.Command = []string{"cat", "v"}
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 1, InitialDelay: v1alpha1.DurationOf(1e9)}
		s.Workspace = &v1alpha1.TaskWorkspace{GitRepo: h.Location("r"), ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"}}
	})
	<-asked
	worker := p.WorkerOf(p.AwaitPhase("killed", v1alpha1.TaskRunning))
	if worker == 0 {
		t.Fatal("there is no worker")
	}
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-gone
	task := p.AwaitPhase("killed", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("killed"); got != "one" || task.Status.Attempts != 2 {
		t.Errorf("attempt %d: result %q", task.Status.Attempts, got)
	}
}

// TestWorkspaceOnAFullDisk: a repository for which there is no room fails with that reason, and what was fetched is gone.
func TestWorkspaceOnAFullDisk(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	h.Commit(t, "r", "main", map[string]string{"small": "x", "large": strings.Repeat("0123456789abcdef", 2<<20)}) // a pack of little
	volume, temp := standalone.SmallVolume(t, 16), t.TempDir()
	_, err := prepare.Do(t.Context(), workspace.Order{URL: h.Location("r"), Allow: []string{h.Address()}, Dir: volume, Temp: temp, MaxBytes: 1 << 30, MaxEntries: 100})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if left := kit.Must[[]os.DirEntry](t)(os.ReadDir(temp)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
