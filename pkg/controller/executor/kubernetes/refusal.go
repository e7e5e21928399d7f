// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/controller/executor"
)

// refusal returns the most recent reason why the Pod of a Job could not be created, for example because of a quota; empty if
// there is none. The Job itself does not show this.
func (e *Executor) refusal(job *batchv1.Job) string {
	var last *corev1.Event
	for _, ev := range e.eventsAbout("Job", job.Namespace, job.UID) {
		if ev.Reason == "FailedCreate" && (last == nil || eventTime(ev).After(eventTime(last))) {
			last = ev
		}
	}
	if last == nil {
		return ""
	}
	return last.Message
}

// news is what the listeners were last told about a run that is not over.
type news struct {
	reason string
	pod    types.UID
}

// tellWaiting notifies the listeners if a run has got its Pod, waits for something else than they were last told,
// or no longer waits.
func (e *Executor) tellWaiting(job *batchv1.Job, s executor.State) {
	now := news{s.Waiting.Reason, s.PodUID}
	e.mu.Lock()
	changed := e.waiting[job.UID] != now
	if e.waiting[job.UID] = now; now == (news{}) {
		delete(e.waiting, job.UID)
	}
	e.mu.Unlock()
	if ref, ok := refOf(job); ok && changed {
		e.waits.Tell(ref)
	}
}

// warnRefused logs why Pods that claim to belong to a Job are refused. It logs again only when their number
// grows.
func (e *Executor) warnRefused(ctx context.Context, job *batchv1.Job, refused []error) {
	e.mu.Lock()
	before := e.warned[job.UID]
	if e.warned[job.UID] = len(refused); len(refused) == 0 {
		delete(e.warned, job.UID)
	}
	e.mu.Unlock()
	if len(refused) > before {
		klog.FromContext(ctx).Info("Refused a Pod that claims to belong to a run", "job", klog.KObj(job), "why", errors.Join(refused...).Error())
	}
}
