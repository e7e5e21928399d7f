// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxNews is how many Events may wait to be written. More are dropped: the execution events are the record, and the
// Events are for people who look with kubectl describe.
const maxNews = 256

// news is a Kubernetes Event to be written about a task.
type news struct {
	task                 *v1alpha1.Task
	typ, reason, message string
	once                 string // tells two of one reason and attempt apart
}

// announcer writes Events about what the status of tasks shows: failures, refusals, approvals and their decisions, and
// retries. It writes nothing about tasks as they are when it starts. It is a Runnable.
type announcer struct {
	queue chan news
	tell  func(ctx context.Context, n news)
}

func newAnnouncer(tell func(ctx context.Context, n news)) *announcer {
	return &announcer{queue: make(chan news, maxNews), tell: tell}
}

// Start writes Events until ctx ends.
func (a *announcer) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-a.queue:
			a.tell(ctx, n)
		}
	}
}

// changes returns the handler that follows tasks. It wakes none.
func (a *announcer) changes() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e ctrlevent.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		was, ok := e.ObjectOld.(*v1alpha1.Task)
		now, also := e.ObjectNew.(*v1alpha1.Task)
		if !ok || !also || was.UID != now.UID {
			return
		}
		for _, n := range newsOf(was, now) {
			select {
			case a.queue <- n:
			default:
			}
		}
	}}
}

// newsOf returns what to announce about a change of a task.
func newsOf(was, now *v1alpha1.Task) []news {
	waited, waits := approvalOf(was), approvalOf(now)
	n := news{task: now, typ: corev1.EventTypeWarning, message: now.Status.Message}
	switch {
	case now.Status.Phase == v1alpha1.TaskFailed && was.Status.Phase != v1alpha1.TaskFailed:
		n.reason = v1alpha1.EventReasonFailed
		if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionFailed); c != nil && c.Reason != "" {
			n.reason = c.Reason
		}
	case now.Status.Phase == v1alpha1.TaskPending && was.Status.Phase == v1alpha1.TaskRunning && now.Status.NextAttemptTime != nil:
		n.reason = v1alpha1.EventReasonRetry
	case waits != "" && waits != waited:
		asked := news{now, corev1.EventTypeNormal, v1alpha1.EventReasonApproval, waits, waits}
		if waited != "" && firstOf(waited) != firstOf(waits) { // it was decided, and the next one requested, before anybody looked
			return []news{decided(now, waited), asked}
		}
		return []news{asked}
	case waited != "" && waits == "" && now.Status.Phase == v1alpha1.TaskRunning:
		return []news{decided(now, waited)}
	default:
		return nil
	}
	return []news{n}
}

func decided(t *v1alpha1.Task, waited string) news {
	return news{t, corev1.EventTypeNormal, v1alpha1.EventReasonDecided, "decided: " + waited, waited}
}

// firstOf returns what tellParked says about the first of several approvals.
func firstOf(message string) string {
	message, _, _ = strings.Cut(message, andMore)
	return message
}

// approvalOf returns what a task says about the approvals that it waits for; empty if it waits for none.
func approvalOf(t *v1alpha1.Task) string {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}
