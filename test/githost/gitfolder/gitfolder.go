// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitfolder is a folder of bare git repositories, which the git program makes, and serves over HTTP with its own server (git
// http-backend). The configuration of the machine and of its user is kept out.
package gitfolder

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is the path of such a folder.
type Folder string

func environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}
}

// Path returns the folder of a repository.
func (f Folder) Path(name string) string { return filepath.Join(string(f), name+".git") }

// Handler serves all repositories of the folder, each as NAME.git.
func (f Folder) Handler() (http.Handler, error) {
	libexec, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	backend := filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		return nil, err
	}
	return &cgi.Handler{Path: backend, Env: append(environ(), "GIT_PROJECT_ROOT="+string(f), "GIT_HTTP_EXPORT_ALL=1"), Stderr: io.Discard}, nil
}

// Git runs git in a repository and returns what it prints.
func (f Folder) Git(ctx context.Context, name, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = f.Path(name), environ(), strings.NewReader(input)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, failed.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Create makes an empty repository whose default branch is main.
func (f Folder) Create(ctx context.Context, name string) error {
	if err := os.MkdirAll(f.Path(name), 0o700); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", "."}, {"config", "http.receivepack", "true"}, {"config", "core.logAllRefUpdates", "always"},
	} {
		if _, err := f.Git(ctx, name, "", args...); err != nil {
			return err
		}
	}
	return nil
}

// Executable and Link begin the content of a file that is executable, and of one that is a link.
const (
	Executable = "\x00executable\x00"
	Link       = "\x00link\x00"
)

// Commit adds a commit with exactly these files to a branch, and returns its name.
func (f Folder) Commit(ctx context.Context, name, branch, message string, files map[string]string) (string, error) {
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/%s\ncommitter Ada <ada@example.com> 1767323045 +0000\ndata %d\n%s\n", branch, len(message), message)
	if head, err := f.Git(ctx, name, "", "rev-parse", "-q", "--verify", "refs/heads/"+branch); err == nil {
		fmt.Fprintf(&in, "from %s\ndeleteall\n", head)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		mode, content := "100644", files[path]
		if text, ok := strings.CutPrefix(content, Executable); ok {
			mode, content = "100755", text
		} else if target, ok := strings.CutPrefix(content, Link); ok {
			mode, content = "120000", target
		}
		fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, path, len(content), content)
	}
	if _, err := f.Git(ctx, name, in.String(), "fast-import", "--quiet", "--force"); err != nil {
		return "", err
	}
	return f.Git(ctx, name, "", "rev-parse", "refs/heads/"+branch)
}
