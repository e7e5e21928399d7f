// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// started waits for a run, and returns the pid that its script wrote.
func awaitStart(p *standalone.Platform, name string) (*v1alpha1.Task, int) {
	p.T.Helper()
	task, _ := p.Await(name, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated)
	})
	var pid int
	kit.Await(p.T, "pid of the worker", func() bool {
		b, err := os.ReadFile(filepath.Join(p.Folder(task), "work", "pid"))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return task, pid
}

func alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// events lists the types of a task's events, and checks that seq is dense and nothing follows the end.
func typesOf(p *standalone.Platform, name string) []string {
	p.T.Helper()
	list, err := p.API().ExecutionEvents("default").List(p.T.Context(), metav1.ListOptions{FieldSelector: "taskName=" + name})
	if err != nil {
		p.T.Fatal(err)
	}
	var types []string
	for i, e := range list.Items {
		if e.Seq != int64(i+1) {
			p.T.Errorf("event %d has seq %d", i, e.Seq)
		}
		types = append(types, string(e.Type))
	}
	return types
}

func wantEvents(p *standalone.Platform, name string, want ...string) {
	p.T.Helper()
	if got := typesOf(p, name); !slices.Equal(got, want) {
		p.T.Errorf("events of %s = %v, want %v", name, got, want)
	}
}

// started and ended are the events of one attempt.
func started() []string {
	return []string{"TaskCreated", "TaskPhaseChanged", "TaskJobCreated", "TaskStarted"}
}

func ended(as string) []string { return append(started(), "TaskPhaseChanged", as) }

// wantConditions checks conditions of a task, given as "type=status reason".
func wantConditions(t *testing.T, task *v1alpha1.Task, want ...string) {
	t.Helper()
	var got []string
	for _, c := range task.Status.Conditions {
		got = append(got, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no condition %s among %v", w, got)
		}
	}
}

func TestTaskSucceeds(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `sleep 0.2; echo '{"reason":"Completed","message":"all done","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"`)
	p.Run("good")
	task, phases := p.Await("good", func(t *v1alpha1.Task) bool { return t.Status.Phase.Terminal() })
	st := task.Status
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionComplete)
	if st.Phase != v1alpha1.TaskSucceeded || st.Message != "all done" || c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonTaskSucceeded {
		t.Errorf("status = %+v", st)
	}
	wantConditions(t, task, "Succeeded=True TaskSucceeded", "Failed=False TaskSucceeded")
	if st.Attempts != 1 || st.JobName != "good-1" || st.JobUID == "" || st.ObservedGeneration != task.Generation || st.StartTime == nil ||
		st.CompletionTime == nil || st.CompletionTime.Before(st.StartTime) || st.Usage != nil || st.ResultRef != nil {
		t.Errorf("status = %+v", st)
	}
	if !slices.Contains(task.Finalizers, v1alpha1.FinalizerCleanup) {
		t.Errorf("finalizers = %v", task.Finalizers)
	}
	// A watch may combine two changes into one, but must not reorder them.
	order := []v1alpha1.TaskPhase{"", v1alpha1.TaskPending, v1alpha1.TaskRunning, v1alpha1.TaskSucceeded}
	if !slices.IsSortedFunc(phases, func(a, b v1alpha1.TaskPhase) int { return slices.Index(order, a) - slices.Index(order, b) }) {
		t.Errorf("phases = %v", phases)
	}
	wantEvents(p, "good", ended("TaskSucceeded")...)
}

func TestTaskFails(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `echo '{"reason":"CommandFailed","message":"command ended with exit code 7","exitCode":1}' >"$PLATFORM_TERMINATION_LOG"; exit 1`)
	p.Run("bad")
	task := p.AwaitPhase("bad", v1alpha1.TaskFailed)
	if task.Status.Message != "command ended with exit code 7" {
		t.Errorf("message = %q", task.Status.Message)
	}
	wantEvents(p, "bad", ended("TaskFailed")...)
}

func TestTaskIsRetried(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `[ "$PLATFORM_TASK_ATTEMPT" = 3 ]`)
	policy := func(n int32) func(*v1alpha1.TaskSpec) {
		return func(s *v1alpha1.TaskSpec) {
			one := 1.0
			s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: n, InitialDelay: v1alpha1.DurationOf(100 * time.Millisecond), BackoffMultiplier: &one}
		}
	}
	p.Run("enough", policy(2))
	p.Run("few", policy(1))
	task := p.AwaitPhase("enough", v1alpha1.TaskSucceeded)
	if task.Status.Attempts != 3 || task.Status.JobName != "enough-3" || task.Status.NextAttemptTime != nil {
		t.Errorf("status = %+v", task.Status)
	}
	wantConditions(t, task, "Complete=True TaskSucceeded", "Succeeded=True TaskSucceeded", "Failed=False TaskSucceeded")
	again := []string{"TaskPhaseChanged", "TaskPhaseChanged", "TaskJobCreated", "TaskStarted"}
	wantEvents(p, "enough", slices.Concat(started(), again, again, []string{"TaskPhaseChanged", "TaskSucceeded"})...)
	task = p.AwaitPhase("few", v1alpha1.TaskFailed)
	if task.Status.Attempts != 2 || task.Status.Message != "the worker ended with exit code 1 and left no report" {
		t.Errorf("status = %+v", task.Status)
	}
	wantConditions(t, task, "Complete=True TaskFailed", "Succeeded=False TaskFailed", "Failed=True WorkerFailed")
}

// endless writes its pid and keeps running; a child of it leaves the session.
const endless = `setsid sleep 1000 & echo $$ >pid; while [ ! -e go ]; do sleep 0.01; done; echo '{"reason":"Completed","message":"went","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"`

func TestTaskTimesOut(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	p.Run("slow", func(s *v1alpha1.TaskSpec) {
		s.Timeout = v1alpha1.DurationOf(2 * time.Second)
		s.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: 3}
	})
	task := p.AwaitPhase("slow", v1alpha1.TaskFailed)
	if task.Status.Message != "task timed out" || task.Status.Attempts != 1 {
		t.Errorf("status = %+v", task.Status)
	}
	wantConditions(t, task, "Succeeded=False TaskFailed", "Failed=True TimedOut")
	wantEvents(p, "slow", ended("TaskFailed")...)
}

func TestTaskIsCancelled(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	p.Run("unwanted")
	_, pid := awaitStart(p, "unwanted")
	_, err := p.Tasks().Cancel(t.Context(), "unwanted", &v1alpha1.TaskCancellation{Reason: "no longer needed"}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	task := p.AwaitPhase("unwanted", v1alpha1.TaskCancelled)
	c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionComplete)
	if alive(pid) || !strings.Contains(task.Status.Message, "no longer needed") || c == nil || c.Reason != v1alpha1.ReasonTaskCancelled {
		t.Errorf("worker alive: %v, status = %+v", alive(pid), task.Status)
	}
	wantConditions(t, task, "Succeeded=False TaskCancelled", "Failed=False TaskCancelled")
	wantEvents(p, "unwanted", append(started(), "TaskPhaseChanged", "TaskPhaseChanged", "TaskCancelled")...) // the request, and the end
	if _, err := p.Tasks().Cancel(t.Context(), "unwanted", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("second cancellation: %v", err)
	}
}

func TestTaskIsDeleted(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	p.Run("gone")
	task, pid := awaitStart(p, "gone")
	w, err := p.API().ExecutionEvents("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "taskName=gone,type=TaskCancelled"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := p.Tasks().Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Errorf("first event about the end: %+v", e)
	}
	kit.Await(t, "end of the task", func() bool {
		_, err := p.Tasks().Get(t.Context(), "gone", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if alive(pid) {
		t.Error("the worker outlived its task")
	}
	if _, err := os.Stat(filepath.Join(p.DataDir, "runs", string(task.UID))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run's folder: %v", err)
	}
	// The name is free, and a new task of that name has no history.
	p.Run("gone")
	awaitStart(p, "gone")
	wantEvents(p, "gone", started()...)
}

// TestRunsOfAStoppedServer: a server that stops says how many runs go on, and with which command they end.
func TestRunsOfAStoppedServer(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands")
	s.MustShell(t, `platform task create --name long --command sleep --arg 1000
until platform task events long | grep WorkerStarted; do :; done`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	end := "platform-standalone runs end --data-dir " + s.DataDir
	if out := s.Output(); !strings.Contains(out, "1 run goes on without the server") || !strings.Contains(out, end) {
		t.Errorf("the server said\n%s", out)
	}
	for _, want := range []string{"runs that were ended: 1\n", "runs that were ended: 0\n"} {
		if out := s.MustShell(t, end); out != want {
			t.Errorf("%s, want %s", out, want)
		}
	}
}

func TestRunningTaskIsFoundAgain(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	p.Run("long")
	before, pid := awaitStart(p, "long")
	p.Restart(t)
	after, samePid := awaitStart(p, "long")
	if !alive(pid) || samePid != pid || after.Status.Attempts != 1 || after.Status.JobUID != before.Status.JobUID {
		t.Errorf("alive %v, pid %d was %d, status %+v", alive(pid), samePid, pid, after.Status)
	}
	if err := os.WriteFile(filepath.Join(p.Folder(after), "work", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	task := p.AwaitPhase("long", v1alpha1.TaskSucceeded)
	if task.Status.Message != "went" || task.Status.Attempts != 1 {
		t.Errorf("status = %+v", task.Status)
	}
	wantEvents(p, "long", ended("TaskSucceeded")...)
}

func TestTaskEndedWhileServerWasDown(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	for _, tc := range []struct {
		name    string
		end     func(folder string, pid int) error
		phase   v1alpha1.TaskPhase
		message string
	}{
		{"with a report", func(folder string, _ int) error {
			return os.WriteFile(filepath.Join(folder, "work", "go"), nil, 0o600)
		}, v1alpha1.TaskSucceeded, "went"},
		{
			"without a word", func(_ string, pid int) error { return syscall.Kill(pid, syscall.SIGKILL) },
			v1alpha1.TaskFailed, "the worker ended while no server watched it, and left no report",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := standalone.NewPlatform(t, endless)
			p.Run("unseen")
			task, pid := awaitStart(p, "unseen")
			p.Stop(t)
			if err := tc.end(p.Folder(task), pid); err != nil {
				t.Fatal(err)
			}
			kit.Await(t, "end of the worker", func() bool { return !alive(pid) })
			p.StartAgain(t)
			task = p.AwaitPhase("unseen", tc.phase)
			if task.Status.Message != tc.message || task.Status.Attempts != 1 {
				t.Errorf("status = %+v", task.Status)
			}
			wantEvents(p, "unseen", ended("Task"+string(tc.phase))...)
		})
	}
}

func TestKilledWorkerIsNotSuccess(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	p.Run("killed")
	_, pid := awaitStart(p, "killed")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	task := p.AwaitPhase("killed", v1alpha1.TaskFailed)
	if task.Status.Message != "the worker was ended by a signal (killed) and left no report" {
		t.Errorf("message = %q", task.Status.Message)
	}
	wantEvents(p, "killed", ended("TaskFailed")...)
}

func TestContainerTaskNeedsPermission(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `echo ran >"$0.ran"`, func(o *standalone.Options) { o.AllowHostCommands = false })
	p.Run("forbidden")
	task := p.AwaitPhase("forbidden", v1alpha1.TaskFailed)
	if !strings.Contains(task.Status.Message, "--allow-host-commands") || task.Status.Attempts != 0 {
		t.Errorf("status = %+v", task.Status)
	}
	wantEvents(p, "forbidden", "TaskCreated", "TaskPhaseChanged", "TaskFailed")
}

// TestImageIsNotIgnored: a task that names an image is refused, because this host could only run another program.
func TestImageIsNotIgnored(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `echo ran >"$0.ran"`)
	p.Run("pictured", func(s *v1alpha1.TaskSpec) { s.Image = "alpine:3" })
	task := p.AwaitPhase("pictured", v1alpha1.TaskFailed)
	c := meta.FindStatusCondition(task.Status.Conditions, v1alpha1.ConditionFailed)
	if !strings.Contains(task.Status.Message, "spec.image is alpine:3") || task.Status.Attempts != 0 || c == nil {
		t.Errorf("status = %+v", task.Status)
	}
	wantEvents(p, "pictured", "TaskCreated", "TaskPhaseChanged", "TaskFailed")
}

func TestReferencesMayComeLate(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	behind := &quickclock.Ahead{}
	behind.By.Store(-int64(time.Minute)) // the grace lasts until the objects are there, however slow the machine is
	p := standalone.NewPlatform(t, `exit 0`, func(o *standalone.Options) { o.Clock = behind })
	ai := func(provider string) func(*v1alpha1.TaskSpec) {
		return func(s *v1alpha1.TaskSpec) {
			*s = v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "hello", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: provider}}}
		}
	}
	p.Run("early", ai("late"))
	p.Run("never", ai("never"))
	p.Await("early", func(t *v1alpha1.Task) bool { return strings.Contains(t.Status.Message, "does not exist") })
	c := p.API().Providers("default")
	_, err := c.Create(t.Context(), &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "late"},
		Spec:       v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "key"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "sk-late"}}
	if _, err := p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	task := p.AwaitPhase("early", v1alpha1.TaskSucceeded)
	if task.Status.Provider != "late" || task.Status.Model != "m" {
		t.Errorf("status = %+v", task.Status)
	}
	behind.By.Store(0) // the grace of the other one is over
	task = p.AwaitPhase("never", v1alpha1.TaskFailed)
	if task.Status.Message != `Provider "never" does not exist in namespace "default"` || task.Status.Attempts != 0 {
		t.Errorf("status = %+v", task.Status)
	}
}

func TestScheduleRunsTasks(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, `exit 0`)
	p.Run("often", func(s *v1alpha1.TaskSpec) { s.Schedule, s.SuccessfulRunsHistoryLimit = "@every 1s", new(int32(1000)) })
	parent, _ := p.Await("often", func(t *v1alpha1.Task) bool { return strings.HasPrefix(t.Status.Message, "run often-") }) // not of a skipped one
	if parent.Status.Phase != v1alpha1.TaskScheduled || parent.Status.NextScheduleTime == nil {
		t.Errorf("status = %+v", parent.Status)
	}
	name := fmt.Sprintf("often-%d", parent.Status.LastScheduleTime.Unix())
	child := p.AwaitPhase(name, v1alpha1.TaskSucceeded)
	if !metav1.IsControlledBy(child, parent) || child.Labels[v1alpha1.LabelParentTask] != "often" || child.Spec.Schedule != "" {
		t.Errorf("run = %+v", child)
	}
	if _, err := p.Tasks().Cancel(t.Context(), "often", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("often", v1alpha1.TaskCancelled)
}

func TestTasksWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The first ones go on when there are three of them.
	p := standalone.NewPlatform(t, fmt.Sprintf(`cd %s; mkdir -p now; : >now/$$; n=$(ls now | wc -l); echo $n >>counts
		[ $n -lt 3 ] || : >full; while [ ! -e full ]; do sleep 0.01; done; sleep 0.1; rm now/$$`, dir),
		func(o *standalone.Options) { o.MaxRunning = 3 })
	const n = 12
	for i := range n {
		p.Run(fmt.Sprintf("turn-%d", i))
	}
	for i := range n {
		p.AwaitPhase(fmt.Sprintf("turn-%d", i), v1alpha1.TaskSucceeded)
	}
	b, err := os.ReadFile(filepath.Join(dir, "counts"))
	if err != nil {
		t.Fatal(err)
	}
	counts := strings.Fields(string(b))
	if most := slices.Max(counts); len(counts) != n || most != "3" {
		t.Errorf("tasks at once: %v", counts)
	}
}

func TestCompletionCallback(t *testing.T) {
	t.Parallel()
	bodies := make(chan map[string]any, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		bodies <- body
	}))
	defer srv.Close()
	p := standalone.NewPlatform(t, `exit 3`, func(o *standalone.Options) { o.WebhookAllow = []string{strings.TrimPrefix(srv.URL, "http://")} })
	p.Run("told", func(s *v1alpha1.TaskSpec) { s.WebhookURL = srv.URL })
	body := <-bodies
	if body["taskName"] != "told" || body["taskNamespace"] != "default" || body["phase"] != "Failed" || body["attempts"] != 1.0 {
		t.Errorf("body = %v", body)
	}
	p.Await("told", func(t *v1alpha1.Task) bool { return t.Status.WebhookDelivered })
}

func TestSessionIsHeldByOneTask(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p := standalone.NewPlatform(t, endless)
	in := func(create bool) func(*v1alpha1.TaskSpec) {
		return func(s *v1alpha1.TaskSpec) {
			s.SessionRef = &v1alpha1.TaskSessionReference{Name: "talk", Create: create}
		}
	}
	p.Run("first", in(true))
	first, _ := awaitStart(p, "first")
	p.Run("second", in(false))
	p.Await("second", func(t *v1alpha1.Task) bool {
		return t.Status.Message == "waits for session talk: task first holds it, 0 before"
	})
	if err := os.WriteFile(filepath.Join(p.Folder(first), "work", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("first", v1alpha1.TaskSucceeded)
	awaitStart(p, "second")
	if err := p.Tasks().Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "free session", func() bool {
		s, err := p.API().Sessions("default").Get(t.Context(), "talk", metav1.GetOptions{})
		return err == nil && s.Status.ActiveTask == ""
	})
}
