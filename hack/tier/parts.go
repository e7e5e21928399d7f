// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// partFile says in a part's folder how the part ended; a part without it was interrupted.
const partFile = "part"

// part is how one part ended.
type part struct {
	name  string
	state string // passed, failed, or "not run"
	took  time.Duration
	said  string // when it passed before, or why it failed
}

// ended is what is kept of a part.
type ended struct {
	Passed  bool      `json:"passed"`
	Seconds float64   `json:"seconds"`
	At      time.Time `json:"at"`
	Said    string    `json:"said,omitempty"`
}

// runParts runs "make part-NAME" for each part that has not passed on this commit, and writes one summary of all.
func runParts(ctx context.Context, name string, only []string, ending time.Duration, parts []string, out io.Writer) error {
	for _, o := range only {
		if !slices.Contains(parts, o) {
			return fmt.Errorf("no part is named %q: there are %s", o, strings.Join(parts, ", "))
		}
	}
	commit, clean, err := head(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join("_output", name, commit)
	var failed []string
	for _, p := range parts {
		if len(only) > 0 && !slices.Contains(only, p) {
			continue
		}
		in := filepath.Join(dir, p)
		if e, err := readPart(in); err == nil && e.Passed && clean {
			fmt.Fprintf(out, "\n=== %s passed on this commit at %s\n", p, e.At.Format(time.RFC3339))
			continue
		}
		fmt.Fprintf(out, "\n=== %s (%s)\n", p, time.Now().Format(time.TimeOnly))
		e, err := runPart(ctx, in, p, ending)
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // interrupted: not a result
			break
		}
		if !e.Passed {
			failed = append(failed, p)
		}
		if err := e.write(in); err != nil {
			return err
		}
	}
	s, err := summarize(dir)
	if err != nil {
		return err
	}
	for _, p := range parts {
		s.parts = append(s.parts, partOf(filepath.Join(dir, p), p))
		s.took += s.parts[len(s.parts)-1].took
	}
	s.title = titled(name, commit)
	s.print(out, "")
	if err := s.write(dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "summary: %s\n", filepath.Join(dir, "summary.txt"))
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return ctx.Err()
}

// runPart runs one part with a folder of its own.
func runPart(ctx context.Context, dir, name string, ending time.Duration) (ended, error) {
	if err := os.RemoveAll(dir); err != nil {
		return ended{}, err
	}
	began := time.Now()
	said, err := runOne(ctx, dir, ending, []string{"make", "--no-print-directory", "part-" + name})
	if err != nil {
		return ended{}, err
	}
	s, err := summarize(dir)
	if err != nil {
		return ended{}, err
	}
	said = errors.Join(said, s.err())
	e := ended{Passed: said == nil, Seconds: time.Since(began).Round(time.Second).Seconds(), At: time.Now().UTC()}
	if said != nil {
		e.Said = said.Error()
	}
	return e, nil
}

func partOf(dir, name string) part {
	e, err := readPart(dir)
	if err != nil {
		return part{name: name, state: "not run"}
	}
	p := part{name: name, state: "failed", took: time.Duration(e.Seconds) * time.Second, said: strings.ReplaceAll(e.Said, "\n", "; ")}
	if e.Passed {
		p.state = "passed"
	}
	return p
}

func readPart(dir string) (ended, error) {
	var e ended
	data, err := os.ReadFile(filepath.Join(dir, partFile))
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(data, &e)
}

func (e ended) write(dir string) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, partFile), data, 0o644)
}

// titled says what was run, on which commit, and when it ended, so that a summary can be cited.
func titled(name, commit string) string {
	return fmt.Sprintf("%s of %s, %s", name, commit, time.Now().UTC().Format(time.RFC3339))
}

// head returns the commit that is checked out, and whether nothing differs from it.
func head(ctx context.Context) (commit string, clean bool, err error) {
	rev, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", false, fmt.Errorf("git rev-parse: %w", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if err != nil {
		return "", false, fmt.Errorf("git status: %w", err)
	}
	commit = strings.TrimSpace(string(rev))
	if len(changes) > 0 {
		return commit + "-changed", false, nil
	}
	return commit, true, nil
}
