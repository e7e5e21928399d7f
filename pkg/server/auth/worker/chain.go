// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workerpod"
)

const (
	defaultRemember = 30 * time.Second
	// maxChains bounds the cache of looked-up chains, in entries of about 0.5 KiB each.
	maxChains = 8192
	// lookupTimeout bounds one lookup of a Pod and its Job. A lookup is not bound to one request, because other
	// requests may wait for it too.
	lookupTimeout = 10 * time.Second
)

// podRef identifies the Pod that a token is bound to.
type podRef struct {
	namespace, name string
	uid             types.UID
}

// ref identifies an object in the Pod's namespace.
type ref struct {
	name string
	uid  types.UID
}

// chain is the chain of owners from a Pod to its Task. It is immutable.
type chain struct {
	pod podRef
	// account is the ServiceAccount that the Pod runs as.
	account string
	job     ref
	// run is the identity that the controller gave the run before the Job existed.
	run  string
	task ref
	// spec is the digest of the Pod's spec, which has been compared with that of the Job.
	spec [sha256.Size]byte
	// until is when the Pod must be looked up again: most of what was checked cannot change, but the Pod may stop
	// being active.
	until time.Time
}

// refusal is the reason why a caller is not accepted as the worker of a task.
type refusal struct {
	// later is set if a retry may succeed.
	later bool
	why   string
}

// Error returns the reason.
func (r *refusal) Error() string { return "not accepted as a worker: " + r.why }

func never(format string, args ...any) error { return &refusal{why: fmt.Sprintf(format, args...)} }

func later(format string, args ...any) error {
	return &refusal{later: true, why: fmt.Sprintf(format, args...)}
}

// chain returns the chain of a Pod, either from the cache or by looking it up.
func (f *Filter) chain(ctx context.Context, pod podRef) (*chain, error) {
	if c, active := f.remembered(pod); active {
		return c, nil
	}
	found := f.flights.DoChan(pod.namespace+"/"+pod.name+"/"+string(pod.uid), func() (any, error) {
		old, active := f.remembered(pod)
		if active { // since another lookup that has just ended
			return old, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		c, err := f.lookUp(ctx, pod, old)
		if err != nil {
			return nil, err
		}
		f.chains.Add(pod.uid, c)
		return c, nil
	})
	select {
	case r := <-found:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*chain), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("look up Pod %s: %w", pod.name, ctx.Err())
	}
}

// remembered returns the cached chain of a Pod, or nil, and whether the Pod is still assumed to be active.
func (f *Filter) remembered(pod podRef) (c *chain, active bool) {
	v, ok := f.chains.Get(pod.uid)
	if !ok || v.(*chain).pod != pod {
		return nil, false
	}
	c = v.(*chain)
	return c, f.o.Clock.Now().Before(c.until)
}

// lookUp reads the Pod, and also its Job unless old contains it.
func (f *Filter) lookUp(ctx context.Context, want podRef, old *chain) (*chain, error) {
	now := f.o.Clock.Now()
	pod, err := f.o.Pods.Pods(want.namespace).Get(ctx, want.name, metav1.GetOptions{})
	if err != nil {
		return nil, missing("Pod", want.name, err)
	}
	c := &chain{pod: want, account: pod.Spec.ServiceAccountName, until: now.Add(f.o.Remember)}
	if c.job, err = jobOf(pod, want.uid); err != nil {
		return nil, err
	}
	if c.spec, err = digest(pod); err != nil {
		return nil, err
	}
	if old != nil && old.job == c.job && old.spec == c.spec {
		c.run, c.task = old.run, old.task
	} else {
		job, err := f.o.Jobs.Jobs(want.namespace).Get(ctx, c.job.name, metav1.GetOptions{})
		if err != nil {
			return nil, missing("Job", c.job.name, err)
		}
		c.run = job.Annotations[v1alpha1.AnnotationRunID]
		if c.task, err = taskOf(job, c.job.uid); err != nil {
			return nil, err
		}
		if err := workerpod.Check(job, pod); err != nil {
			return nil, never("%v", err)
		}
	}
	if label := pod.Labels[v1alpha1.LabelTask]; label != v1alpha1.LabelValue(c.task.name) {
		return nil, never("the label %s of Pod %s is %q, its Job is controlled by Task %s", v1alpha1.LabelTask, want.name, label, c.task.name)
	}
	return c, nil
}

// jobOf returns the Job that controls the Pod. The Pod must be active and have the UID.
func jobOf(pod *corev1.Pod, uid types.UID) (ref, error) {
	switch {
	case pod.UID != uid:
		return ref{}, never("the token is for an earlier Pod %s", pod.Name)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return ref{}, never("Pod %s has ended", pod.Name)
	}
	if len(pod.Spec.EphemeralContainers) > 0 {
		return ref{}, never("Pod %s has ephemeral containers, which could use the worker's token", pod.Name)
	}
	r, ok := controller(pod, schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"})
	if !ok {
		return ref{}, never("Pod %s is not controlled by a Job", pod.Name)
	}
	return r, nil
}

// digest is used to detect changes of a Pod's spec.
func digest(pod *corev1.Pod) (sum [sha256.Size]byte, err error) {
	text, err := json.Marshal(pod.Spec)
	if err != nil {
		return sum, fmt.Errorf("spec of Pod %s: %w", pod.Name, err)
	}
	return sha256.Sum256(text), nil
}

// taskOf returns the Task that controls the Job, which must have the UID.
func taskOf(job *batchv1.Job, uid types.UID) (ref, error) {
	if job.UID != uid {
		return ref{}, never("the Pod is controlled by an earlier Job %s", job.Name)
	}
	r, ok := controller(job, schema.GroupKind{Group: v1alpha1.GroupName, Kind: "Task"})
	if !ok {
		return ref{}, never("Job %s is not controlled by a Task", job.Name)
	}
	return r, nil
}

// controller returns the object's controlling owner, if it is of the given kind.
func controller(obj metav1.Object, kind schema.GroupKind) (ref, bool) {
	o := metav1.GetControllerOfNoCopy(obj)
	if o == nil || o.Kind != kind.Kind {
		return ref{}, false
	}
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil || gv.Group != kind.Group {
		return ref{}, false
	}
	return ref{name: o.Name, uid: o.UID}, true
}

// missing returns the error for an object that the host did not return.
func missing(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return later("%s %s is not found", kind, name)
	}
	return fmt.Errorf("look up %s %s: %w", kind, name, err)
}
