// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// admitted appends the events if admission allows them. The events of a list are stored together or not at all.
func (r *Events) admitted(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, dryRun bool) ([]*v1alpha1.ExecutionEvent, error) {
	for i, e := range events {
		if err := r.Admit(ctx, t, e, dryRun); err != nil {
			if len(events) > 1 {
				err = refusal.At(fmt.Sprintf("items[%d]: ", i), err)
			}
			r.o.Log.Refused(events...)
			return nil, err
		}
	}
	return r.append(ctx, t, events, dryRun)
}

// Add appends an event that this server made on behalf of the task's worker, as if the worker had posted it.
func (r *Events) Add(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	ctx, err := r.recorded(ctx, e)
	if err == nil {
		_, err = r.admitted(ctx, t, []*v1alpha1.ExecutionEvent{e}, false)
	}
	return err
}

// AddEnd appends the event of the end of something that Add began. Neither admission nor limits are asked, because what happened has
// happened. If the disk has no room even for that, it is stored later, before the end of the task; lost is called if it is not stored.
func (r *Events) AddEnd(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent, lost func(error)) {
	ctx = eventlog.WithoutLimits(ctx)
	r.o.Ends.Do(klog.FromContext(ctx), string(e.Type)+" of task "+t.Namespace+"/"+t.Name, func() error {
		one, with := e.DeepCopy(), ctx
		if recorded, err := r.recorded(ctx, one); err == nil {
			with = recorded // what cannot be recorded is counted all the same
		}
		_, err := r.append(with, t, []*v1alpha1.ExecutionEvent{one}, false)
		if s, ok := errors.AsType[*apierrors.StatusError](err); ok && s.ErrStatus.Code == http.StatusInsufficientStorage {
			return fmt.Errorf("%w: %w", engine.ErrFull, err)
		}
		return err
	}, lost)
}

// Report appends an event that the server itself made, if admission allows it.
func (r *Events) Report(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	if err := r.Admit(ctx, t, e, false); err != nil {
		r.o.Log.Refused(e)
		return err
	}
	_, err := r.Write(ctx, t, []*v1alpha1.ExecutionEvent{e})
	return err
}

// Admit runs admission for an event as a create of executionevents, even if it arrived in another way, so that
// policies on executionevents apply to every path, decisions on approvals among them. Admission may change the event. The chain lacks
// NamespaceLifecycle, so the events of tasks that end while their namespace is being deleted are still recorded.
func (r *Events) Admit(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent, dryRun bool) error {
	c, err := r.o.Tasks.Config()
	if err != nil {
		return err
	}
	if c.Admission == nil || !c.Admission.Handles(admission.Create) {
		return nil
	}
	e.Namespace = t.Namespace
	if e.TaskName == "" {
		e.TaskName = t.Name
	}
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return c.AdmitCreate(ctx, e, v1alpha1.SchemeGroupVersion.WithKind("ExecutionEvent"), v1alpha1.SchemeGroupVersion.WithResource("executionevents"), options)
}
