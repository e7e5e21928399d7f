// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/test/kit"
)

// shellImage is what commands run in where the host has images.
const shellImage = "platform.ai/test-shell:dev"

// command is a container task that runs a line of shell.
func command(t *testing.T, p place, name, line string, more map[string]any) {
	t.Helper()
	spec := map[string]any{"type": "container", "image": p.Image(), "command": []string{"sh", "-c"}, "args": []string{line}}
	maps.Copy(spec, more)
	apply(t, p, map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": name}, "spec": spec})
}

// awaitEvent returns when a task's stream has an event of the type; it watches from the first event.
func awaitEvent(t *testing.T, p place, task string, typ v1alpha1.EventType) {
	t.Helper()
	watch := kit.Start(t, p.Env(t), kit.Bin(t, "kubectl"), "get", "executionevents", "--watch", "--field-selector", "taskName="+task)
	watch.Await(t, string(typ))
	_ = watch.Stop() // a signal ended it
}

// cancelTask cancels a task.
func cancelTask(t *testing.T, p place, name string) {
	t.Helper()
	p.MustShell(t, "kubectl create --raw "+native(p, "tasks/"+name+"/cancel")+` -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"TaskCancellation","reason":"it is late"}'`)
}

// terminalEvents are those that end a stream.
func terminalEvents(types []v1alpha1.EventType) []v1alpha1.EventType {
	var out []v1alpha1.EventType
	for _, e := range types {
		if event.Terminal(e) {
			out = append(out, e)
		}
	}
	return out
}

// TestHowTasksEnd: commands end in every possible way, and the phase, the
// condition and the last event agree about it.
func TestHowTasksEnd(t *testing.T) {
	t.Parallel()
	everywhere(t, howTasksEnd)
}

func howTasksEnd(t *testing.T, p place) {
	command(t, p, "prints", "echo one; echo two >&2; echo $GREETING", map[string]any{"env": []any{map[string]any{"name": "GREETING", "value": "hello"}}})
	command(t, p, "fails", "echo so far; exit 3", nil)
	command(t, p, "late", "echo begun; sleep 600", map[string]any{"timeout": "5s"})
	command(t, p, "stops", "echo begun; sleep 600", nil)
	command(t, p, "goes", "echo begun; sleep 600", nil)
	command(t, p, "again", "echo try; exit 1", map[string]any{"retryPolicy": map[string]any{"maxRetries": 1, "initialDelay": "1s"}})
	awaitEvent(t, p, "stops", v1alpha1.EventWorkerStarted)
	cancelTask(t, p, "stops")
	awaitEvent(t, p, "goes", v1alpha1.EventWorkerStarted)
	p.MustShell(t, "kubectl delete task goes --timeout=300s")
	if r := p.Shell(t, "kubectl get task goes"); r.Code == 0 {
		t.Errorf("a deleted task: %s", r.Output)
	}
	for _, tc := range []struct {
		name     string
		phase    v1alpha1.TaskPhase
		message  string // part of it
		attempts int32
		last     v1alpha1.EventType
	}{
		{"prints", v1alpha1.TaskSucceeded, "", 1, v1alpha1.EventTaskSucceeded},
		{"fails", v1alpha1.TaskFailed, "exit code 3", 1, v1alpha1.EventTaskFailed},
		{"late", v1alpha1.TaskFailed, "timed out", 1, v1alpha1.EventTaskFailed},
		{"stops", v1alpha1.TaskCancelled, "it is late", 1, v1alpha1.EventTaskCancelled},
		{"again", v1alpha1.TaskFailed, "exit code 1", 2, v1alpha1.EventTaskFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			task, _, types := ended(t, p, tc.name)
			if task.Status.Phase != tc.phase || !strings.Contains(task.Status.Message, tc.message) || task.Status.Attempts != tc.attempts {
				t.Errorf("phase %s, message %q, attempts %d", task.Status.Phase, task.Status.Message, task.Status.Attempts)
			}
			c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionComplete)
			if c == nil || c.Status != "True" || !strings.HasPrefix(c.Reason, "Task"+string(tc.phase)) || !strings.Contains(c.Message, tc.message) {
				t.Errorf("condition %+v", c)
			}
			if got := terminalEvents(types); !slices.Equal(got, []v1alpha1.EventType{tc.last}) {
				t.Errorf("the stream ends with %v", got)
			}
		})
	}
	if got := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/prints/result")); !strings.Contains(got, `one\nhello\n`) {
		t.Errorf("result: %s", got)
	}
	log := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/prints/log"))
	for _, want := range []string{"one", "two", "hello"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log: %s", want, log)
		}
	}
	if got := p.MustShell(t, "kubectl get --raw "+native(p, "tasks/fails/log")); !strings.Contains(got, "so far") {
		t.Errorf("log: %s", got)
	}
}

// TestRunsOutliveServers: while a command runs, the API server and the controller
// are replaced. The command runs once, to its end, and every event is stored once.
func TestRunsOutliveServers(t *testing.T) { everywhere(t, runsOutliveServers) }

func runsOutliveServers(t *testing.T, p place) {
	command(t, p, "long", "for i in $(seq 40); do echo line $i; sleep 0.5; done", nil)
	awaitEvent(t, p, "long", v1alpha1.EventWorkerStarted)
	p.RestartServer(t)
	p.RestartController(t)
	task, result, _ := ended(t, p, "long")
	if task.Status.Phase != v1alpha1.TaskSucceeded || task.Status.Attempts != 1 || strings.Count(result, "line ") != 40 {
		t.Errorf("%s %q, attempts %d, result %s", task.Status.Phase, task.Status.Message, task.Status.Attempts, result)
	}
	var events v1alpha1.ExecutionEventList
	getJSON(t, p, "executionevents --field-selector taskName=long", &events)
	keys := map[string]int{}
	for i, e := range events.Items {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i, e.Seq)
		}
		keys[fmt.Sprint(e.Type, e.Summary)]++
	}
	for key, n := range keys {
		if n != 1 {
			t.Errorf("%s is there %d times", key, n)
		}
	}
}

// TestSession: two tasks of one session, of which the second knows what the first was told.
func TestSession(t *testing.T) {
	t.Parallel()
	everywhere(t, sessions)
}

func sessions(t *testing.T, p place) {
	applyTeam(t, p, startModel(t, p, scripts+"conversation.yaml"))
	talk := func(name, prompt string) {
		apply(t, p, map[string]any{
			"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"type": "ai", "agentRef": map[string]any{"name": "coder"}, "prompt": prompt, "timeout": "5m", "sessionRef": map[string]any{"name": "talk", "create": true}},
		})
	}
	talk("first", "Please remember 17.")
	talk("second", "Now tell me which number it was.")
	for _, name := range []string{"first", "second"} {
		if task, _, _ := ended(t, p, name); task.Status.Phase != v1alpha1.TaskSucceeded {
			t.Fatalf("%s: %s %q", name, task.Status.Phase, task.Status.Message)
		}
	}
	got := p.MustShell(t, "platform session transcript talk")
	first, second := strings.Index(got, "Please remember 17."), strings.Index(got, "Now tell me which number it was.")
	if first < 0 || second < first {
		t.Errorf("transcript: %s", got)
	}
}
