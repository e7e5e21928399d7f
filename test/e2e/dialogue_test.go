// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e drives the built programs from outside, as their users do.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/test/kit"
)

var rewrite = flag.Bool("rewrite", false, "write the expected output of the dialogues anew")

// TestDialogue types each testdata/*.dialogue into a shell and compares what
// the real kubectl prints. A line that starts with "$ " is a command; it
// continues on the next line if it ends in a backslash. The lines up to the next
// command, or to the blank line before that, are the expected output. What changes
// from run to run (ages, uids, revisions) is in angle brackets. "[exit N]" is the
// last line of a command that fails. If there is a NAME.script.yaml, a model answers by it at $MODEL.
func TestDialogue(t *testing.T) {
	files, err := filepath.Glob("testdata/*.dialogue")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".dialogue"), func(t *testing.T) {
			s := local{kit.StartServer(t, t.TempDir(), "--allow-host-commands")}
			if script := strings.TrimSuffix(file, ".dialogue") + ".script.yaml"; exists(script) {
				t.Setenv("MODEL", startModel(t, s, script))
			}
			runDialogue(t, s, file)
		})
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func runDialogue(t *testing.T, s place, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, b := range parseDialogue(string(data)) {
		got.WriteString(b.comment)
		if b.command == "" {
			continue
		}
		r := s.Shell(t, strings.ReplaceAll(b.command, "\\\n", " "))
		fmt.Fprintf(&got, "$ %s\n%s", b.command, normalise(r.Output))
		if r.Code != 0 {
			fmt.Fprintf(&got, "[exit %d]\n", r.Code)
		}
		got.WriteString("\n")
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(data), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("%s (-want +got), -rewrite accepts:\n%s", file, diff)
	}
}

// block is a comment, or a command with the output expected of it.
type block struct{ comment, command string }

func parseDialogue(text string) []block {
	var blocks []block
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		switch line := lines[i]; {
		case strings.HasPrefix(line, "#"):
			blocks = append(blocks, block{comment: line})
		case strings.HasPrefix(line, "$ "):
			command := strings.TrimPrefix(line, "$ ")
			for strings.HasSuffix(command, "\\\n") && i+1 < len(lines) {
				i++
				command += lines[i]
			}
			blocks = append(blocks, block{command: strings.TrimSuffix(command, "\n")})
		}
	}
	return blocks
}

// volatile is what differs between two runs of the same dialogue.
var volatile = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`), "<date>"},
	{regexp.MustCompile(`work-[0-9a-f]{32}`), "<work>"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "<id>"},
	{regexp.MustCompile(`(resourceVersion"?: ?)"?\d+"?`), "$1<revision>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "<clock>"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "<sha256>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<server>"},
	{regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`), "<token>"},
	{regexp.MustCompile(`(?m)( +)(\d+m)?\d+s$`), "   <age>"},
	{regexp.MustCompile(`(?m)\b(\d+m)?\d+(\.\d+)?s\b`), "<age>"},
}

func normalise(s string) string {
	for _, v := range volatile {
		s = v.re.ReplaceAllString(s, v.with)
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	s = strings.Join(lines, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
