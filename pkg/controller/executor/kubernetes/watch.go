// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/workerpod"
)

// watch watches the runs of one namespace, or of all.
type watch struct {
	e     *Executor
	jobs  batchlisters.JobLister
	pods  corelisters.PodLister
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// Run watches Jobs and Pods until the context ends. It notifies listeners of runs that end, and ends
// runs that do not start. Only one process may do so at a time. Run may be called again.
func (e *Executor) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := e.store(ctx); err != nil { // the next run that starts, or the next list, knows it
		klog.FromContext(ctx).V(1).Info("The identity of the store is not known yet", "err", err)
	}
	for _, namespace := range e.opts.Namespaces {
		w, start, err := e.newWatch(namespace)
		if err != nil {
			return err
		}
		all.Go(func() { w.run(ctx, start) })
		for _, kind := range []string{"Job", "Pod"} {
			events, err := w.events(kind, namespace)
			if err != nil {
				return err
			}
			all.Go(func() { events.RunWithContext(ctx) })
		}
	}
	<-ctx.Done()
	return nil
}

func (e *Executor) newWatch(namespace string) (*watch, informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(e.opts.Client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = labelTaskUID }),
		informers.WithTransform(withoutManagedFields))
	jobs, pods := factory.Batch().V1().Jobs(), factory.Core().V1().Pods()
	w := &watch{e: e, jobs: jobs.Lister(), pods: pods.Lister(), queue: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName](),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: e.opts.Clock},
	)}
	_, err := jobs.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.wake(o) },
		UpdateFunc: func(_, o any) { w.wake(o) },
		DeleteFunc: w.jobGone,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch Jobs: %w", err)
	}
	_, err = pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.podChanged,
		UpdateFunc: func(_, o any) { w.podChanged(o) },
		DeleteFunc: w.podGone,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch Pods: %w", err)
	}
	return w, factory, nil
}

func withoutManagedFields(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// run works the queue until the context ends.
func (w *watch) run(ctx context.Context, factory informers.SharedInformerFactory) {
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	synced := factory.WaitForCacheSyncWithContext(ctx)
	if synced.Err != nil {
		return // the context ended
	}
	defer context.AfterFunc(ctx, w.queue.ShutDown)()
	for {
		key, down := w.queue.Get()
		if down {
			return
		}
		if err := w.look(ctx, key); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot check run", "job", key)
			w.queue.AddRateLimited(key)
		} else {
			w.queue.Forget(key)
		}
		w.queue.Done(key)
	}
}

// look notifies listeners of a run that is over, and gives up one that does not start or is unreachable.
func (w *watch) look(ctx context.Context, key types.NamespacedName) error {
	job, err := w.jobs.Jobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || w.e.foreign(job) {
		return err
	}
	found, err := w.pods.Pods(key.Namespace).List(labels.SelectorFromSet(labels.Set{batchv1.ControllerUidLabel: string(job.UID)}))
	if err != nil {
		return err
	}
	var pods []corev1.Pod
	for _, p := range found {
		pods = append(pods, *p)
	}
	a := w.e.assess(job, pods)
	pod := a.pod
	w.e.warnRefused(ctx, job, a.refused)
	w.e.tellWaiting(job, a.state)
	w.e.relay(ctx, job, pod)
	switch change := beginning(job, pod); {
	case a.state.Phase != executor.Running:
		w.e.tell(job)
	case change != nil:
		err := w.e.patch(ctx, job, change)
		if apierrors.IsConflict(err) {
			return nil // what changed will wake it
		}
		return gone(err)
	case a.verdict != nil:
		klog.FromContext(ctx).Info("Giving up a run", "job", key, "reason", a.verdict.Reason)
		err := w.e.giveUp(ctx, job, pod, a.verdict)
		if apierrors.IsConflict(err) {
			return nil // what changed will wake it
		}
		return gone(err)
	case a.again > 0:
		w.queue.AddAfter(key, a.again)
	}
	return nil
}

func (w *watch) wake(o any) {
	if m, err := meta.Accessor(o); err == nil {
		w.queue.Add(types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()})
	}
}

// jobGone notifies listeners of a run whose Job is gone, and forgets what was kept for it.
func (w *watch) jobGone(o any) {
	if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = t.Obj
	}
	job, ok := o.(*batchv1.Job)
	if !ok {
		return
	}
	w.e.tell(job)
	w.e.forget(job.UID)
}

func (w *watch) podChanged(o any) {
	if pod, ok := o.(*corev1.Pod); ok {
		w.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[batchv1.JobNameLabel]})
	}
}

// podGone keeps the last state of a pod that ended, as long as its Job exists.
func (w *watch) podGone(o any) {
	if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = t.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	uid := types.UID(pod.Labels[batchv1.ControllerUidLabel])
	job, err := w.jobs.Jobs(pod.Namespace).Get(pod.Labels[batchv1.JobNameLabel])
	if err == nil && job.UID == uid && ended(pod) && workerpod.Check(job, pod) == nil {
		w.e.lastPods.Add(uid, pod)
	}
	w.podChanged(pod)
}

// tell notifies the listeners, once, that a run is over.
func (e *Executor) tell(job *batchv1.Job) {
	ref, ok := refOf(job)
	if !ok {
		return
	}
	e.mu.Lock()
	_, before := e.told[job.UID]
	e.told[job.UID] = struct{}{}
	e.mu.Unlock()
	if !before {
		e.exits.Tell(ref)
	}
}

// forget drops what is kept for a Job that is gone.
func (e *Executor) forget(uid types.UID) {
	e.lastPods.Remove(uid)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.told, uid)
	delete(e.waiting, uid)
	delete(e.warned, uid)
	delete(e.verdicts, uid)
	delete(e.relayed, uid)
}
