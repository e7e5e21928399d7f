// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

// member returns a task of session s, created the given number of seconds after noon.
func member(name string, after int, change ...func(*v1alpha1.Task)) *v1alpha1.Task {
	t := task(func(t *v1alpha1.Task) {
		t.Name, t.UID = name, types.UID("uid-"+name)
		t.CreationTimestamp = metav1.NewTime(noon().Add(time.Duration(after) * time.Second))
		t.Spec.SessionRef = &v1alpha1.TaskSessionReference{Name: "s"}
		t.Status.Phase = v1alpha1.TaskPending
	})
	for _, c := range change {
		c(t)
	}
	return t
}

func inPhase(p v1alpha1.TaskPhase) func(*v1alpha1.Task) {
	return func(t *v1alpha1.Task) { t.Status.Phase = p }
}

// created sets the revision at which a task was created.
func created(revision int64) func(*v1alpha1.Task) {
	return func(t *v1alpha1.Task) { t.Status.CreationRevision = revision }
}

// heldBy returns the session s, held by the task.
func heldBy(task string) *v1alpha1.Session {
	s := &v1alpha1.Session{ObjectMeta: in("n", "s")}
	if task != "" {
		s.Status.ActiveTask, s.Status.ActiveTaskUID = task, types.UID("uid-"+task)
	}
	return s
}

func newSessions(t *testing.T, objects ...client.Object) *sessions {
	t.Helper()
	return &sessions{client: testClient(t, objects...), now: noon}
}

// shown returns the queue that the session's status shows.
func (s *sessions) shown(t *testing.T) string {
	t.Helper()
	var got v1alpha1.Session
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, &got); err != nil {
		return string(apierrors.ReasonForError(err))
	}
	st := got.Status
	if (st.ActiveTask == "") != (st.ActiveTaskUID == "") || st.ActiveTask != "" && string(st.ActiveTaskUID) != "uid-"+st.ActiveTask || int(st.WaitingCount) != len(st.WaitingTasks) {
		t.Errorf("status %+v", st)
	}
	return st.ActiveTask + "|" + strings.Join(st.WaitingTasks, " ")
}

func TestSessionLock(t *testing.T) {
	other := func(t *v1alpha1.Task) { t.Spec.SessionRef.Name = "other" }
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		others  []client.Object
		session *v1alpha1.Session
		want    string // outcome
		reason  string
		shown   string
	}{
		{name: "no session", task: member("t", 5, func(t *v1alpha1.Task) { t.Spec.SessionRef = nil }), want: "nil", shown: "NotFound"},
		{name: "free", task: member("t", 5), session: heldBy(""), want: "nil", shown: "t|"},
		{name: "made", task: member("t", 5, func(t *v1alpha1.Task) { t.Spec.SessionRef.Create = true }), want: "nil", shown: "t|"},
		{name: "missing", task: member("t", 5), want: `session "s" does not exist`, shown: "NotFound"},
		{name: "held by itself", task: member("t", 5), session: heldBy("t"), want: "nil", shown: "t|"},
		{
			name: "held", task: member("t", 5), session: heldBy("h"), others: []client.Object{member("h", 9, inPhase(v1alpha1.TaskRunning))},
			want: "wait 0s", reason: "waits for session s: task h holds it, 0 before", shown: "h|t",
		},
		{name: "the holder is over", task: member("t", 5), session: heldBy("h"), others: []client.Object{member("h", 1, inPhase(v1alpha1.TaskFailed))}, want: "nil", shown: "t|"},
		{name: "the holder is gone", task: member("t", 5), session: heldBy("h"), want: "nil", shown: "t|"},
		{
			name: "another has the holder's name", task: member("t", 5), session: heldBy("h"),
			others: []client.Object{member("h", 9, func(t *v1alpha1.Task) { t.UID = "later" })}, want: "nil", shown: "t|h",
		},
		{
			name: "others came before", task: member("t", 5), session: heldBy(""), others: []client.Object{member("b", 5), member("z", 4), member("a", 6), member("elsewhere", 1, other)},
			want: "wait 0s", reason: "waits for session s: task z is next, 2 before", shown: "|z b t a",
		},
		{
			name: "others came before, within the same second", task: member("b", 5, created(7)), session: heldBy(""),
			others: []client.Object{member("c", 5, created(6)), member("a", 5, created(8)), member("old", 5), member("d", 4, created(9))},
			want:   "wait 0s", reason: "waits for session s: task old is next, 2 before", shown: "|old c b a d",
		},
		{
			name: "no schedule and nothing that is over is in the queue", task: member("t", 5), session: heldBy(""),
			others: []client.Object{member("a", 1, func(t *v1alpha1.Task) { t.Spec.Schedule = "@daily" }), member("b", 1, inPhase(v1alpha1.TaskSucceeded))}, want: "nil", shown: "t|",
		},
		{
			name: "the hold was lost while a task runs", task: member("t", 5), session: heldBy(""), others: []client.Object{member("r", 9, inPhase(v1alpha1.TaskRunning))},
			want: "wait 0s", reason: "waits for session s: task r holds it, 0 before", shown: "|t",
		},
		{
			name: "a task between two attempts keeps its turn", task: member("t", 5), session: heldBy(""), others: []client.Object{member("r", 9, func(t *v1alpha1.Task) { t.Status.Attempts = 1 })},
			want: "wait 0s", reason: "waits for session s: task r holds it, 0 before", shown: "|t",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects := append([]client.Object{tc.task}, tc.others...)
			if tc.session != nil {
				objects = append(objects, tc.session)
			}
			s := newSessions(t, objects...)
			for range 2 { // again it is the same
				err := s.lock(t.Context(), tc.task)
				outcomeIs(t, err, tc.want)
				if w, ok := errors.AsType[step.Wait](err); ok && w.Reason != tc.reason {
					t.Errorf("reason %q, want %q", w.Reason, tc.reason)
				}
				if got := s.shown(t); got != tc.shown {
					t.Errorf("shown %q, want %q", got, tc.shown)
				}
			}
		})
	}
}

// Five tasks take their turns in the order of their creation, whichever asks first.
func TestSessionTurns(t *testing.T) {
	objects := []client.Object{heldBy("")}
	var tasks []*v1alpha1.Task
	for i, name := range []string{"e", "d", "c", "b", "a"} {
		tasks = append(tasks, member(name, i))
		objects = append(objects, tasks[i].DeepCopy())
	}
	s, ctx := newSessions(t, objects...), t.Context()
	var order []string
	for range tasks {
		var has *v1alpha1.Task
		for _, k := range slices.Backward(tasks) {
			_, waits := errors.AsType[step.Wait](s.lock(ctx, k))
			if !waits && has != nil {
				t.Fatalf("%s and %s both have the session", has.Name, k.Name)
			}
			if !waits {
				has = k
			}
		}
		if has == nil {
			t.Fatal("nobody has the session")
		}
		order = append(order, s.shown(t))
		if err := s.release(ctx, has, nil); err != nil {
			t.Fatal(err)
		}
		over := has.DeepCopy()
		over.Status.Phase = v1alpha1.TaskSucceeded
		if err := s.client.Status().Patch(ctx, over, client.MergeFrom(has)); err != nil {
			t.Fatal(err)
		}
		tasks = slices.DeleteFunc(tasks, func(k *v1alpha1.Task) bool { return k == has })
	}
	if d := cmp.Diff([]string{"e|d c b a", "d|c b a", "c|b a", "b|a", "a|"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestSessionRelease(t *testing.T) {
	used := &v1alpha1.TaskUsage{InputTokens: new(int64(100))}
	read := func(s *sessions) v1alpha1.SessionStatus {
		t.Helper()
		var got v1alpha1.Session
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, &got); err != nil {
			t.Fatal(err)
		}
		return got.Status
	}
	sess := heldBy("h")
	sess.Status.InputTokens, sess.Status.WaitingTasks, sess.Status.WaitingCount = new(int64(7)), []string{"t"}, 1
	h, w := member("h", 1, inPhase(v1alpha1.TaskRunning)), member("t", 2)
	s := newSessions(t, sess, h, w)
	for range 2 {
		if err := s.release(t.Context(), h, used); err != nil {
			t.Fatal(err)
		}
	}
	if st := read(s); st.ActiveTask != "" || *st.InputTokens != 107 || st.OutputTokens != nil || st.UpdatedAt == nil {
		t.Errorf("a task that had the session: %+v", st)
	}
	sess = heldBy("h")
	sess.Status.WaitingTasks, sess.Status.WaitingCount = []string{"t"}, 1
	s = newSessions(t, sess, h, w)
	if err := s.release(t.Context(), w, used); err != nil {
		t.Fatal(err)
	}
	if st := read(s); st.ActiveTask != "h" || st.InputTokens != nil || st.WaitingCount != 0 || st.WaitingTasks != nil {
		t.Errorf("a task that waited: %+v", st)
	}
	if err := newSessions(t).release(t.Context(), h, used); err != nil {
		t.Errorf("without a session: %v", err)
	}
	// The end of h is repeated after another task, whose cache still shows h at work, has looked at the session.
	s = newSessions(t, heldBy("h"), h, w)
	if err := s.release(t.Context(), h, used); err != nil {
		t.Fatal(err)
	}
	if _, waits := errors.AsType[step.Wait](s.lock(t.Context(), w)); !waits {
		t.Error("the session was taken from h")
	}
	if err := s.release(t.Context(), h, used); err != nil {
		t.Fatal(err)
	}
	if st := read(s); *st.InputTokens != 100 {
		t.Errorf("counted again: %+v", st)
	}
}

func TestQueueIsShownUpToALimit(t *testing.T) {
	objects := []client.Object{heldBy("")}
	for i := range shownWaiting + 50 {
		objects = append(objects, member(fmt.Sprintf("t%03d", i), i))
	}
	s := newSessions(t, objects...)
	err := s.lock(t.Context(), member("t149", 149))
	w, ok := errors.AsType[queued](err)
	if !ok || w.After != 0 || w.reason != v1alpha1.ReasonSessionBusy || w.Reason != "waits for session s: 7 or more are before" {
		t.Errorf("lock: %v", err)
	}
	var got v1alpha1.Session
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, &got); err != nil {
		t.Fatal(err)
	}
	if st := got.Status; st.WaitingCount != 150 || len(st.WaitingTasks) != shownWaiting || st.WaitingTasks[99] != "t099" {
		t.Errorf("%d waiting, %d shown", st.WaitingCount, len(st.WaitingTasks))
	}
}

func TestWakeQueue(t *testing.T) {
	next := []client.Object{member("b", 2), member("a", 3), member("other", 1, func(t *v1alpha1.Task) { t.Spec.SessionRef.Name = "other" })}
	h := wakeQueue(testClient(t, next...))
	runs := member("h", 1, inPhase(v1alpha1.TaskRunning))
	for _, tc := range []struct {
		name     string
		old, now *v1alpha1.Task // now is nil for a deletion
		want     []string
	}{
		{"it is over", runs, member("h", 1, inPhase(v1alpha1.TaskFailed)), []string{"b", "a"}},
		{"it is gone", runs, nil, []string{"b", "a"}},
		{"it has begun", member("h", 1), runs, []string{"b", "a"}},
		{"it goes on", runs, runs, nil},
		{"it was over before", member("h", 1, inPhase(v1alpha1.TaskFailed)), nil, nil},
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		if tc.now == nil {
			h.Delete(t.Context(), ctrlevent.DeleteEvent{Object: tc.old}, q)
		} else {
			h.Update(t.Context(), ctrlevent.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.now}, q)
		}
		var got []string
		for q.Len() > 0 {
			r, _ := q.Get()
			got = append(got, r.Name)
			q.Done(r)
		}
		q.ShutDown()
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

func TestConversation(t *testing.T) {
	long := strings.Repeat("é", maxSaid/2+10)
	for _, tc := range []struct {
		name    string
		change  func(*v1alpha1.Task)
		session *v1alpha1.Session
		result  string
		err     error
		want    []string
		note    string
	}{
		{name: "prompt and result", session: heldBy("t"), result: "done", want: []string{"task:uid-t:user user do it", "task:uid-t:assistant assistant done"}},
		{name: "prompt of the field ai", session: heldBy("t"), result: "done", change: func(t *v1alpha1.Task) {
			t.Spec.Prompt, t.Spec.AI = "", &v1alpha1.TaskAI{Prompt: "do that"}
		}, want: []string{"task:uid-t:user user do that", "task:uid-t:assistant assistant done"}},
		{name: "prompt is there", session: heldBy("t"), result: "done", change: func(t *v1alpha1.Task) { t.Spec.SessionRef.PromptIncluded = true }, want: []string{"task:uid-t:assistant assistant done"}},
		{name: "no result", session: heldBy("t"), want: []string{"task:uid-t:user user do it"}},
		{name: "not wanted", session: heldBy("t"), result: "done", change: func(t *v1alpha1.Task) { t.Spec.SessionRef.Append = new(false) }},
		{name: "no session", result: "done", change: func(t *v1alpha1.Task) { t.Spec.SessionRef = nil }},
		{name: "the session is gone", result: "done"},
		{name: "held by another", session: heldBy("h"), result: "done"},
		{name: "long", session: heldBy("t"), result: long, want: []string{
			"task:uid-t:user user do it",
			"task:uid-t:assistant assistant " + long[:maxSaid] + fmt.Sprintf("\n[cut: this is the beginning of the result of task t, which has %d bytes]", len(long)),
		}},
		{name: "refused for good", session: heldBy("t"), result: "done", err: apierrors.NewBadRequest("no good"), note: "its messages were not added to session s: no good"},
		{name: "the server is away", session: heldBy("t"), result: "done", err: errBoom},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := member("t", 1)
			k.Spec.Prompt = "do it"
			if tc.change != nil {
				tc.change(k)
			}
			var got []string
			c := conversation{
				existing: func(context.Context, *v1alpha1.Task) (*v1alpha1.Session, error) { return tc.session, nil },
				append: func(_ context.Context, s *v1alpha1.Session, messages []v1alpha1.SessionMessage) error {
					for _, m := range messages {
						if s.Name != "s" || m.SourceType != "task" || m.SourceRef != "t" {
							t.Errorf("to %s: %+v", s.Name, m)
						}
						got = append(got, fmt.Sprintf("%s %s %s", m.ID, m.Role, m.Content))
					}
					return tc.err
				},
			}
			note, err := c.add(t.Context(), k, tc.result)
			if note != tc.note || (err != nil) != (tc.err != nil && tc.note == "") {
				t.Errorf("note %q, error %v", note, err)
			}
			if tc.err != nil {
				return
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
		})
	}
}

// A cut in the middle of a secret must not leave half of it.
func TestCutLeavesNoHalfOfASecret(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	text := strings.Repeat("x", maxSaid-20) + " " + secret + strings.Repeat(" y", 100)
	got := said(member("t", 1), text)[0].Content
	if strings.Contains(got, secret[:12]) || len(got) > maxSaid+200 {
		t.Errorf("%d bytes, end %q", len(got), got[maxSaid-40:])
	}
}

// TestSaidRemembersSecrets: a secret that the prompt or the result identifies is removed from both.
func TestSaidRemembersSecrets(t *testing.T) {
	const secret = "Zk4Qx7hunter2"
	for name, texts := range map[string][2]string{
		"by the prompt": {"log in with password=" + secret, "I logged in with " + secret},
		"by the result": {"try " + secret + " there", "DB_PASSWORD=" + secret},
	} {
		k := member("t", 1)
		k.Spec.Prompt = texts[0]
		messages := said(k, texts[1])
		if len(messages) != 2 || strings.Contains(messages[0].Content+messages[1].Content, secret) {
			t.Errorf("%s: %+v", name, messages)
		}
	}
}

// If a crash or a conflict interrupts the end of a task at any point, the end is repeated. The
// messages are sent again with the same ids, until the session is free; tokens are counted
// once.
func TestEndOnASessionIsRepeatable(t *testing.T) {
	k := member("t", 1, inPhase(v1alpha1.TaskRunning))
	k.Spec.Prompt = "do it"
	s := newSessions(t, heldBy("t"), k)
	var ids []string
	said := conversation{
		existing: s.existing,
		append: func(_ context.Context, _ *v1alpha1.Session, messages []v1alpha1.SessionMessage) error {
			ids = append(ids, messages[0].ID+" "+messages[1].ID)
			return nil
		},
	}
	fail := ""
	fails := func(name string) error {
		if fail == name {
			return errBoom
		}
		return nil
	}
	f := finisher{
		now: noon, fresh: func(context.Context, *v1alpha1.Task) error { return nil }, converse: said.add, release: s.release,
		usage: func(context.Context, *v1alpha1.Task) (u trace.Usage, err error) {
			u.Add(&v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestCompleted, OutputTokens: new(int64(5))})
			return u, nil
		},
		result: func(context.Context, *v1alpha1.Task) (string, bool, error) { return "done", true, nil },
		terminal: func(_ context.Context, _ *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) (v1alpha1.ExecutionEvent, error) {
			if len(ids) == 0 {
				t.Error("the terminal event came before the messages")
			}
			return events[len(events)-1], fails("terminal")
		},
		touchAgent: func(context.Context, *v1alpha1.Task, metav1.Time) error { return fails("agent") },
		unsettled:  func(context.Context, *v1alpha1.Task, string) ([]v1alpha1.ExecutionEvent, error) { return nil, nil },
	}
	k.Status.Attempts = 1
	for _, fail = range []string{"terminal", "agent", ""} {
		if err := f.end(t.Context(), k.DeepCopy(), outcome{phase: v1alpha1.TaskSucceeded}); (err != nil) != (fail != "") {
			t.Errorf("end while %q fails: %v", fail, err)
		}
	}
	want := "task:uid-t:user task:uid-t:assistant"
	if d := cmp.Diff([]string{want, want}, ids); d != "" {
		t.Errorf("appended (-want +got):\n%s", d)
	}
	var got v1alpha1.Session
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, &got); err != nil || *got.Status.OutputTokens != 5 || got.Status.ActiveTask != "" {
		t.Errorf("session %+v, %v", got.Status, err)
	}
}
