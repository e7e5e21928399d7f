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
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

const (
	// shownWaiting is how many waiting tasks a Session's status names.
	shownWaiting = 100
	// wakeSession is how many waiting tasks are woken when a session is free: the
	// one whose turn it is, and some more that say their new place. Those after
	// them say no more than that they are.
	wakeSession = 8
)

// sessions lets one task at a time hold a session, in the order in which the
// tasks were created. The hold is the Session's status.activeTask, with the UID
// of the task; a holder that is gone or over holds nothing. The queue is nowhere
// but in the tasks; the Session's status shows it.
type sessions struct {
	// client reads Sessions from the server, and tasks from the cache.
	client client.Client
	now    func() time.Time
}

// sessionIndex finds the tasks of a session that are not over.
const sessionIndex = "session"

// sessionOf is the index of tasks by session. A schedule only makes tasks.
func sessionOf(o client.Object) []string {
	t, ok := o.(*v1alpha1.Task)
	if !ok || t.Spec.SessionRef == nil || t.Spec.Schedule != "" || t.Status.Phase.Terminal() {
		return nil
	}
	return []string{t.Spec.SessionRef.Name}
}

// turns is who has a session, and who waits for it in which order.
type turns struct {
	holder  *v1alpha1.Task // nil for nobody
	waiting []*v1alpha1.Task
}

// members are the tasks of a session that are not over, as far as the cache
// knows, in the order of their turns. A task sees all that were created before
// it: the cache got them before.
func members(ctx context.Context, c client.Reader, namespace, session string) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	// The cache's own objects: they are only looked at.
	err := c.List(ctx, &tasks, client.InNamespace(namespace), client.MatchingFields{sessionIndex: session}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("tasks of session: %w", err)
	}
	slices.SortFunc(tasks.Items, func(a, b v1alpha1.Task) int { return turnOf(&a).compare(turnOf(&b)) })
	return tasks.Items, nil
}

// turns finds who has the session: the task that its status names or, where
// that was lost, one that has begun. without is left out.
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

// lock takes the task's session. It gives a queued outcome until it is the
// task's turn, and a refusal when there is no such session.
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

// wait is until wakeQueue wakes the task.
func wait(sess *v1alpha1.Session, now turns, before int) error {
	w := queued{reason: v1alpha1.ReasonSessionBusy}
	switch {
	case before >= wakeSession-1: // the holder is woken, too
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

// session reads the task's session, or makes it where the task says so.
func (s *sessions) session(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Session, error) {
	ref := t.Spec.SessionRef
	sess := &v1alpha1.Session{}
	key := types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}
	err := s.client.Get(ctx, key, sess)
	if apierrors.IsNotFound(err) {
		if !ref.Create {
			return nil, missing(v1alpha1.ReasonSessionNotFound, "session %q does not exist", ref.Name)
		}
		sess = &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: ref.Name}}
		sess.Spec.SessionType = v1alpha1.SessionTypeTask
		err = s.client.Create(ctx, sess)
		if apierrors.IsAlreadyExists(err) { // another task was faster
			err = s.client.Get(ctx, key, sess)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return sess, nil
}

// show writes into the session's status who waits, and adds what a task has used.
// With taker it gives the session to that task. Without, a hold that is worth
// nothing goes; none is ever given back to a task that only the cache, which may
// be late, shows at work: it may have released the session. show fails with a
// conflict when the session changed meanwhile.
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

// release takes a task that ends out of its session's queue, and gives the
// session free where the task holds it. What the task has used is added by the
// same write, so a repetition, after which the task holds nothing, adds nothing.
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

// existing reads the task's session; nil when there is none.
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

// wakeQueue wakes the tasks that are next when one of their session is over, so
// that the first of them goes on, or has begun, so that the others tell whom they
// wait for now.
func wakeQueue(c client.Reader) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, namespace string, session []string) {
		if len(session) == 0 {
			return
		}
		tasks, err := members(ctx, c, namespace, session[0])
		if err != nil {
			klog.FromContext(ctx).Error(err, "Tasks of a session are not woken", "session", klog.KRef(namespace, session[0]))
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
