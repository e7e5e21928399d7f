// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
)

// The command follows several sessions in one stream until they are deleted, and a session beside tasks until the tasks have ended.
// Each event is printed once for each task and session that was named.
func TestCommandWatchesSessions(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, `exit 0`)
	for _, name := range []string{"one", "two", "none"} {
		p.run(name, func(s *v1alpha1.TaskSpec) {
			if name != "none" {
				s.SessionRef = &v1alpha1.TaskSessionReference{Name: "in-" + name, Create: true}
			}
		})
		p.awaitPhase(name, v1alpha1.TaskSucceeded)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	out, errs, code := platformCommand(ctx, p.Kubeconfig, "task", "watch", "none", "one", "--session", "in-two", "-o", "json")
	got := map[string]int{}
	for line := range strings.Lines(out) {
		count(t, got, line)
	}
	if code != 0 || got["task/none none"] != 1 || got["task/one one"] != 1 || got["session/in-two two"] > 1 {
		t.Errorf("exit code %d, ends: %v\n%s", code, got, errs)
	}
	for _, wrong := range []string{"task watch one --session in-two --tree", "task watch one --session in-two --after 1", "session watch in-one in-two --after 1"} {
		args := strings.Fields(wrong)
		flag := args[slices.IndexFunc(args, func(s string) bool { return s == "--tree" || s == "--after" })]
		if _, errs, code := platformCommand(ctx, p.Kubeconfig, args...); code != 1 || !strings.Contains(errs, flag+": ") {
			t.Errorf("platform %s: %d %s", wrong, code, errs)
		}
	}

	in, to := io.Pipe()
	var said bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- cli.Main(ctx, "platform", []string{"--kubeconfig", p.Kubeconfig, "session", "watch", "in-one", "in-two", "-o", "json"}, cli.Streams{In: strings.NewReader(""), Out: to, Err: &said})
		_ = to.Close() // a pipe: it cannot fail
	}()
	clear(got)
	lines := bufio.NewScanner(in)
	for len(got) < 2 && lines.Scan() {
		count(t, got, lines.Text())
	}
	p.run("late", func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "in-two"} })
	for got["session/in-two late"] == 0 && lines.Scan() {
		count(t, got, lines.Text())
	}
	if got["session/in-one one"] != 1 || got["session/in-two two"] != 1 || got["session/in-two late"] != 1 {
		t.Fatalf("ends: %v, %v", got, lines.Err())
	}
	p.awaitPhase("late", v1alpha1.TaskSucceeded)
	for _, name := range []string{"one", "two", "late"} {
		if err := p.tasks().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"in-one", "in-two"} {
		if err := p.sessions().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for lines.Scan() {
		count(t, got, lines.Text())
	}
	if code := <-done; code != 0 || !strings.Contains(said.String(), "session in-one was deleted") || !strings.Contains(said.String(), "session in-two was deleted") {
		t.Errorf("exit code %d\n%s", code, said.String())
	}
}

// count adds to the number of successes of each task in each stream if an event that was printed is one.
func count(t *testing.T, ends map[string]int, line string) {
	t.Helper()
	var e v1alpha1.ExecutionEvent
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if e.Type == v1alpha1.EventTaskSucceeded {
		ends[string(e.StreamType)+"/"+e.StreamID+" "+e.TaskName]++
	}
}
