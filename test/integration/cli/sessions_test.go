// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// The command follows several sessions in one stream, across a restart of the server, until they are deleted, and a session beside
// tasks until the tasks have ended. Each event is printed once for each task and session that was named.
func TestCommandWatchesSessions(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := standalone.NewPlatform(t, `case $PLATFORM_TASK_NAME in
slow*) trap 'exit 9' TERM; while :; do sleep 1; done;;
esac
`, standalone.OnAPort(t)) // the command and the workers find the server again
	for _, name := range []string{"one", "two", "slow"} {
		p.Run(name, func(s *v1alpha1.TaskSpec) {
			if name != "slow" {
				s.SessionRef = &v1alpha1.TaskSessionReference{Name: "in-" + name, Create: true}
			}
		})
	}
	for _, name := range []string{"one", "two"} {
		p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	}
	ends := map[string]int{}
	count := func(e *v1alpha1.ExecutionEvent) {
		if e.Type == v1alpha1.EventTaskSucceeded || e.Type == v1alpha1.EventTaskCancelled {
			ends[string(e.StreamType)+"/"+e.StreamID+" "+e.TaskName]++
		}
	}
	want := func(wanted ...string) {
		t.Helper()
		for _, one := range wanted {
			if ends[one] != 1 || len(ends) != len(wanted) {
				t.Fatalf("want one each of %q: %v", wanted, ends)
			}
		}
	}

	next, rest := p.Watching(t.Output(), "task", "watch", "slow", "one", "--session", "in-two")
	until := func(n int) {
		t.Helper()
		for len(ends) < n {
			e := next()
			if e == nil {
				t.Fatalf("the output ends after %v", ends)
			}
			count(e)
		}
	}
	until(2)
	want("task/one one", "session/in-two two")
	if out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "cancel", "slow"); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	left, code := rest()
	for i := range left {
		count(&left[i])
	}
	if want("task/one one", "session/in-two two", "task/slow slow"); code != 3 {
		t.Errorf("exit code %d for a task that was cancelled", code)
	}

	for _, wrong := range []string{"task watch one --session in-two --tree", "task watch one --session in-two --after 1", "session watch in-one in-two --after 1"} {
		args := strings.Fields(wrong)
		flag := args[slices.IndexFunc(args, func(s string) bool { return s == "--tree" || s == "--after" })]
		if _, errs, code := standalone.Command(t.Context(), p.Kubeconfig, args...); code != 1 || !strings.Contains(errs, flag+": ") {
			t.Errorf("platform %s: %d %s", wrong, code, errs)
		}
	}

	clear(ends)
	var said bytes.Buffer
	next, rest = p.Watching(&said, "session", "watch", "in-one", "in-two")
	until(2)
	p.Restart(t)
	p.Run("late", func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "in-two"} })
	until(3)
	p.AwaitPhase("late", v1alpha1.TaskSucceeded)
	for _, name := range []string{"one", "two", "late"} {
		if err := p.Tasks().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"in-one", "in-two"} {
		if err := p.Sessions().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	left, code = rest()
	for i := range left {
		count(&left[i])
	}
	want("session/in-one one", "session/in-two two", "session/in-two late")
	if code != 0 || !strings.Contains(said.String(), "session in-one was deleted") || !strings.Contains(said.String(), "session in-two was deleted") {
		t.Errorf("exit code %d\n%s", code, said.String())
	}
}
