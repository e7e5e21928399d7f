// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// tell writes an Event about a task: one for each attempt or tick of a schedule, and reason, however often the reconcile is
// repeated. It is for people, so a failure to write it is not an error.
func (w *wire) tell(ctx context.Context, n news, at metav1.Time) {
	t := n.task
	id := fnv.New64a()
	_, _ = fmt.Fprint(id, t.UID, "/", t.Status.Attempts, "/", n.reason) // never fails
	if n.once != "" {
		_, _ = fmt.Fprint(id, "/", n.once)
	}
	if tick := t.Status.LastScheduleTime; tick != nil {
		_, _ = fmt.Fprint(id, "/", tick.Unix())
	}
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: fmt.Sprintf("%s.%010x", t.Name, id.Sum64()>>24)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Task", Namespace: t.Namespace, Name: t.Name, UID: t.UID,
		},
		Reason: n.reason, Message: n.message, Type: n.typ, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "platform-controller"}, ReportingController: v1alpha1.LabelPrefix + "task-controller",
	}
	if err := w.Create(ctx, e); err != nil && !apierrors.IsAlreadyExists(err) {
		klog.FromContext(ctx).Info("Event was not written", "task", klog.KObj(t), "reason", n.reason, "cause", err.Error())
	}
}
