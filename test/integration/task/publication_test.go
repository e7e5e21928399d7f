// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const pushToken = "pt-0a1b2c3d4e5f66778899"

// publishing is a server whose tasks may change the repository "shop" of a host, whose pushes need a token of their own.
type publishing struct {
	*standalone.Platform
	t    *testing.T
	host *githost.Host
	// start is the head of main.
	start string
}

func newPublishing(t *testing.T, agents ...string) *publishing {
	t.Helper()
	return newPublishingOn(t, readingScript, agents...)
}

func newPublishingOn(t *testing.T, script string, agents ...string) *publishing {
	t.Helper()
	h := githost.New(t, repositoryToken)
	h.PushToken = pushToken
	h.Create(t, "shop")
	start := h.Commit(t, "shop", "main", map[string]string{"README.md": "a shop\n", "docs/plan.md": "sell more\n", "old.txt": "old\n"})
	p := withRepositories(t, h, script, agents...)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pusher"}, StringData: map[string]string{"token": pushToken}}
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	return &publishing{Platform: p, t: t, host: h, start: start}
}

// change runs a task whose command changes the repository.
func (p *publishing) change(name, command string, more ...func(*v1alpha1.TaskWorkspace)) {
	p.t.Helper()
	p.Run(name, func(s *v1alpha1.TaskSpec) {
		s.Command = []string{"sh", "-e", "-c", command}
		s.Workspace = &v1alpha1.TaskWorkspace{
			GitRepo: p.host.Location("shop"), Branch: "main", Intent: v1alpha1.WorkspaceWrite, ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"},
			PublicationReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"}, PublicationCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "pusher"},
		}
		for _, f := range more {
			f(s.Workspace)
		}
	})
}

func onBranch(name string) func(*v1alpha1.TaskWorkspace) {
	return func(w *v1alpha1.TaskWorkspace) { w.PushBranch = name }
}

// states returns the states of a task's delivery, in their order.
func (p *publishing) states(task string) string {
	p.t.Helper()
	var list []string
	for _, e := range p.EventsOf(task, v1alpha1.EventDeliveryStateChanged) {
		var content struct {
			To string `json:"to"`
		}
		if err := json.Unmarshal(e.Content.Raw, &content); err != nil {
			p.t.Fatal(err)
		}
		list = append(list, content.To)
	}
	return strings.Join(list, " ")
}

// pushes counts the pushes that the host was asked for.
func (p *publishing) pushes() (n int) {
	for _, r := range p.host.Requests() {
		if strings.HasPrefix(r, "POST ") && strings.Contains(r, "git-receive-pack") {
			n++
		}
	}
	return n
}

// TestPublication: what a run changes becomes one commit on a branch of its own, and the task succeeds when another read has seen it.
func TestPublication(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	p.change("change", `echo more >> README.md; rm old.txt; mkdir -p src; echo 'package x' > src/x.go; chmod +x src/x.go; printf done`)
	task := p.AwaitPhase("change", v1alpha1.TaskSucceeded)
	d := task.Status.Delivery
	head := p.host.Git(t, "shop", "", "rev-parse", "refs/heads/"+d.Branch)
	if d.State != v1alpha1.DeliveryVerifiedExact || d.VerifiedRemoteSHA != head || d.ExpectedCommitSHA != head || d.StartingSHA != p.start || d.RemoteBeforeSHA == nil || *d.RemoteBeforeSHA != "" {
		t.Errorf("delivery %+v, the branch is at %s", d, head)
	}
	if tree := p.host.Git(t, "shop", "", "rev-parse", head+"^{tree}"); d.TreeSHA != tree || !strings.HasPrefix(d.ArtifactDigest, "sha256:") || d.PublicationID == "" {
		t.Errorf("delivery %+v, the tree is %s", d, tree)
	}
	if got := p.host.Git(t, "shop", "", "log", "--format=%H", "main.."+d.Branch); got != head || p.host.Git(t, "shop", "", "rev-parse", "main") != p.start {
		t.Errorf("the branch has %q on top of main", got)
	}
	if got := p.host.Git(t, "shop", "", "diff", "--raw", "--abbrev=1", "main", d.Branch); strings.Count(got, "\n") != 2 || !strings.Contains(got, "100755") || !strings.Contains(got, "D\told.txt") {
		t.Errorf("changed: %s", got)
	}
	if got := p.host.Git(t, "shop", "", "log", "-1", "--format=%s|%an|%b", head); !strings.HasPrefix(got, "Changes by task default/change|platform|Platform-Task: default/change\n") {
		t.Errorf("message %q", got)
	}
	if got, want := p.states("change"), "Validating Preparing Prepared Publishing Verifying VerifiedExact"; got != want {
		t.Errorf("states %s, want %s", got, want)
	}
	if o := task.Status.ExecutionOutcome; o == nil || o.Phase != v1alpha1.TaskSucceeded || o.Attempt != 1 || o.RecordedAt == nil {
		t.Errorf("outcome of the run %+v", o)
	}
	if p.ResultOf("change") != "done" || !strings.Contains(task.Status.Message, "published as branch "+d.Branch+" at "+head) || p.pushes() != 1 {
		t.Errorf("result %q, message %q, %d pushes", p.ResultOf("change"), task.Status.Message, p.pushes())
	}
	diff, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "diff", "change")
	if code != 0 || !strings.Contains(diff, "+more\n") || !strings.Contains(diff, "deleted file mode 100644") {
		t.Errorf("diff: %s%s", diff, errs)
	}
	said, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "delivery", "change")
	for _, want := range []string{"VerifiedExact", d.Branch, head, p.start} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("delivery lacks %q: %s%s", want, said, errs)
		}
	}
}

// TestPublicationEnds: how a task ends when nothing, too much, or nothing that is allowed was changed.
func TestPublicationEnds(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := newPublishing(t)
	p.host.Git(t, "shop", "", "branch", "taken", p.start)
	behind := p.host.Commit(t, "shop", "other", map[string]string{"x": "1"})
	few := int32(1)
	for name, tc := range map[string]struct {
		command string
		change  func(*v1alpha1.TaskWorkspace)
		phase   v1alpha1.TaskPhase
		reason  string
		state   v1alpha1.TaskDeliveryState
	}{
		"nothing":   {"true", nil, v1alpha1.TaskFailed, v1alpha1.ReasonNoChanges, v1alpha1.DeliveryNoChange},
		"failed":    {"echo x > new; exit 3", nil, v1alpha1.TaskFailed, v1alpha1.ReasonCommandFailed, v1alpha1.DeliveryNotRequested},
		"existing":  {"echo x > new", onBranch("taken"), v1alpha1.TaskSucceeded, "", v1alpha1.DeliveryVerifiedExact},
		"elsewhere": {"echo x > new", onBranch("other"), v1alpha1.TaskFailed, v1alpha1.ReasonDeliveryConflict, v1alpha1.DeliveryConflict},
		"expected": {"echo x > new", func(w *v1alpha1.TaskWorkspace) {
			w.PushBranch, w.MaxChangedFiles = "b1", &few
		}, v1alpha1.TaskSucceeded, "", v1alpha1.DeliveryVerifiedExact},
		"many": {"echo x > new; echo y > newer", func(w *v1alpha1.TaskWorkspace) {
			w.MaxChangedFiles = &few
		}, v1alpha1.TaskFailed, v1alpha1.ReasonPublicationRefused, v1alpha1.DeliveryConflict},
		"path": {"echo x > new", func(w *v1alpha1.TaskWorkspace) {
			w.AllowedPaths = []string{"docs"}
		}, v1alpha1.TaskFailed, v1alpha1.ReasonPublicationRefused, v1alpha1.DeliveryConflict},
		"folder":     {"echo x > new", func(w *v1alpha1.TaskWorkspace) { w.SubPath, w.AllowedPaths = "docs", []string{"docs/new"} }, v1alpha1.TaskSucceeded, "", v1alpha1.DeliveryVerifiedExact},
		"submodules": {"mkdir .GIT; echo x > .GIT/config", nil, v1alpha1.TaskFailed, v1alpha1.ReasonWorkspaceRefused, v1alpha1.DeliveryNotRequested},
		"no access": {"echo x > new", func(w *v1alpha1.TaskWorkspace) {
			w.PublicationCredentialRef = w.ReadCredentialRef
		}, v1alpha1.TaskFailed, v1alpha1.ReasonCredentialBlocked, v1alpha1.DeliveryCredentialBlocked},
		"no read access": {"echo x > new", func(w *v1alpha1.TaskWorkspace) {
			w.PublicationReadCredentialRef = nil
		}, v1alpha1.TaskFailed, v1alpha1.ReasonCredentialBlocked, v1alpha1.DeliveryCredentialBlocked},
	} {
		name = strings.ReplaceAll(name, " ", "-")
		p.change(name, tc.command, func(w *v1alpha1.TaskWorkspace) {
			if tc.change != nil {
				tc.change(w)
			}
		})
		task := p.AwaitPhase(name, tc.phase)
		d := task.Status.Delivery
		if c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionFailed); d == nil || d.State != tc.state || tc.reason != "" && c.Reason != tc.reason {
			t.Errorf("%s: %+v, %s: %+v; want %s, %s", name, d, task.Status.Message, c, tc.state, tc.reason)
		}
		if text := fmt.Sprintf("%+v", task); strings.Contains(text, repositoryToken) || strings.Contains(text, pushToken) {
			t.Errorf("%s: the task shows a token: %s", name, text)
		}
	}
	if got := p.host.Git(t, "shop", "", "rev-parse", "other"); got != behind {
		t.Errorf("the branch that is elsewhere was moved to %s", got)
	}
	if got := p.host.Git(t, "shop", "", "diff", "--name-only", "main", p.task("folder").Status.Delivery.Branch); got != "docs/new" {
		t.Errorf("in a folder: changed %q", got)
	}
}

func (p *publishing) task(name string) *v1alpha1.Task {
	p.t.Helper()
	return kit.Must[*v1alpha1.Task](p.t)(p.Tasks().Get(p.t.Context(), name, metav1.GetOptions{}))
}

// TestPublicationRaces: whatever a person does to the branch between the look and the push, or right after it, is not overwritten, and
// the task says where the branch is. Whatever the server says about the push, the read decides.
func TestPublicationRaces(t *testing.T) {
	t.Parallel()
	const branch = "feature"
	for name, tc := range map[string]struct {
		// exists makes the branch at the commit that the run begins with.
		exists bool
		// before and after are what happens before the push reaches the server, and after it did its work. Each gets the person's commits:
		// one on the branch and one that has nothing of it.
		before, after func(h *githost.Host, on, other string)
		// answer is what the server does in place of the push; nil for the push.
		answer func(w http.ResponseWriter, r *http.Request)
		phase  v1alpha1.TaskPhase
		state  v1alpha1.TaskDeliveryState
		// head is where the branch is at the end: "on", "other", "", "start", or "commit" for that of the task.
		head   string
		pushes int
	}{
		"somebody went on": {true, func(h *githost.Host, on, _ string) { h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, on) }, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "on", 1},
		"somebody rewrote it": {true, func(h *githost.Host, _, other string) {
			h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, other)
		}, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "other", 1},
		"somebody deleted it":     {true, func(h *githost.Host, _, _ string) { h.Git(t, "shop", "", "update-ref", "-d", "refs/heads/"+branch) }, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "", 1},
		"somebody made it":        {false, func(h *githost.Host, on, _ string) { h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, on) }, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "on", 1},
		"made at the same commit": {false, func(h *githost.Host, _, _ string) { h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, "main") }, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "start", 1},
		"deleted and made again": {true, func(h *githost.Host, _, other string) {
			h.Git(t, "shop", "", "update-ref", "-d", "refs/heads/"+branch)
			h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, other)
		}, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "other", 1},
		"somebody goes on after it": {true, nil, func(h *githost.Host, _, _ string) {
			h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, h.Git(t, "shop", "", "commit-tree", "-p", branch, "-m", "a person's", branch+"^{tree}"))
		}, nil, v1alpha1.TaskSucceeded, v1alpha1.DeliveryDeliveredSuperseded, "later", 1},
		"somebody rewrites it after it": {true, nil, func(h *githost.Host, _, other string) {
			h.Git(t, "shop", "", "update-ref", "refs/heads/"+branch, other)
		}, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "other", 1},
		"somebody deletes it after it": {true, nil, func(h *githost.Host, _, _ string) { h.Git(t, "shop", "", "update-ref", "-d", "refs/heads/"+branch) }, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "", 1},
		"the answer is lost":           {false, nil, func(*githost.Host, string, string) { panic(http.ErrAbortHandler) }, nil, v1alpha1.TaskSucceeded, v1alpha1.DeliveryVerifiedExact, "commit", 1},
		"the request is lost":          {false, nil, nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, v1alpha1.TaskSucceeded, v1alpha1.DeliveryVerifiedExact, "commit", 2},
		"the server refuses":           {false, func(h *githost.Host, _, _ string) { h.Hook(t, "shop", "pre-receive", "#!/bin/sh\nexit 1\n") }, nil, nil, v1alpha1.TaskFailed, v1alpha1.DeliveryConflict, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPublishing(t)
			h := p.host
			on := h.Git(t, "shop", "", "commit-tree", "-p", "main", "-m", "a person's", "main^{tree}")
			other := h.Git(t, "shop", "", "commit-tree", "-m", "a person's", "main^{tree}")
			if tc.exists {
				h.Git(t, "shop", "", "branch", branch, "main")
			}
			var pushed atomic.Int32
			h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") || pushed.Add(1) > 1 {
					return false
				}
				if tc.before != nil {
					tc.before(h, on, other)
				}
				if tc.answer != nil {
					tc.answer(w, r)
					return true
				}
				h.Serve(w, r)
				if tc.after != nil {
					tc.after(h, on, other)
				}
				return true
			}
			p.change("race", "echo x > new", onBranch(branch))
			task := p.AwaitPhase("race", tc.phase)
			d := task.Status.Delivery
			refs := h.Git(t, "shop", "", "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
			want := map[string]string{"on": on, "other": other, "": "", "start": p.start, "commit": d.ExpectedCommitSHA, "later": d.SupersedingRemoteSHA}[tc.head]
			if d.State != tc.state || refs != want {
				t.Errorf("%s, the branch is at %q; want %s at %q: %s", d.State, refs, tc.state, want, task.Status.Message)
			}
			if tc.state == v1alpha1.DeliveryConflict && tc.head != "" && (!strings.Contains(d.Message, refs) || !strings.Contains(d.Message, d.ExpectedCommitSHA)) {
				t.Errorf("the message does not say both commits: %s", d.Message)
			}
			if p.pushes() != tc.pushes {
				t.Errorf("%d pushes, want %d", p.pushes(), tc.pushes)
			}
		})
	}
}

// TestPublicationCredentials: each step uses the credential of its role and no other, and none of them is in what a run can reach, in what
// is served, or in a file of the server.
func TestPublicationCredentials(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	const lookToken = "lt-9988776655443322aabb"
	p.host.LookToken = lookToken
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "looker"}, StringData: map[string]string{"token": lookToken}}
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	var mu sync.Mutex
	used := map[string][]string{} // requests by password
	p.host.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		mu.Lock()
		defer mu.Unlock()
		used[password] = append(used[password], r.Method+" "+r.URL.RequestURI())
		return false
	}
	p.change("roles", `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'; env; find / -xdev \( -name '.git*' -o -name 'credential*' \) -size -100k -type f -exec cat {} + 2>/dev/null || true; echo x > new`,
		func(w *v1alpha1.TaskWorkspace) { w.PublicationReadCredentialRef.Name = "looker" })
	p.AwaitPhase("roles", v1alpha1.TaskSucceeded)
	for password, want := range map[string]string{
		repositoryToken: "GET git-upload-pack, POST git-upload-pack",
		lookToken:       "GET git-upload-pack, GET git-upload-pack, POST git-upload-pack",
		pushToken:       "GET git-receive-pack, POST git-receive-pack",
	} {
		var got []string
		for _, r := range used[password] {
			method, path, _ := strings.Cut(r, " ")
			got = append(got, method+" git-"+path[strings.LastIndex(path, "git-")+len("git-"):])
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("the credential that begins with %s was used for %q, want %q", password[:2], s, want)
		}
		delete(used, password)
	}
	delete(used, "") // git asks without a credential first, where it does
	if len(used) > 0 {
		t.Errorf("other credentials were used: %v", used)
	}
	events := kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{}))
	shown := fmt.Sprintf("%+v %+v %s", p.task("roles"), events, p.ResultOf("roles"))
	log, _, _ := standalone.Command(t.Context(), p.Kubeconfig, "task", "logs", "roles")
	for _, token := range []string{repositoryToken, lookToken, pushToken} {
		if strings.Contains(shown+log, token) {
			t.Errorf("the credential that begins with %s is shown", token[:2])
		}
		err := filepath.WalkDir(p.DataDir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // what is gone has nothing
			}
			raw, err := os.ReadFile(path)
			if err == nil && bytes.Contains(raw, []byte(token)) {
				t.Errorf("%s has the credential that begins with %s", path, token[:2])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestPublicationCancelled: a cancellation withdraws what has not left yet. After that the publication is finished, and the task says how it
// ended. A task that is deleted meanwhile goes.
func TestPublicationCancelled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// held is the request at which the task is cancelled or deleted.
		held     string
		deletion bool
		phase    v1alpha1.TaskPhase
		state    v1alpha1.TaskDeliveryState
		pushes   int
	}{
		"before the branch is looked at": {"GET /shop.git/info/refs?service=git-upload-pack", false, v1alpha1.TaskCancelled, v1alpha1.DeliveryCancelledBeforePublish, 0},
		"while it is pushed":             {"POST /shop.git/git-receive-pack", false, v1alpha1.TaskSucceeded, v1alpha1.DeliveryVerifiedExact, 1},
		"deleted":                        {"GET /shop.git/info/refs?service=git-upload-pack", true, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPublishing(t)
			reached, goOn := make(chan struct{}), make(chan struct{})
			var seen atomic.Int32
			p.host.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				what := r.Method + " " + r.URL.RequestURI()
				if what != tc.held || r.Header.Get("Authorization") == "" {
					return false
				}
				first := int32(1)
				if r.Method == http.MethodGet {
					first = 2 // the first one prepares the workspace
				}
				if seen.Add(1) == first {
					close(reached)
					select {
					case <-goOn:
					case <-r.Context().Done():
					}
				}
				return false
			}
			p.change("stopped", "echo x > new", onBranch("b"))
			<-reached
			if tc.deletion {
				if err := p.Tasks().Delete(t.Context(), "stopped", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				kit.Await(t, "the task is gone", func() bool {
					_, err := p.Tasks().Get(t.Context(), "stopped", metav1.GetOptions{})
					return apierrors.IsNotFound(err)
				})
				close(goOn)
			} else {
				kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "stopped", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
				if tc.pushes > 0 {
					close(goOn)
				}
				task := p.AwaitPhase("stopped", tc.phase)
				if d := task.Status.Delivery; d.State != tc.state {
					t.Errorf("%s: %s", d.State, task.Status.Message)
				}
			}
			if p.pushes() != tc.pushes || (p.host.Git(t, "shop", "", "for-each-ref", "refs/heads/b") != "") != (tc.pushes > 0) {
				t.Errorf("%d pushes", p.pushes())
			}
			if left, err := os.ReadDir(filepath.Join(p.DataDir, "publications")); err != nil && !os.IsNotExist(err) || len(left) > 0 {
				t.Errorf("left of publications: %v, %v", left, err)
			}
		})
	}
}

// TestPublicationSecretChanged: a credential that is another one than when the run began is not used.
func TestPublicationSecretChanged(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	p.change("slow", "echo x > new; until [ -e go ]; do sleep 0.05; done; rm go", onBranch("b"))
	kit.Await(t, "the run has begun", func() bool { return len(p.EventsOf("slow", v1alpha1.EventWorkspacePreparationCompleted)) > 0 })
	task := p.task("slow")
	secrets := p.Kubernetes(t).CoreV1().Secrets("default")
	pusher := kit.Must[*corev1.Secret](t)(secrets.Get(t.Context(), "pusher", metav1.GetOptions{}))
	pusher.Labels = map[string]string{"changed": "yes"}
	kit.Must[*corev1.Secret](t)(secrets.Update(t.Context(), pusher, metav1.UpdateOptions{}))
	if err := os.WriteFile(filepath.Join(p.Folder(task), "work", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	task = p.AwaitPhase("slow", v1alpha1.TaskFailed)
	if d := task.Status.Delivery; d.State != v1alpha1.DeliveryCredentialBlocked || !strings.Contains(d.Message, `Secret "pusher" was changed since the run began`) || p.pushes() != 0 {
		t.Errorf("%+v", d)
	}
}
