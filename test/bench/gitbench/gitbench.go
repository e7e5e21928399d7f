// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitbench compares the program platform-workspace with the git program, from one git server on this machine: the files of a
// commit, what changed among them, and a commit that is pushed and looked for.
package gitbench

import (
	"context"
	"errors"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/program"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	files   = 10_000
	changed = 1_000
	// rounds is how often each subject is measured, in turns; the median counts.
	rounds = 5

	rowPrepare = "git: clone and checkout of 10,000 files"
	rowFreeze  = "git: delta of 1,000 changed files of 10,000"
	rowPublish = "git: commit of 1,000 files, pushed and seen"
)

// Options configure the benchmark.
type Options struct {
	// Bin is the folder of our programs, Dir the folder to work in, and Rows selects rows.
	Bin, Dir string
	Rows     *regexp.Regexp
}

// Run measures the rows.
func Run(ctx context.Context, o Options, r *report.Report) error {
	if !slices.ContainsFunc([]string{rowPrepare, rowFreeze, rowPublish}, o.Rows.MatchString) {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(o.Bin, workspace.ProgramName))
	if err != nil {
		return err
	}
	b := &bench{dir: filepath.Join(o.Dir, "git"), program: path}
	stop, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var took [3][2][]float64 // of each row, of ours and of git, in milliseconds
	for n := range rounds {
		for who, run := range []func(context.Context, int) ([3]time.Duration, error){b.ours, b.git} {
			times, err := run(ctx, n)
			if err != nil {
				return err
			}
			for row, d := range times {
				took[row][who] = append(took[row][who], float64(d.Microseconds())/1000)
			}
		}
	}
	for i, name := range []string{rowPrepare, rowFreeze, rowPublish} {
		if !o.Rows.MatchString(name) {
			continue
		}
		slices.Sort(took[i][0])
		slices.Sort(took[i][1])
		if err := r.Add(report.Row{Name: name, Unit: "ms", Better: report.Lower, Ours: took[i][0][rounds/2], Other: took[i][1][rounds/2], OtherName: "git", Within: 30}); err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	dir, program string
	url, address string
}

// serve makes the repository and serves it.
func (b *bench) serve(ctx context.Context) (stop func(), err error) {
	repo := filepath.Join(b.dir, "server", "r.git")
	if err := os.MkdirAll(repo, 0o700); err != nil {
		return nil, err
	}
	if err := b.run(ctx, repo, "", "init", "-q", "--bare", "-b", "main"); err != nil {
		return nil, err
	}
	if err := b.run(ctx, repo, "", "config", "http.receivepack", "true"); err != nil {
		return nil, err
	}
	var in strings.Builder
	in.WriteString("commit refs/heads/main\ncommitter A <a@b> 1767323045 +0000\ndata 4\nwork\n")
	for i := range files {
		content := content(i, 0)
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name(i), len(content), content)
	}
	if err := b.run(ctx, repo, in.String(), "fast-import", "--quiet"); err != nil {
		return nil, err
	}
	libexec, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"), Env: append(environ(), "GIT_PROJECT_ROOT="+filepath.Join(b.dir, "server"), "GIT_HTTP_EXPORT_ALL=1"),
	})
	b.url, b.address = server.URL+"/r.git", strings.TrimPrefix(server.URL, "http://")
	return server.Close, nil
}

func name(i int) string { return fmt.Sprintf("d%02d/e%02d/file%05d.txt", i%50, i%7, i) }

// content is a file of about a kilobyte.
func content(i, version int) string {
	return strings.Repeat(fmt.Sprintf("line of file %d, version %d\n", i, version), 32)
}

// change changes every tenth file below a folder.
func change(dir string, version int) error {
	for i := range changed {
		at := i * files / changed
		if err := os.WriteFile(filepath.Join(dir, name(at)), []byte(content(at, version)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b",
	}
}

func (b *bench) run(ctx context.Context, dir, input string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environ(), strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// fresh returns a new folder and what removes it.
func (b *bench) fresh(who string, n int) (dir string, remove func(), err error) {
	dir = filepath.Join(b.dir, fmt.Sprintf("%s-%d", who, n))
	for _, name := range []string{"work", "tmp", "kept"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// ours measures platform-workspace, as workers and controllers start it.
func (b *bench) ours(ctx context.Context, n int) (took [3]time.Duration, err error) {
	dir, remove, err := b.fresh("ours", n)
	if err != nil {
		return took, err
	}
	defer remove()
	at := func(name string) string { return filepath.Join(dir, name) }
	access := workspace.Access{URL: b.url, Allow: []string{b.address}}
	step := func(name string, order any) *workspace.Answer {
		var answer *workspace.Answer
		if err == nil {
			answer, err = program.Run(ctx, b.program, at("tmp"), name, order)
		}
		if err != nil {
			return &workspace.Answer{Report: &workspace.Report{}, Built: &workspace.Built{}, Pushed: &workspace.Pushed{}, Seen: &workspace.Seen{}}
		}
		return answer
	}
	began := time.Now()
	start := step(workspace.Prepare, workspace.Order{
		URL: access.URL, Allow: access.Allow, Branch: "main", Dir: at("work"), Temp: at("tmp"), Keep: at("kept"), MaxBytes: 1 << 30, MaxEntries: workspace.MaxEntries,
	}).Report.Commit
	took[0] = time.Since(began)
	err = errors.Join(err, change(at("work"), n+1))
	began = time.Now()
	step(workspace.Freeze, workspace.FreezeOrder{Baseline: at("kept"), Commit: start, Dir: at("work"), Delta: at("delta"), Diff: at("diff"), MaxBytes: 10 << 20, MaxEntries: workspace.MaxEntries})
	took[1] = time.Since(began)
	branch := fmt.Sprintf("ours-%d", n)
	began = time.Now()
	built := step(workspace.Build, workspace.BuildOrder{Delta: at("delta"), Pack: at("pack"), Parent: start, Message: "work", Time: began}).Built
	step(workspace.Push, workspace.PushOrder{Access: access, Branch: branch, New: built.Commit, Pack: at("pack")})
	seen := step(workspace.Look, workspace.LookOrder{Access: access, Branch: branch, Known: start, Published: built.Commit, Temp: at("tmp")}).Seen
	took[2] = time.Since(began)
	if err == nil && (seen.Head != built.Commit || built.Files != changed) {
		err = fmt.Errorf("the branch is at %q, and the commit %+v", seen.Head, built)
	}
	return took, err
}

// git measures the git program doing the same.
func (b *bench) git(ctx context.Context, n int) (took [3]time.Duration, err error) {
	dir, remove, err := b.fresh("git", n)
	if err != nil {
		return took, err
	}
	defer remove()
	clone := filepath.Join(dir, "work")
	timed := func(commands ...[]string) (d time.Duration) {
		began := time.Now()
		for _, args := range commands {
			if err == nil {
				err = b.run(ctx, clone, "", args...)
			}
		}
		return time.Since(began)
	}
	took[0] = timed([]string{"clone", "-q", "--depth", "1", b.url, "."})
	err = errors.Join(err, change(clone, 100+n))
	took[1] = timed([]string{"add", "--all"}, []string{"diff", "--cached", "--binary", "--full-index", "--output=" + filepath.Join(dir, "diff")})
	branch := fmt.Sprintf("git-%d", n)
	took[2] = timed([]string{"commit", "-q", "-m", "work"}, []string{"push", "-q", "--force-with-lease=" + branch + ":", "origin", "HEAD:refs/heads/" + branch}, []string{"fetch", "-q", "origin", branch})
	return took, err
}
