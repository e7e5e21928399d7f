// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/controller/executor"
)

// jobUID is the index of Events by the UID of the Job that they are about.
const jobUID = "job-uid"

// refusals watches the Events in which the cluster reports that it could not create the Pod of
// a Job, for example because of a quota: the Job itself does not show this. The rest of the
// watch does not wait for these Events, so runs work even if the controller may not read
// Events.
func (w *watch) refusals(namespace string) (cache.SharedIndexInformer, error) {
	index := cache.Indexers{jobUID: func(o any) ([]string, error) {
		if ev, ok := o.(*corev1.Event); ok {
			return []string{string(ev.InvolvedObject.UID)}, nil
		}
		return nil, nil
	}}
	events := coreinformers.NewFilteredEventInformer(w.e.opts.Client, namespace, 0, index, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.Set{"involvedObject.kind": "Job", "reason": "FailedCreate"}.String()
	})
	wake := func(o any) {
		if ev, ok := o.(*corev1.Event); ok {
			w.queue.Add(types.NamespacedName{Namespace: ev.Namespace, Name: ev.InvolvedObject.Name})
		}
	}
	if err := events.SetTransform(withoutManagedFields); err != nil {
		return nil, fmt.Errorf("watch Events: %w", err)
	}
	_, err := events.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, o any) { wake(o) }})
	if err != nil {
		return nil, fmt.Errorf("watch Events: %w", err)
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.e.refusals[namespace] = events.GetIndexer()
	return events, nil
}

// refusal returns the most recent reason why the Pod of a Job could not be created; empty if there is none.
func (e *Executor) refusal(job *batchv1.Job) string {
	e.mu.Lock()
	events := e.refusals[job.Namespace]
	if events == nil {
		events = e.refusals[metav1.NamespaceAll]
	}
	e.mu.Unlock()
	if events == nil {
		return ""
	}
	found, err := events.ByIndex(jobUID, string(job.UID))
	if err != nil {
		return ""
	}
	var last *corev1.Event
	for _, o := range found {
		if ev, ok := o.(*corev1.Event); ok && (last == nil || eventTime(ev).After(eventTime(last))) {
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
