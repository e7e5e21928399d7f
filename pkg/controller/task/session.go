// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

const (
	// shownWaiting is how many waiting tasks a Session's status names.
	shownWaiting = 100
	// wakeSession is how many waiting tasks are woken when a session becomes free: the one whose
	// turn it is, and some more that report their new place in the queue. Tasks after them report
	// only that they are further back.
	wakeSession = 8
)

// sessions lets one task at a time hold a session, in the order in which the tasks were
// created. The hold is the Session's status.activeTask, with the UID of the task; a holder that
// is gone or over holds nothing. The queue is derived from the tasks alone; the Session's
// status only shows it.
type sessions struct {
	// client reads Sessions from the server, and tasks from the cache.
	client client.Client
	now    func() time.Time
}

// sessionIndex finds the tasks of a session that are not over.
const sessionIndex = "session"

// sessionOf returns the keys of a task in sessionIndex. A task with a schedule has none, because it only creates
// tasks.
func sessionOf(o client.Object) []string {
	t, ok := o.(*v1alpha1.Task)
	if !ok || t.Spec.SessionRef == nil || t.Spec.Schedule != "" || t.Status.Phase.Terminal() {
		return nil
	}
	return []string{t.Spec.SessionRef.Name}
}

// turns says which task holds a session, and which tasks wait for it, in order.
type turns struct {
	holder  *v1alpha1.Task // nil if no task holds it
	waiting []*v1alpha1.Task
}

// members returns the tasks of a session that are not over, as far as the cache knows, in the
// order of their turns. When a task is reconciled, the cache has all tasks that were created
// before it, because it received them first.
func members(ctx context.Context, c client.Reader, namespace, session string) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	// These are the cache's own objects, which must not be changed.
	err := c.List(ctx, &tasks, client.InNamespace(namespace), client.MatchingFields{sessionIndex: session}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("tasks of session: %w", err)
	}
	slices.SortFunc(tasks.Items, func(a, b v1alpha1.Task) int { return turnOf(&a).compare(turnOf(&b)) })
	return tasks.Items, nil
}

// turns finds the holder of the session: the task that its status names or, if that was lost,
// one that has begun. The task with the UID without is left out.
func (s *sessions) turns(ctx context.Context, sess *v1alpha1.Session, without types.UID) (turns, error) {
	tasks, err := members(ctx, s.client, sess.Namespace, sess.Name)
	if err != nil {
		return turns{}, err
	}
	var t turns
	for i := range tasks {
		if tasks[i].UID == without {
			continue
		}
		t.waiting = append(t.waiting, &tasks[i])
	}
	at := slices.IndexFunc(t.waiting, func(w *v1alpha1.Task) bool { return w.UID == sess.Status.ActiveTaskUID })
	if at < 0 {
		at = slices.IndexFunc(t.waiting, begun)
	}
	if at >= 0 {
		t.holder = t.waiting[at]
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
	return t, nil
}

// begun reports whether a task has done some of its work, and so keeps its turn.
func begun(t *v1alpha1.Task) bool {
	return t.Status.Phase == v1alpha1.TaskRunning || t.Status.Phase == v1alpha1.TaskFinalizing || t.Status.Attempts > 0
}

// lock takes the task's session. It returns a queued error until it is the task's turn, and a
// refusal if there is no such session.
func (s *sessions) lock(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.SessionRef == nil {
		return nil
	}
	sess, err := s.session(ctx, t)
	if err != nil {
		return err
	}
	now, err := s.turns(ctx, sess, "")
	if err != nil {
		return err
	}
	place := slices.IndexFunc(now.waiting, func(w *v1alpha1.Task) bool { return w.UID == t.UID })
	switch {
	case now.holder != nil && now.holder.UID == t.UID:
		return s.show(ctx, sess, t, now, nil)
	case now.holder == nil && place == 0:
		return s.show(ctx, sess, t, turns{holder: t, waiting: now.waiting[1:]}, nil)
	}
	if err := s.show(ctx, sess, nil, now, nil); err != nil {
		return err
	}
	return wait(sess, now, max(place, 0))
}

// wait returns the queued error with which the task waits until wakeQueue wakes it.
func wait(sess *v1alpha1.Session, now turns, before int) error {
	w := queued{reason: v1alpha1.ReasonSessionBusy}
	switch {
	case before >= wakeSession-1: // the holder counts among those that are woken
		w.Reason = fmt.Sprintf("waits for session %s: %d or more are before", sess.Name, wakeSession-1)
	case now.holder != nil:
		w.Reason = fmt.Sprintf("waits for session %s: task %s holds it, %d before", sess.Name, now.holder.Name, before)
	case len(now.waiting) > 0:
		w.Reason = fmt.Sprintf("waits for session %s: task %s is next, %d before", sess.Name, now.waiting[0].Name, before)
	default:
		w.Reason = fmt.Sprintf("waits for session %s", sess.Name)
	}
	return w
}

// session reads the task's session, or creates it if the task asks for that.
func (s *sessions) session(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Session, error) {
	ref := t.Spec.SessionRef
	sess := &v1alpha1.Session{}
	key := types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}
	err := s.client.Get(ctx, key, sess)
	if apierrors.IsNotFound(err) {
		if !ref.Create {
			return nil, refusal.Missing(v1alpha1.ReasonSessionNotFound, "session %q does not exist", ref.Name)
		}
		sess = &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: ref.Name}}
		sess.Spec.SessionType = v1alpha1.SessionTypeTask
		err = s.client.Create(ctx, sess)
		if apierrors.IsAlreadyExists(err) { // another task created it first
			err = s.client.Get(ctx, key, sess)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return sess, nil
}

// show writes to the session's status which tasks wait, and adds what a task has used. If taker
// is not nil, it gives the session to that task. Otherwise it removes a hold that is no longer
// valid. It never restores the hold of a task that only the cache shows as running: the cache
// may be outdated, and the task may have released the session. show fails with a conflict if
// the session changed meanwhile.
func (s *sessions) show(ctx context.Context, sess *v1alpha1.Session, taker *v1alpha1.Task, now turns, used *v1alpha1.TaskUsage) error {
	before := sess.DeepCopy()
	st := &sess.Status
	switch {
	case taker != nil:
		st.ActiveTask, st.ActiveTaskUID = taker.Name, taker.UID
	case now.holder == nil || now.holder.UID != st.ActiveTaskUID:
		st.ActiveTask, st.ActiveTaskUID = "", ""
	}
	st.WaitingCount = int32(len(now.waiting))
	st.WaitingTasks = nil
	for _, w := range now.waiting[:min(len(now.waiting), shownWaiting)] {
		st.WaitingTasks = append(st.WaitingTasks, w.Name)
	}
	if used != nil {
		trace.AddTokens(&st.InputTokens, used.InputTokens)
		trace.AddTokens(&st.OutputTokens, used.OutputTokens)
	}
	if st.ActiveTaskUID == before.Status.ActiveTaskUID && st.WaitingCount == before.Status.WaitingCount &&
		slices.Equal(st.WaitingTasks, before.Status.WaitingTasks) {
		return nil
	}
	if st.ActiveTaskUID != before.Status.ActiveTaskUID {
		st.UpdatedAt = &metav1.Time{Time: s.now()}
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Status().Patch(ctx, sess, patch); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// release takes a task that ends out of its session's queue, and frees the session if the task
// holds it. The same write adds what the task has used. A repetition adds nothing, because the
// task then holds nothing.
func (s *sessions) release(ctx context.Context, t *v1alpha1.Task, used *v1alpha1.TaskUsage) error {
	if t.Spec.SessionRef == nil || t.Spec.Schedule != "" {
		return nil
	}
	sess, err := s.existing(ctx, t)
	if err != nil || sess == nil {
		return err
	}
	now, err := s.turns(ctx, sess, t.UID)
	if err != nil {
		return err
	}
	if sess.Status.ActiveTaskUID != t.UID {
		used = nil
	}
	return client.IgnoreNotFound(s.show(ctx, sess, nil, now, used))
}

// existing reads the task's session; nil if there is none.
func (s *sessions) existing(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Session, error) {
	sess := &v1alpha1.Session{}
	err := s.client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.SessionRef.Name}, sess)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return sess, nil
}

func hasBegun(o client.Object) bool {
	t, ok := o.(*v1alpha1.Task)
	return ok && begun(t)
}

// wakeQueue wakes the next tasks of a session when one of its tasks is over, so that the first
// of them continues, or has begun, so that the others report which task they wait for now.
func wakeQueue(c client.Reader) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, namespace string, session []string) {
		if len(session) == 0 {
			return
		}
		tasks, err := members(ctx, c, namespace, session[0])
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot list the tasks of a session that may now start", "session", klog.KRef(namespace, session[0]))
			return
		}
		for i := range tasks[:min(len(tasks), wakeSession)] {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&tasks[i])})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) {
			was, is := sessionOf(e.ObjectOld), sessionOf(e.ObjectNew)
			if !slices.Equal(was, is) || hasBegun(e.ObjectNew) && !hasBegun(e.ObjectOld) {
				wake(ctx, q, e.ObjectOld.GetNamespace(), was)
			}
		},
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) {
			wake(ctx, q, e.Object.GetNamespace(), sessionOf(e.Object))
		},
	}
}
