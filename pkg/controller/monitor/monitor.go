// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitor looks after repositories for RepositoryMonitors. There is one controller for each kind of record:
//
//   - of monitors (watch.go): makes a run when the schedule is due, refreshes what usage knows of pull requests (evidence.go), and
//     counts what there is;
//   - of runs (run.go): looks at what is open, writes that down in items, and makes the work that an item needs (next.go);
//   - of commands (command.go): decides whether who gave a command may, and makes its work;
//   - of work (work.go): has an agent do it (a Task), reads what the agent says, and writes the outcome on the code host.
//
// # Once
//
// Nothing is remembered outside of the API. Each record has a name that is derived from what it is about, so a run, a command, a piece of
// work and its task exist once, however often a controller is killed. What is written on the code host is a MonitorMutation first, and the
// server recognises a call that is repeated by the name of that (package codehost/operation). A webhook that is lost is made up for by the
// next run, and one that is late finds that its work exists.
//
// # What is believed
//
// What people write on the code host, and what agents say about it, is data. An agent that reviews gets no credential that writes; what it
// says is read as JSON, and only this controller posts it. A label is a command only if who set it may write in the repository now. All work
// on a pull request is about one head; if the head is another one by then, nothing is written.
package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// Options configure the controllers.
type Options struct {
	// Clock is required.
	Clock clock.PassiveClock
	// MergeGate is set if the operator permits monitors to merge.
	MergeGate bool
	// Metrics, if set, registers the metrics.
	Metrics prometheus.Registerer
}

// Add registers the controllers.
func Add(ctx context.Context, mgr manager.Manager, o Options) error {
	counts, err := newMetrics(ctx, o.Metrics)
	if err != nil {
		return err
	}
	w := &world{Client: mgr.GetClient(), live: mgr.GetAPIReader(), now: o.Clock.Now, gate: o.MergeGate, counts: counts}
	for _, record := range []client.Object{&v1alpha1.MonitorItem{}, &v1alpha1.MonitorWorkAction{}, &v1alpha1.MonitorRun{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, record, ofMonitor, nameOf); err != nil {
			return fmt.Errorf("index of records of monitors: %w", err)
		}
	}
	return errors.Join(
		builder.ControllerManagedBy(mgr).Named("repositorymonitor").For(&v1alpha1.RepositoryMonitor{}).WithOptions(parallel).
			Watches(&v1alpha1.MonitorRun{}, handler.EnqueueRequestsFromMapFunc(toMonitor)).
			Watches(&v1alpha1.MonitorItem{}, handler.EnqueueRequestsFromMapFunc(toMonitor)).
			Complete(&step.Reconciler[*v1alpha1.RepositoryMonitor]{
				Client: mgr.GetClient(), New: func() *v1alpha1.RepositoryMonitor { return &v1alpha1.RepositoryMonitor{} },
				Steps: []step.Step[*v1alpha1.RepositoryMonitor]{{Name: "check", Do: w.check}, {Name: "count", Do: w.count}, {Name: "watch", Do: w.watch}},
			}),
		builder.ControllerManagedBy(mgr).Named("monitorrun").For(&v1alpha1.MonitorRun{}).WithOptions(parallel).
			Complete(&step.Reconciler[*v1alpha1.MonitorRun]{
				Client: mgr.GetClient(), New: func() *v1alpha1.MonitorRun { return &v1alpha1.MonitorRun{} },
				Steps: []step.Step[*v1alpha1.MonitorRun]{{Name: "run", Do: w.run}},
			}),
		builder.ControllerManagedBy(mgr).Named("monitorcommand").For(&v1alpha1.MonitorCommand{}).WithOptions(parallel).
			Watches(&v1alpha1.MonitorWorkAction{}, handler.EnqueueRequestsFromMapFunc(toCommand)).
			Complete(&step.Reconciler[*v1alpha1.MonitorCommand]{
				Client: mgr.GetClient(), New: func() *v1alpha1.MonitorCommand { return &v1alpha1.MonitorCommand{} },
				Steps: []step.Step[*v1alpha1.MonitorCommand]{{Name: "command", Do: w.command}},
			}),
		builder.ControllerManagedBy(mgr).Named("monitorworkaction").For(&v1alpha1.MonitorWorkAction{}).WithOptions(parallel).
			Watches(&v1alpha1.Task{}, handler.EnqueueRequestsFromMapFunc(toWork)).
			Complete(&step.Reconciler[*v1alpha1.MonitorWorkAction]{
				Client: mgr.GetClient(), New: func() *v1alpha1.MonitorWorkAction { return &v1alpha1.MonitorWorkAction{} },
				Steps: []step.Step[*v1alpha1.MonitorWorkAction]{{Name: "work", Do: w.work}},
			}),
	)
}

// parallel lets a slow code host not delay the others.
var parallel = controller.Options{MaxConcurrentReconciles: 8}

// ofMonitor is the index of records by the name of their monitor.
const ofMonitor = "spec.monitorName"

func nameOf(o client.Object) []string {
	switch o := o.(type) {
	case *v1alpha1.MonitorItem:
		return []string{o.Spec.MonitorName}
	case *v1alpha1.MonitorWorkAction:
		return []string{o.Spec.MonitorName}
	case *v1alpha1.MonitorRun:
		return []string{o.Spec.MonitorName}
	}
	return nil
}

func request(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

func toMonitor(_ context.Context, o client.Object) []reconcile.Request {
	for _, name := range nameOf(o) {
		return request(o.GetNamespace(), name)
	}
	return nil
}

// toCommand wakes the command that asked for a piece of work.
func toCommand(_ context.Context, o client.Object) []reconcile.Request {
	if w, ok := o.(*v1alpha1.MonitorWorkAction); ok {
		return request(o.GetNamespace(), w.Spec.Command)
	}
	return nil
}

// toWork wakes the piece of work that a task is for.
func toWork(_ context.Context, o client.Object) []reconcile.Request {
	return request(o.GetNamespace(), o.GetAnnotations()[v1alpha1.AnnotationMonitorWork])
}

// world is what the controllers act on.
//
//large:lines five controllers share it; each has a file, and what they have in common is here and in next.go
type world struct {
	client.Client
	// live reads from the server, never from a cache.
	live   client.Reader
	now    func() time.Time
	gate   bool
	counts *metrics
}

func (w *world) time() *metav1.Time {
	t := metav1.NewTime(w.now())
	return &t
}

// monitor returns the monitor of a record; nil if it is gone, or another one has its name.
func (w *world) monitor(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.RepositoryMonitor, error) {
	m := &v1alpha1.RepositoryMonitor{}
	err := w.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, m)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, fmt.Errorf("monitor %s: %w", name, err)
	case m.UID != uid || m.DeletionTimestamp != nil:
		return nil, nil //nolint:nilnil // it is gone
	}
	return m, nil
}

// failure is why a call on a code host could not be made.
type failure struct {
	*v1alpha1.TaskCodeHostFailure
}

func (f failure) Error() string { return f.Message }

// passing reports whether the same call may be made later.
func (f failure) passing() bool {
	return f.Reason == v1alpha1.CodeHostRateLimited || f.Reason == v1alpha1.CodeHostUnavailable || f.Reason == v1alpha1.CodeHostOutcomeUnknown
}

// wait returns how long to wait before a call that failed for the n-th time is repeated.
func (f failure) wait(n int32) time.Duration {
	pause := min(retryFirst<<min(max(n-1, 0), 10), retryMost)
	return max(pause, time.Duration(f.RetryAfterSeconds)*time.Second)
}

// retry counts a failure, and sets when the same call is made again. It reports false if it is not, because the failure does not pass, or
// because the call was made often enough.
func (w *world) retry(f failure, attempts *int32, next **metav1.Time, message *string) bool {
	if !f.passing() || *attempts+1 >= maxTries {
		return false
	}
	*attempts++
	*next, *message = &metav1.Time{Time: w.now().Add(f.wait(*attempts))}, f.Message
	return true
}

// until waits for the next attempt of something; nil if it is due.
func (w *world) until(next *metav1.Time, why string) error {
	if next == nil || !next.After(w.now()) {
		return nil
	}
	return step.Wait{After: next.Sub(w.now()), Reason: why}
}

const (
	retryFirst, retryMost = 15 * time.Second, 10 * time.Minute
	// maxTries is how often a code host is asked for one thing.
	maxTries = 6
)

// call is a call on the code host of a monitor.
type call struct {
	operation, id, head string
	arguments           any
}

// do makes a call. What the code host or a credential did wrong is a failure.
func (w *world) do(ctx context.Context, m *v1alpha1.RepositoryMonitor, c call, result any) error {
	raw, err := json.Marshal(c.arguments)
	if err != nil {
		return fmt.Errorf("arguments of %s: %w", c.operation, err)
	}
	posted := &v1alpha1.MonitorCodeHostCall{Operation: c.operation, CallID: c.id, HeadSHA: c.head, Arguments: apiextensionsv1.JSON{Raw: raw}}
	if err := w.SubResource("codehost").Create(ctx, m, posted); err != nil {
		if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
			return failure{&v1alpha1.TaskCodeHostFailure{Reason: v1alpha1.CodeHostUnavailable, Message: "the code host did not answer in time"}}
		}
		return fmt.Errorf("%s: %w", c.operation, err)
	}
	if posted.Failure != nil {
		return failure{posted.Failure}
	}
	if posted.Result == nil {
		return fmt.Errorf("%s: the server gave no result", c.operation)
	}
	if err := json.Unmarshal(posted.Result.Raw, result); err != nil {
		return fmt.Errorf("%s: result: %w", c.operation, err)
	}
	return nil
}

// read makes a call that changes nothing.
func (w *world) read(ctx context.Context, m *v1alpha1.RepositoryMonitor, operation string, arguments, result any) error {
	return w.do(ctx, m, call{operation: operation, id: "read", arguments: arguments}, result)
}

// ensure creates an object unless one of its name is there, which it then reads. It reports whether it created one.
func (w *world) ensure(ctx context.Context, o client.Object) (made bool, err error) {
	err = w.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return false, w.live.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	return err == nil, err
}

// updateItem changes the status of an item.
func (w *world) updateItem(ctx context.Context, namespace, name string, change func(*v1alpha1.MonitorItem)) (*v1alpha1.MonitorItem, error) {
	item := &v1alpha1.MonitorItem{}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := w.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, item); err != nil {
			return err
		}
		before := item.DeepCopy()
		change(item)
		return w.Status().Patch(ctx, item, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", name, err)
	}
	return item, nil
}
