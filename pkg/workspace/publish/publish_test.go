// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/prepare"
	"github.com/platform-ai/platform/test/githost"
)

// work is one task's way from the repository to a commit that nobody has yet.
type work struct {
	t      *testing.T
	host   *githost.Host
	dir    string
	start  string
	frozen *workspace.Frozen
	built  *workspace.Built
}

// begin prepares a workspace of the branch main of the repository r.
func begin(t *testing.T, h *githost.Host) *work {
	t.Helper()
	w := &work{t: t, host: h, dir: t.TempDir()}
	for _, name := range []string{"work", "tmp", "kept"} {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r, err := prepare.Do(t.Context(), workspace.Order{
		URL: h.Location("r"), Token: h.Token, Allow: []string{h.Address()}, Dir: w.path("work"), Temp: w.path("tmp"), Keep: w.path("kept"), MaxBytes: 10 << 20, MaxEntries: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.start = r.Commit
	return w
}

func (w *work) path(name string) string { return filepath.Join(w.dir, name) }

// finish changes files, freezes and builds. An empty content removes the file.
func (w *work) finish(files map[string]string) {
	w.t.Helper()
	for name, content := range files {
		file := filepath.Join(w.path("work"), name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if content == "" {
			err = os.Remove(file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(content), 0o600)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	var err error
	w.frozen, err = Freeze(w.t.Context(), workspace.FreezeOrder{
		Baseline: w.path("kept"), Commit: w.start, Dir: w.path("work"), Delta: w.path("delta"), Diff: w.path("diff"), MaxBytes: 1 << 20, MaxEntries: 1000,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.built, err = Build(w.t.Context(), workspace.BuildOrder{Delta: w.path("delta"), Pack: w.path("pack"), Parent: w.start, Message: "Do it", Time: time.Unix(1_800_000_000, 0)})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *work) access() workspace.Access {
	return workspace.Access{URL: w.host.Location("r"), Token: w.host.Token, Allow: []string{w.host.Address()}}
}

func (w *work) push(branch, old string) (*workspace.Pushed, error) {
	return Push(w.t.Context(), workspace.PushOrder{Access: w.access(), Branch: branch, Old: old, New: w.built.Commit, Pack: w.path("pack")})
}

func (w *work) look(branch, published string) *workspace.Seen {
	w.t.Helper()
	s, err := Look(w.t.Context(), workspace.LookOrder{Access: w.access(), Branch: branch, Known: w.start, Published: published, Temp: w.path("tmp")})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func hostWith(t *testing.T, token string) *githost.Host {
	t.Helper()
	h := githost.New(t, token)
	h.Create(t, "r")
	h.Commit(t, "r", "main", map[string]string{"old": "history"})
	h.Commit(t, "r", "main", map[string]string{"README.md": "hello\n", "a/b": "b\n"})
	return h
}

// TestPublication: a new branch gets one commit on the one that the run began with, which git finds whole and which another read sees.
func TestPublication(t *testing.T) {
	t.Parallel()
	h := hostWith(t, "token-of-the-host")
	w := begin(t, h)
	if s := w.look("work/1", ""); *s != (workspace.Seen{}) {
		t.Errorf("before: %+v", s)
	}
	w.finish(map[string]string{"README.md": "more\n", "a/b": "", "c/d": "new\n"})
	if w.frozen.Files != 3 || w.built.Files != 3 || w.frozen.NotShown != 0 {
		t.Errorf("frozen %+v, built %+v", w.frozen, w.built)
	}
	for i, want := range []workspace.PushOutcome{workspace.PushAccepted, workspace.PushNotNeeded} {
		if p, err := w.push("work/1", ""); err != nil || p.Outcome != want {
			t.Errorf("push %d: %+v, %v, want %s", i, p, err, want)
		}
	}
	if s := w.look("work/1", w.built.Commit); s.Head != w.built.Commit || !s.Contains || s.Tree != w.built.Tree {
		t.Errorf("after: %+v, want %+v", s, w.built)
	}
	h.Git(t, "r", "", "fsck", "--strict")
	if got := h.Git(t, "r", "", "log", "--format=%H", "work/1", "^"+w.start); got != w.built.Commit {
		t.Errorf("the branch has %q on top, want one commit", got)
	}
	if got := h.Git(t, "r", "", "diff", "--name-status", w.start, "work/1"); got != "M\tREADME.md\nD\ta/b\nA\tc/d" {
		t.Errorf("changed: %q", got)
	}
	var pushes int
	for _, r := range h.Requests() {
		pushes += strings.Count(r, "POST /r.git/git-receive-pack")
	}
	if pushes != 1 {
		t.Errorf("%d pushes were sent", pushes)
	}
}

// TestBranches: what a look says of a branch in each place, and where a push moves it.
func TestBranches(t *testing.T) {
	t.Parallel()
	for _, filter := range []bool{false, true} {
		h := hostWith(t, "")
		if filter {
			h.Git(t, "r", "", "config", "uploadpack.allowFilter", "true")
		}
		h.Git(t, "r", "", "config", "uploadpack.allowReachableSHA1InWant", "true")
		w := begin(t, h)
		w.finish(map[string]string{"README.md": "more\n"})
		parent := h.Git(t, "r", "", "rev-parse", w.start+"^")
		h.Git(t, "r", "", "update-ref", "refs/heads/same", w.start)
		h.Git(t, "r", "", "update-ref", "refs/heads/behind", parent)
		h.Git(t, "r", "", "update-ref", "refs/heads/other", h.Git(t, "r", "", "commit-tree", "-m", "other", w.start+"^{tree}"))
		h.Commit(t, "r", "main", map[string]string{"README.md": "on main\n"})
		for branch, want := range map[string]bool{"same": true, "behind": true, "other": false, "main": false} {
			head := h.Git(t, "r", "", "rev-parse", branch)
			if s := w.look(branch, ""); s.Head != head || s.Forward != want {
				t.Errorf("filter %v: %s: %+v, want forward %v of %s", filter, branch, s, want, head)
			}
		}
		if p, err := w.push("same", parent); err != nil || p.Outcome != workspace.PushMoved || p.Head != w.start {
			t.Errorf("a branch that is elsewhere: %+v, %v", p, err)
		}
		if p, err := w.push("behind", parent); err != nil || p.Outcome != workspace.PushAccepted {
			t.Errorf("forward: %+v, %v", p, err)
		}
		on := h.Git(t, "r", "", "commit-tree", "-m", "on it", "-p", w.built.Commit, w.built.Commit+"^{tree}")
		merge := h.Git(t, "r", "", "commit-tree", "-m", "merge", "-p", w.start, "-p", on, w.built.Commit+"^{tree}")
		h.Git(t, "r", "", "update-ref", "refs/heads/later", merge)
		if s := w.look("later", w.built.Commit); s.Head != merge || !s.Contains {
			t.Errorf("filter %v: a branch that went on: %+v", filter, s)
		}
		for _, branch := range []string{"main", "other", "same", "none"} {
			if s := w.look(branch, w.built.Commit); s.Contains {
				t.Errorf("filter %v: %s does not contain the commit: %+v", filter, branch, s)
			}
		}
	}
}

// TestServersOfPushes: what a server does wrong is said by the outcome, and neither its words nor the token are in a text.
func TestServersOfPushes(t *testing.T) {
	t.Parallel()
	const token, said = "swordfish-token-4711", "words of the server"
	isPush := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack")
	}
	for name, tc := range map[string]struct {
		prepare func(h *githost.Host)
		answer  func(w http.ResponseWriter, r *http.Request) bool
		access  func(*workspace.PushOrder)
		outcome workspace.PushOutcome
		reason  string
	}{
		"refused by a hook": {func(h *githost.Host) { h.Hook(t, "r", "pre-receive", "#!/bin/sh\necho "+said+"\nexit 1\n") }, nil, nil, workspace.PushRefused, ""},
		"refused by a rule": {func(h *githost.Host) { h.Git(t, "r", "", "config", "receive.hideRefs", "refs/heads/work") }, nil, nil, workspace.PushRefused, ""},
		"cut off": {nil, func(_ http.ResponseWriter, r *http.Request) bool {
			if isPush(r) {
				panic(http.ErrAbortHandler)
			}
			return false
		}, nil, workspace.PushLost, ""},
		"a page": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if isPush(r) {
				_, _ = io.WriteString(w, "<html>"+said)
			}
			return isPush(r)
		}, nil, workspace.PushLost, ""},
		"an error": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if isPush(r) {
				http.Error(w, said, http.StatusBadGateway)
			}
			return isPush(r)
		}, nil, workspace.PushLost, ""},
		"nothing": {nil, func(_ http.ResponseWriter, r *http.Request) bool { return isPush(r) }, nil, workspace.PushLost, ""},
		"another branch": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if isPush(r) {
				_, _ = io.WriteString(w, "000eunpack ok\n0018ok refs/heads/other\n0000")
			}
			return isPush(r)
		}, nil, workspace.PushLost, ""},
		"too much": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if isPush(r) {
				_, _ = w.Write(bytes.Repeat([]byte("0010padpadpadpad"), 1<<17))
			}
			return isPush(r)
		}, nil, workspace.PushLost, ""},
		"wrong token":      {nil, nil, func(o *workspace.PushOrder) { o.Token = "other" }, "", v1alpha1.ReasonCredentialBlocked},
		"may not push":     {func(h *githost.Host) { h.Git(t, "r", "", "config", "http.receivepack", "false") }, nil, nil, "", v1alpha1.ReasonCredentialBlocked},
		"no repository":    {nil, nil, func(o *workspace.PushOrder) { o.URL += "x" }, "", v1alpha1.ReasonCredentialBlocked},
		"private address":  {nil, nil, func(o *workspace.PushOrder) { o.Allow = nil }, "", v1alpha1.ReasonCredentialBlocked},
		"lacks the commit": {nil, nil, func(o *workspace.PushOrder) { o.URL = strings.Replace(o.URL, "/r.git", "/empty.git", 1) }, workspace.PushRefused, ""},
		"redirect": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if isPush(r) {
				http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			}
			return isPush(r)
		}, nil, workspace.PushLost, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostWith(t, token)
			h.Create(t, "empty")
			h.Commit(t, "empty", "main", map[string]string{"x": "1"})
			w := begin(t, h)
			w.finish(map[string]string{"README.md": "more\n"})
			if tc.prepare != nil {
				tc.prepare(h)
			}
			h.Answer = tc.answer
			o := workspace.PushOrder{Access: w.access(), Branch: "work/1", New: w.built.Commit, Pack: w.path("pack")}
			if tc.access != nil {
				tc.access(&o)
			}
			p, err := Push(t.Context(), o)
			switch {
			case tc.reason != "" && (err == nil || failure(err).Reason != tc.reason):
				t.Errorf("%+v, %v; want reason %s", p, err, tc.reason)
			case tc.reason == "" && (err != nil || p.Outcome != tc.outcome):
				t.Errorf("%+v, %v; want %s", p, err, tc.outcome)
			case err != nil && (strings.Contains(err.Error(), token) || strings.Contains(err.Error(), said)):
				t.Errorf("the error shows %v", err)
			}
			h.Answer = nil
			if s := w.look("work/1", w.built.Commit); s.Head != "" {
				t.Errorf("the branch is at %s", s.Head)
			}
		})
	}
}

// TestSteps: each step answers an order with its failure. Input that is no order is an error, without an answer.
func TestSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	delta := filepath.Join(dir, "delta")
	if err := os.WriteFile(delta, []byte("not one"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	access := workspace.Access{URL: closed.URL, Allow: []string{strings.TrimPrefix(closed.URL, "http://")}}
	for name, tc := range map[string]struct {
		order     any
		reason    string
		temporary bool
	}{
		workspace.Prepare: {workspace.Order{}, v1alpha1.ReasonRepositoryNotRead, false},
		workspace.Build:   {workspace.BuildOrder{Delta: delta, Policy: workspace.Policy{}}, v1alpha1.ReasonPublicationRefused, false},
		workspace.Push:    {workspace.PushOrder{Access: access}, v1alpha1.ReasonRepositoryUnreachable, true},
		workspace.Look:    {workspace.LookOrder{Access: access}, v1alpha1.ReasonRepositoryUnreachable, true},
		workspace.Freeze:  {workspace.FreezeOrder{Baseline: dir, Commit: strings.Repeat("a", 40)}, v1alpha1.ReasonRepositoryNotRead, false},
	} {
		raw, err := json.Marshal(tc.order)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		var answer workspace.Answer
		if err := Steps()[name](t.Context(), bytes.NewReader(raw), &out); err != nil || json.Unmarshal(out.Bytes(), &answer) != nil {
			t.Fatalf("%s: %v: %s", name, err, out.String())
		}
		if f := answer.Failure; f == nil || f.Reason != tc.reason || f.Temporary != tc.temporary {
			t.Errorf("%s: %+v, want %s", name, f, tc.reason)
		}
		if err := Steps()[name](t.Context(), strings.NewReader("no"), &out); err == nil {
			t.Errorf("%s takes anything for an order", name)
		}
	}
}
