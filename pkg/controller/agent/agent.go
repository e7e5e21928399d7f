// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent reports whether Agents can be used: whether everything that they refer to
// exists. It counts their active tasks and deletes idle Agents that have a time to live.
package agent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/reader"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
)

// Secrets and ConfigMaps are not watched. An Agent is checked again after these times.
const (
	recheckReady    = 5 * time.Minute
	recheckNotReady = 10 * time.Second
)

// activeIndex finds the active tasks of an Agent, by its namespace/name, without scanning all
// tasks.
const activeIndex = "activeOfAgent"

func activeAgent(o client.Object) []string {
	t, ok := o.(*v1alpha1.Task)
	if !ok || t.Spec.AgentRef == nil || !t.Status.Phase.Active() {
		return nil
	}
	return []string{agentKey(t).String()}
}

// Add registers the controller. The manager's client must not cache Secrets and ConfigMaps.
func Add(ctx context.Context, mgr manager.Manager, c clock.PassiveClock, place plan.Place, programs Confinement) error {
	cl := mgr.GetClient()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Task{}, activeIndex, activeAgent); err != nil {
		return fmt.Errorf("index of tasks: %w", err)
	}
	r := &step.Reconciler[*v1alpha1.Agent]{
		Client: cl,
		New:    func() *v1alpha1.Agent { return &v1alpha1.Agent{} },
		Steps: []step.Step[*v1alpha1.Agent]{
			{Name: "active", Do: active{tasks: tasksOf(cl)}.do},
			{Name: "idle", Do: idle{now: c.Now, remove: removeAgent(cl)}.do},
			{Name: "references", Do: references{reader: reader.Reader{Cached: cl}, place: place}.do},
			{Name: "delegates", Do: delegates},
			{Name: "confined", Do: confined{programs}.do},
			{Name: "recheck", Do: recheck{now: c.Now}.do},
		},
	}
	return builder.ControllerManagedBy(mgr).Named("agent").
		For(&v1alpha1.Agent{}).
		Watches(&v1alpha1.Task{}, handler.EnqueueRequestsFromMapFunc(agentOfTask)).
		Watches(&v1alpha1.Provider{}, handler.EnqueueRequestsFromMapFunc(referrers(cl))).
		Watches(&v1alpha1.Skill{}, handler.EnqueueRequestsFromMapFunc(referrers(cl))).
		Watches(&v1alpha1.Tool{}, handler.EnqueueRequestsFromMapFunc(referrers(cl))).
		Complete(r)
}

func agentOfTask(_ context.Context, o client.Object) []reconcile.Request {
	t, ok := o.(*v1alpha1.Task)
	if !ok || t.Spec.AgentRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: agentKey(t)}}
}

func agentKey(t *v1alpha1.Task) types.NamespacedName {
	return t.Spec.AgentRef.In(t.Namespace)
}

// referrers maps an object to all Agents of its namespace: they are few, and checking them is cheap.
func referrers(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var agents v1alpha1.AgentList
		if err := c.List(ctx, &agents, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil // they are checked again after a time anyway
		}
		var out []reconcile.Request
		for i := range agents.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&agents.Items[i])})
		}
		return out
	}
}

func tasksOf(c client.Reader) func(context.Context, *v1alpha1.Agent) (int32, error) {
	return func(ctx context.Context, a *v1alpha1.Agent) (int32, error) {
		var tasks v1alpha1.TaskList
		err := c.List(ctx, &tasks, client.MatchingFields{activeIndex: client.ObjectKeyFromObject(a).String()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return 0, fmt.Errorf("tasks: %w", err)
		}
		return int32(len(tasks.Items)), nil
	}
}

// active is the step that counts the Agent's active tasks.
type active struct {
	tasks func(context.Context, *v1alpha1.Agent) (int32, error)
}

func (s active) do(ctx context.Context, a *v1alpha1.Agent) error {
	n, err := s.tasks(ctx, a)
	if err != nil {
		return err
	}
	a.Status.ActiveTasks = n
	return nil
}

func removeAgent(c client.Client) func(context.Context, *v1alpha1.Agent) error {
	return func(ctx context.Context, a *v1alpha1.Agent) error {
		return c.Delete(ctx, a, client.Preconditions{UID: new(a.UID), ResourceVersion: new(a.ResourceVersion)})
	}
}

// idle is the step that deletes an Agent that was not used for its time to live.
type idle struct {
	now    func() time.Time
	remove func(context.Context, *v1alpha1.Agent) error
}

func (s idle) do(ctx context.Context, a *v1alpha1.Agent) error {
	left, ok := timeLeft(a, s.now())
	if !ok || left > 0 {
		return nil
	}
	if err := s.remove(ctx, a); client.IgnoreNotFound(err) != nil {
		return err
	}
	return step.ErrDone
}

// timeLeft returns the time until the Agent may be deleted; false if it may not.
func timeLeft(a *v1alpha1.Agent, now time.Time) (time.Duration, bool) {
	ttl := a.Spec.TTLAfterLastTask
	if ttl == nil || a.Status.ActiveTasks > 0 || !a.DeletionTimestamp.IsZero() {
		return 0, false
	}
	last := a.CreationTimestamp.Time
	if a.Status.LastUsed != nil {
		last = a.Status.LastUsed.Time
	}
	return last.Add(ttl.Value()).Sub(now), true
}

// recheck is the step that says when to check the Agent again.
type recheck struct {
	now func() time.Time
}

func (s recheck) do(_ context.Context, a *v1alpha1.Agent) error {
	w := step.Wait{After: recheckReady, Reason: "the agent is ready"}
	if !a.Status.Ready {
		w = step.Wait{After: recheckNotReady, Reason: "the agent is not ready"}
	}
	if left, ok := timeLeft(a, s.now()); ok {
		w.After = max(time.Millisecond, min(w.After, left))
	}
	return w
}
