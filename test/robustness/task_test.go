// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/test/kit"
)

// The guarantees of a task.
var (
	errBrokeEnds     = errors.New("broke Ends - every task reaches a terminal phase")
	errBrokeTerminal = errors.New("broke Terminal - the last event of a stream but for late ones, and no other, is the terminal one, and the phase is what it says")
	errBrokeRunOnce  = errors.New("broke RunOnce - an attempt runs at most once, and no more attempts run than the status and the retry policy say")
	errBrokeTrue     = errors.New("broke True - a task succeeded only if its last attempt did its work; a failure has a reason")
	errBrokeNoRest   = errors.New("broke NoRest - no process outlives its task's end")
)

const (
	tasksPerRound = 5
	maxRetries    = 2
	// maxBetween is the longest time between the creation of tasks and a kill.
	maxBetween = 700 * time.Millisecond
)

// TestTasksUnderKills kills the server and workers with SIGKILL at random
// moments of the life of tasks: created, admitted, started, running, ending.
func TestTasksUnderKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	n := rounds(t)
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands", "--keep-run-folders")
	c := newClient(t, s.Kubeconfig)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Minute+5*time.Minute)
	defer cancel()

	var names []string
	for round := range n {
		for i := range tasksPerRound {
			name := fmt.Sprintf("task-%d-%d", round, i)
			createTask(t, ctx, c, name, random.IntN(600), i%2 == 1)
			names = append(names, name)
		}
		pause(ctx, time.Duration(random.Int64N(int64(maxBetween))))
		if random.IntN(2) == 0 {
			killWorker(s.DataDir, random)
		}
		if random.IntN(4) > 0 {
			s.Kill()
			if random.IntN(2) == 0 {
				killWorker(s.DataDir, random) // unseen
			}
			s.Restart(t)
		}
	}
	outcomes := map[string]int{}
	for _, name := range names {
		task, err := checkTask(ctx, c, s.DataDir, name)
		if err != nil {
			t.Errorf("task %s: %v", name, err)
			continue
		}
		outcomes[fmt.Sprintf("%s after %d attempts (%s)", task.Status.Phase, task.Status.Attempts, task.Status.Message)]++
	}
	for what, n := range outcomes {
		t.Logf("%3d %s", n, what)
	}
}

// createTask makes a task whose command notes that it ran, takes its time, and notes that it is done.
func createTask(t *testing.T, ctx context.Context, c *client, name string, millis int, retried bool) {
	t.Helper()
	spec := map[string]any{
		"type":    "container",
		"command": []string{"sh", "-c", fmt.Sprintf("echo ran >>ran; sleep %d.%03d; echo done >>done", millis/1000, millis%1000)},
	}
	if retried {
		spec["retryPolicy"] = map[string]any{"maxRetries": maxRetries, "initialDelay": "10ms"}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, kit.Patience)
	defer cancel()
	if err := c.insist(ctx, http.MethodPost, base+"tasks", body, nil); err != nil {
		t.Fatal(err)
	}
}

// killWorker kills one worker that is alive, if there is one.
func killWorker(dir string, random *rand.Rand) bool {
	paths, _ := filepath.Glob(filepath.Join(dir, "runs", "*", "*", "run.json"))
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths {
		rec, err := readRun(path)
		if err != nil || rec.State != "running" || !belongs(rec.PID, rec.UID) {
			continue
		}
		return syscall.Kill(rec.PID, syscall.SIGKILL) == nil
	}
	return false
}

// runRecord is what the server records about a run.
type runRecord struct {
	State string
	PID   int
	UID   string
}

func readRun(path string) (runRecord, error) {
	var rec runRecord
	b, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(b, &rec)
}

// belongs reports whether a process has the UID of a task in its environment.
func belongs(pid int, uid string) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && strings.Contains(string(env), "PLATFORM_TASK_UID="+uid)
}

func checkTask(ctx context.Context, c *client, dir, name string) (*v1alpha1.Task, error) {
	task, err := awaitEnd(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return task, errors.Join(checkEvents(ctx, c, task), checkRuns(dir, task), checkRest(task))
}

func awaitEnd(ctx context.Context, c *client, name string) (*v1alpha1.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, kit.Patience)
	defer cancel()
	for {
		var task v1alpha1.Task
		if err := c.insist(ctx, http.MethodGet, base+"tasks/"+name, nil, &task); err != nil {
			return nil, err
		}
		if task.Status.Phase.Terminal() {
			return &task, nil
		}
		if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return nil, fmt.Errorf("%w: phase %s, %s", errBrokeEnds, task.Status.Phase, task.Status.Message)
		}
	}
}

func checkEvents(ctx context.Context, c *client, task *v1alpha1.Task) error {
	var list v1alpha1.ExecutionEventList
	q := url.Values{"fieldSelector": {"taskName=" + task.Name}}
	if err := c.insist(ctx, http.MethodGet, base+"executionevents?"+q.Encode(), nil, &list); err != nil {
		return err
	}
	started := map[string]int{}
	end := len(list.Items) - 1
	for end > 0 && event.Late(list.Items[end].Type) {
		end--
	}
	for i, e := range list.Items {
		last := i == end
		if e.Seq != int64(i+1) {
			return fmt.Errorf("%w: event %d has seq %d", errBrokeDense, i, e.Seq)
		}
		if event.Terminal(e.Type) != last || last && string(e.Type) != "Task"+string(task.Status.Phase) {
			return fmt.Errorf("%w: event %d of %d is %s, the phase is %s", errBrokeTerminal, i, len(list.Items), e.Type, task.Status.Phase)
		}
		if e.Type == v1alpha1.EventTaskStarted {
			started[e.Summary]++
		}
	}
	for attempt, n := range started {
		if n > 1 {
			return fmt.Errorf("%w: %q %d times", errBrokeRunOnce, attempt, n)
		}
	}
	return nil
}

func checkRuns(dir string, task *v1alpha1.Task) error {
	folder := filepath.Join(dir, "runs", string(task.UID))
	attempts, err := filepath.Glob(filepath.Join(folder, "*", "run.json"))
	if err != nil {
		return err
	}
	allowed := int32(1)
	if task.Spec.RetryPolicy != nil {
		allowed += task.Spec.RetryPolicy.MaxRetries
	}
	if int32(len(attempts)) > task.Status.Attempts || task.Status.Attempts > allowed {
		return fmt.Errorf("%w: %d folders, %d attempts of %d", errBrokeRunOnce, len(attempts), task.Status.Attempts, allowed)
	}
	lines := func(attempt, file string) int {
		b, _ := os.ReadFile(filepath.Join(folder, attempt, "work", file))
		return strings.Count(string(b), "\n")
	}
	for _, path := range attempts {
		attempt := filepath.Base(filepath.Dir(path))
		if n := lines(attempt, "ran"); n > 1 {
			return fmt.Errorf("%w: attempt %s ran %d times", errBrokeRunOnce, attempt, n)
		}
	}
	done := lines(strconv.Itoa(int(task.Status.Attempts)), "done") == 1
	if task.Status.Phase == v1alpha1.TaskSucceeded && !done || task.Status.Phase == v1alpha1.TaskFailed && task.Status.Message == "" {
		return fmt.Errorf("%w: %s (%s), work done: %v", errBrokeTrue, task.Status.Phase, task.Status.Message, done)
	}
	return nil
}

func checkRest(task *v1alpha1.Task) error {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, p := range procs {
		if pid, err := strconv.Atoi(p.Name()); err == nil && belongs(pid, string(task.UID)) {
			return fmt.Errorf("%w: process %d", errBrokeNoRest, pid)
		}
	}
	return nil
}
