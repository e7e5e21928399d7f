// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// coolWrites is the shortest time between two writes of a Provider's cool-down.
const coolWrites = 5 * time.Second

// maxBegan bounds how many requests are known that began during a cool-down. Others cannot end it.
const maxBegan = 4096

// cooling is what the server knows of Providers whose vendors failed. It decides when to write their status, so that
// writes stay rare however many requests fail. A server that starts again knows nothing: a cool-down that is stored
// then ends by its time.
type cooling struct {
	mu   sync.Mutex
	list map[types.NamespacedName]cooled
}

type cooled struct {
	until, wrote time.Time
	// began has, by task, the request that began since the newest failure. A run makes one request at a time.
	began map[types.UID]string
}

// begin notes that a request of a task began, at Providers of that name. The worker chose the name, so it is the name of a Provider
// of the task only if a success says so.
func (c *cooling) begin(name string, task types.UID, call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, old := range c.list {
		if key.Name == name && len(old.began) < maxBegan {
			old.began[task] = call
		}
	}
}

// fail notes a failure and reports whether to write it: if it makes the cool-down longer by more than coolWrites.
func (c *cooling) fail(key types.NamespacedName, until, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.list[key]
	clear(old.began) // what began before this failure says less than the failure
	if now.Sub(old.wrote) < coolWrites || until.Sub(old.until) <= coolWrites {
		return false
	}
	if c.list == nil {
		c.list = map[types.NamespacedName]cooled{}
	}
	for other, o := range c.list {
		if now.After(o.until) {
			delete(c.list, other)
		}
	}
	c.list[key] = cooled{until, now, map[types.UID]string{}}
	return true
}

// any reports whether a Provider of that name may be cooling down.
func (c *cooling) any(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.list {
		if key.Name == name {
			return true
		}
	}
	return false
}

// succeed notes a success and reports whether to write it. The answer to a request that began before the newest failure says
// nothing about the time after that.
func (c *cooling) succeed(key types.NamespacedName, task types.UID, call string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.list[key]
	if !known || old.began[task] != call || now.Sub(old.wrote) < coolWrites {
		return false
	}
	delete(c.list, key)
	return true
}

// cool begins or ends the cool-down of a Provider, by a request of the task that ended. A request that its worker sends
// again does not count, nor does a success of a request that began before the newest failure. What a worker says about a
// Provider that the task does not use is ignored.
//
// Runs read the status of Providers when they make their plan, and again before requests (llm.Cooling), and ask those in a
// cool-down last. None is left out. The controller of Providers ends a cool-down whose time is over.
func (r *Tasks) cool(ctx context.Context, t *v1alpha1.Task, e requestEvent) {
	c := e.call
	pause, cools := llm.CoolDown(c.class, min(c.retryAfter, longestCoolDown))
	answered := c.class == ""
	if c.retried || !cools && !answered || answered && !r.cooling.any(c.provider) {
		return
	}
	q, err := e.ask()
	if err != nil || q.provider == nil || q.provider.Name != c.provider {
		return
	}
	p := q.provider
	key, now := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, r.all.o.Clock.Now()
	condition := metav1.Condition{
		Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCoolDownOver, Message: "a request succeeded",
	}
	var until *metav1.Time
	switch {
	case answered && !r.cooling.succeed(key, t.UID, c.id, now), cools && !r.cooling.fail(key, now.Add(pause), now):
		return
	case cools:
		until = &metav1.Time{Time: now.Add(pause).Truncate(time.Second)}
		condition.Status, condition.Reason = metav1.ConditionFalse, coolReasons[c.class]
		condition.Message = fmt.Sprintf("a request failed with %s; runs ask this provider last until %s", c.class, until.UTC().Format(time.RFC3339))
	}
	// The write is the server's own and does not depend on the worker's connection.
	ctx = request.WithNamespace(request.WithUser(context.WithoutCancel(ctx), nil), key.Namespace)
	_, err = r.all.o.UpdateProvider(ctx, key.Name, func(p *v1alpha1.Provider) error {
		condition.ObservedGeneration = p.Generation
		p.Status.CoolDownUntil = until
		meta.SetStatusCondition(&p.Status.Conditions, condition)
		return nil
	})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot record whether a provider answers", "provider", klog.KRef(key.Namespace, key.Name), "err", err)
	}
}

// longestCoolDown bounds the pause that a worker says its vendor asked for.
const longestCoolDown = time.Hour

// coolReasons are the reasons of the condition by what failed.
var coolReasons = map[llm.Class]string{
	llm.ClassAuth: v1alpha1.ReasonModelAuthenticationFailed, llm.ClassQuota: v1alpha1.ReasonModelQuotaExhausted,
	llm.ClassRateLimited: v1alpha1.ReasonModelRateLimited, llm.ClassServer: v1alpha1.ReasonModelServerError,
	llm.ClassUnreachable: v1alpha1.ReasonModelUnreachable,
}
