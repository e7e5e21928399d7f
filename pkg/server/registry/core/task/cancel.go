// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxReason is the maximum length of the reason of a cancellation, in
// characters.
const maxReason = 1024

// cancel asks the controller to stop the task. A repeated request changes nothing.
func (r *Resource) cancel(ctx context.Context, p resource.Parent[*v1alpha1.Task], obj runtime.Object) (runtime.Object, error) {
	c, ok := obj.(*v1alpha1.TaskCancellation)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskCancellation, not %T", obj))
	}
	if utf8.RuneCountInString(c.Reason) > maxReason {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reason: must be at most %d characters", maxReason))
	}
	clean, _ := redact.Text(c.Reason)
	message := strings.TrimSpace(clean)
	if message == "" {
		message = "cancellation was requested"
	}
	request := func(t *v1alpha1.Task) error {
		if t.Status.Phase.Terminal() {
			return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task has ended: it is "+string(t.Status.Phase)))
		}
		if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested) {
			return nil
		}
		meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
			Type:               v1alpha1.ConditionCancelRequested,
			Status:             metav1.ConditionTrue,
			Reason:             v1alpha1.ReasonCancelRequested,
			Message:            message,
			ObservedGeneration: t.Generation,
			LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
		return nil
	}
	if p.DryRun {
		t := p.Object.DeepCopy()
		return t, request(t)
	}
	return p.Update(ctx, request)
}
