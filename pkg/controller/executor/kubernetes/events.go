// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"hash/fnv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// aboutUID is the index of Events by the UID of the object that they are about.
const aboutUID = "about-uid"

// maxRelayed is how many Events about the Job and the Pod of a run are written for its Task.
const maxRelayed = 100

// eventsOf names a cache of Events: those about the objects of a kind in a namespace, or in all.
type eventsOf struct{ kind, namespace string }

// events watches the Events about Jobs or Pods. The rest of the watch does not wait for them, so runs work even if the
// controller may not read Events.
func (w *watch) events(kind, namespace string) (cache.SharedIndexInformer, error) {
	index := cache.Indexers{aboutUID: func(o any) ([]string, error) {
		if ev, ok := o.(*corev1.Event); ok {
			return []string{string(ev.InvolvedObject.UID)}, nil
		}
		return nil, nil
	}}
	events := coreinformers.NewFilteredEventInformer(w.e.opts.Client, namespace, 0, index, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.Set{"involvedObject.kind": kind}.String()
	})
	if err := events.SetTransform(withoutManagedFields); err != nil {
		return nil, fmt.Errorf("watch Events: %w", err)
	}
	if _, err := events.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: w.eventHappened, UpdateFunc: func(_, o any) { w.eventHappened(o) }}); err != nil {
		return nil, fmt.Errorf("watch Events: %w", err)
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.e.events[eventsOf{kind, namespace}] = events.GetIndexer()
	return events, nil
}

// eventHappened wakes the run that an Event is about. If its Pod is not known yet, the Pod will.
func (w *watch) eventHappened(o any) {
	ev, ok := o.(*corev1.Event)
	if !ok {
		return
	}
	if ev.InvolvedObject.Kind == "Job" {
		w.queue.Add(types.NamespacedName{Namespace: ev.Namespace, Name: ev.InvolvedObject.Name})
	} else if pod, err := w.pods.Pods(ev.Namespace).Get(ev.InvolvedObject.Name); err == nil {
		w.podChanged(pod)
	}
}

// eventsAbout returns the Events about an object that are known. They must not be changed.
func (e *Executor) eventsAbout(kind, namespace string, uid types.UID) []*corev1.Event {
	e.mu.Lock()
	events := e.events[eventsOf{kind, namespace}]
	if events == nil {
		events = e.events[eventsOf{kind, metav1.NamespaceAll}]
	}
	e.mu.Unlock()
	if events == nil {
		return nil
	}
	found, err := events.ByIndex(aboutUID, string(uid))
	if err != nil {
		return nil
	}
	var all []*corev1.Event
	for _, o := range found {
		if ev, ok := o.(*corev1.Event); ok {
			all = append(all, ev)
		}
	}
	return all
}

// relay writes the Events about a Job and its Pod for the Task again, once each and at most maxRelayed, because kubectl describe shows
// only those about the object itself. They are for people, so that one cannot be written is not an error; it is tried again when
// something else happens to the run. pod is nil while there is none.
func (e *Executor) relay(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) {
	ref, ok := refOf(job)
	if !ok {
		return
	}
	events := e.eventsAbout("Job", job.Namespace, job.UID)
	if pod != nil {
		events = append(events, e.eventsAbout("Pod", pod.Namespace, pod.UID)...)
	}
	for _, ev := range events {
		if !e.unrelayed(job.UID, ev.UID) {
			continue
		}
		_, err := e.opts.Client.CoreV1().Events(job.Namespace).Create(ctx, relayed(ref, ev), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // which an earlier process has written
			klog.FromContext(ctx).Info("Event was not written", "task", klog.KRef(ref.Namespace, ref.Name), "reason", ev.Reason, "cause", err.Error())
			continue
		}
		e.setRelayed(job.UID, ev.UID)
	}
}

// unrelayed reports whether an Event is to be written.
func (e *Executor) unrelayed(job, event types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, done := e.relayed[job][event]
	return !done && len(e.relayed[job]) < maxRelayed
}

func (e *Executor) setRelayed(job, event types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.relayed[job] == nil {
		e.relayed[job] = map[types.UID]struct{}{}
	}
	e.relayed[job][event] = struct{}{}
}

// relayed returns an Event for the Task of a run. Its name follows from the original's identity.
func relayed(run executor.Ref, ev *corev1.Event) *corev1.Event {
	id := fnv.New64a()
	_, _ = id.Write([]byte(ev.UID)) // never fails
	at := metav1.NewTime(eventTime(ev))
	about := ev.InvolvedObject
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: fmt.Sprintf("%s.%010x", run.Name, id.Sum64()>>24)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Namespace: run.Namespace, Name: run.Name, UID: run.UID,
		},
		Related: &about, Reason: ev.Reason, Message: clean(about.Kind + " " + about.Name + ": " + ev.Message), Type: ev.Type,
		Count: max(ev.Count, 1), FirstTimestamp: at, LastTimestamp: at,
		Source: ev.Source, ReportingController: ev.ReportingController, ReportingInstance: ev.ReportingInstance,
	}
}
