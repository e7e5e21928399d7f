// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package githost serves git repositories over HTTP for tests, with the git program's own server, unmodified (package gitfolder). A
// host may want a token, and notes the requests that it gets.
package githost

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/test/githost/gitfolder"
)

// Host serves the repositories that a test makes.
type Host struct {
	*httptest.Server
	// Token, if not empty, is the password that each request must have.
	Token string
	// PushToken, if not empty, is the password of pushes, and Token that of everything else. LookToken may read, too.
	PushToken, LookToken string
	// Answer, if set, may answer a request in place of git; it reports whether it did.
	Answer func(w http.ResponseWriter, r *http.Request) bool

	serve    func(w http.ResponseWriter, r *http.Request)
	folder   gitfolder.Folder
	mu       sync.Mutex
	requests []string
}

// New starts a host. It ends with the test.
func New(t testing.TB, token string) *Host {
	t.Helper()
	return At(t, "127.0.0.1:0", token)
}

// At is New for an address of this machine, where Pods can reach the host.
func At(t testing.TB, address, token string) *Host {
	t.Helper()
	h := &Host{folder: gitfolder.Folder(t.TempDir()), Token: token}
	backend, err := h.folder.Handler()
	if err != nil {
		t.Fatal(err)
	}
	h.serve = func(w http.ResponseWriter, r *http.Request) {
		want := h.Token
		if h.PushToken != "" && strings.Contains(r.URL.RequestURI(), "git-receive-pack") {
			want = h.PushToken
		}
		if _, password, _ := r.BasicAuth(); want != "" && password != want && (want != h.Token || h.LookToken == "" || password != h.LookToken) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r.Method+" "+r.URL.RequestURI())
		h.mu.Unlock()
		if h.Answer != nil && h.Answer(w, r) {
			return
		}
		h.serve(w, r)
	}))
	if err := h.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	if h.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	h.Start()
	t.Cleanup(h.Close)
	return h
}

// Serve answers a request as git does, for an Answer that does more.
func (h *Host) Serve(w http.ResponseWriter, r *http.Request) { h.serve(w, r) }

// Location returns the address of a repository.
func (h *Host) Location(name string) string { return h.URL + "/" + name + ".git" }

// Address returns the host and port.
func (h *Host) Address() string { return strings.TrimPrefix(h.URL, "http://") }

// Requests returns the requests until now.
func (h *Host) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Git runs git in a repository and returns what it prints.
func (h *Host) Git(t testing.TB, name, input string, args ...string) string {
	t.Helper()
	out, err := h.folder.Git(t.Context(), name, input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Create makes an empty repository whose default branch is main.
func (h *Host) Create(t testing.TB, name string) {
	t.Helper()
	if err := h.folder.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// Executable and Link begin the content of a file that is executable, and of one that is a link.
const (
	Executable = gitfolder.Executable
	Link       = gitfolder.Link
)

// Commit adds a commit with exactly these files to a branch, and returns its name.
func (h *Host) Commit(t testing.TB, name, branch string, files map[string]string) string {
	t.Helper()
	head, err := h.folder.Commit(t.Context(), name, branch, "work", files)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// Entry is one entry of a tree that git itself would not make.
type Entry struct {
	// Mode is octal, such as 100644, 120000, 40000 or 160000. Content is that of a file or link; ID names a tree or a commit.
	Mode, Name, Content, ID string
}

// Tree stores a tree as it is given, and returns its name.
func (h *Host) Tree(t testing.TB, name string, entries ...Entry) string {
	t.Helper()
	var raw strings.Builder
	for _, e := range entries {
		id := e.ID
		if id == "" {
			id = h.Git(t, name, e.Content, "hash-object", "-w", "--stdin")
		}
		fmt.Fprintf(&raw, "%s %s\x00", e.Mode, e.Name)
		for i := 0; i < len(id); i += 2 {
			var b byte
			if _, err := fmt.Sscanf(id[i:i+2], "%02x", &b); err != nil {
				t.Fatal(err)
			}
			raw.WriteByte(b)
		}
	}
	return h.Git(t, name, raw.String(), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
}

// CommitTree makes a commit of a tree the head of a branch, and returns its name.
func (h *Host) CommitTree(t testing.TB, name, branch, tree string) string {
	t.Helper()
	id := h.Git(t, name, "", "commit-tree", "-m", "work", tree)
	h.Git(t, name, "", "update-ref", "refs/heads/"+branch, id)
	return id
}

// Hook makes a script a hook of a repository.
func (h *Host) Hook(t testing.TB, name, hook, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.folder.Path(name), "hooks", hook), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}
