// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestCommandTellsHowATaskEnded(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `case $PLATFORM_TASK_NAME in
good*) echo fine | sed 's/^/log: /'; exit 0;;
bad*) exit 7;;
slow*) trap 'exit 9' TERM; while :; do sleep 1; done;;
esac
`)
	for _, name := range []string{"good", "bad", "slow"} {
		p.Run(name)
	}
	for name, phase := range map[string]v1alpha1.TaskPhase{"good": v1alpha1.TaskSucceeded, "bad": v1alpha1.TaskFailed, "slow": v1alpha1.TaskRunning} {
		p.AwaitPhase(name, phase) // the status follows the event that ends a task
	}
	for _, tc := range []struct {
		args       []string
		code       int
		out, about string
	}{
		{[]string{"task", "watch", "good"}, 0, "TaskSucceeded", ""},
		{[]string{"task", "wait", "good"}, 0, "task good succeeded", ""},
		{[]string{"task", "watch", "bad"}, 2, "TaskFailed", "platform: task bad failed: "},
		{[]string{"task", "watch", "good", "bad"}, 2, "TaskSucceeded", "platform: task bad failed: "},
		{[]string{"task", "wait", "bad"}, 2, "", "exit code 7"},
		{[]string{"task", "wait", "slow", "--timeout", "10ms"}, 4, "", "has not ended within 10ms"},
		{[]string{"task", "watch", "none"}, 1, "", `platform: tasks.core.platform.ai "none" not found`},
		{[]string{"task", "get", "good"}, 0, "Succeeded", ""},
		{[]string{"task", "list", "--status", "Failed", "-o", "name"}, 0, "task.core.platform.ai/bad\n", ""},
		{[]string{"task", "list", "-o", "xml"}, 1, "", "-o: \"xml\" is not one of table, wide, json, yaml, name"},
		{[]string{"task", "trace", "bad"}, 0, "default/bad  Failed", ""},
		{[]string{"task", "cancel", "slow", "--reason", "enough"}, 0, "cancellation of task slow was requested", ""},
		{[]string{"task", "watch", "slow", "--tree", "good"}, 1, "", "--tree: follows one task"},
		{[]string{"task", "watch", "slow"}, 3, "TaskCancelled", "task slow was cancelled: the task was cancelled: enough"},
		{[]string{"task", "watch", "good", "slow", "bad"}, 3, "TaskCancelled", "task bad failed: "},
		{[]string{"task", "approve", "good"}, 1, "", "task good waits for no approval"},
		{[]string{"task", "fork", "good", "--after", "1", "--name", "good-2", "-w"}, 0, "task good-2 created: good after event 1 (1 event of history)", ""},
		{[]string{"task", "delete", "good"}, 0, "task good deleted", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
		out, errs, code := standalone.Command(ctx, p.Kubeconfig, tc.args...)
		cancel()
		if code != tc.code || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.about) {
			t.Errorf("platform %s: exit code %d, want %d\n%s%s", strings.Join(tc.args, " "), code, tc.code, out, errs)
		}
	}
}

// TestCommandFollowsAcrossARestart: the server is stopped and started while the command follows a stream; it prints
// each event once, in order.
func TestCommandFollowsAcrossARestart(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t, standalone.OnAPort(t))
	tasks := s.Core(t).Tasks("default")
	if _, err := tasks.Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Command: []string{"true"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	add := func(tasks typed.TaskInterface, n int, last v1alpha1.EventType) {
		t.Helper()
		batch := &v1alpha1.ExecutionEventList{}
		for range n {
			batch.Items = append(batch.Items, v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage})
		}
		if last != "" {
			batch.Items = append(batch.Items, v1alpha1.ExecutionEvent{Type: last})
		}
		if _, err := tasks.AppendEvents(t.Context(), "a", batch, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	add(tasks, 1500, "")
	in, out := io.Pipe()
	done := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	go func() {
		done <- cli.Main(ctx, "platform", []string{"--kubeconfig", s.Kubeconfig, "task", "watch", "a", "-o", "json"}, cli.Streams{In: strings.NewReader(""), Out: out, Err: io.Discard})
		_ = out.Close() // a pipe: it cannot fail
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	seq := int64(0)
	next := func() v1alpha1.EventType {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the output ends behind event %d: %v", seq, lines.Err())
		}
		var e v1alpha1.ExecutionEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq {
			t.Fatalf("event %d comes after %d", e.Seq, seq-1)
		}
		return e.Type
	}
	for seq < 1200 {
		next()
	}
	s.Restart(t)
	add(s.Core(t).Tasks("default"), 700, v1alpha1.EventTaskSucceeded)
	for next() != v1alpha1.EventTaskSucceeded {
	}
	if code := <-done; code != 0 || seq != 2201 {
		t.Errorf("exit code %d after %d events", code, seq)
	}
}

func TestCommandPagesThroughEvents(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.Core(t)
	standalone.Source(t, c, "a", 2300)
	out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "task", "events", "a", "-o", "json")
	if n := strings.Count(out, "\n"); code != 0 || n != 2300 {
		t.Errorf("%d events, exit code %d: %s", n, code, errs)
	}
	out, _, _ = standalone.Command(t.Context(), s.Kubeconfig, "task", "events", "a", "--after", "100", "--limit", "1200", "-o", "json")
	if n := strings.Count(out, "\n"); n != 1200 || !strings.Contains(out, fmt.Sprintf(`"seq":%d,`, 1300)) {
		t.Errorf("%d events", n)
	}
	out, _, _ = standalone.Command(t.Context(), s.Kubeconfig, "task", "events", "a", "--type", "TaskFailed")
	if out != "" {
		t.Errorf("a type that no event has: %s", out)
	}
}
