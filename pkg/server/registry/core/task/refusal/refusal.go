// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal has the API errors for requests that the state of a task refuses.
package refusal

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Ended refuses to change a task that has ended.
func Ended(t *v1alpha1.Task) error {
	return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task has ended: it is "+string(t.Status.Phase)))
}

// Closed refuses to write to a task that has ended.
func Closed(t *v1alpha1.Task) error {
	return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task has ended and its event stream is closed"))
}

// Cancelled refuses what begins work of a task that was cancelled. Its cause tells a worker that it has nothing more to do.
func Cancelled(t *v1alpha1.Task) error {
	e := apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("the task was cancelled and starts nothing more"))
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1alpha1.ReasonCancelRequested, Message: "the task was cancelled"}}
	return e
}

// Deleted says that a task is being deleted, or is gone.
func Deleted(t *v1alpha1.Task) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    410,
		Reason:  metav1.StatusReasonGone,
		Message: fmt.Sprintf("task %q is being deleted", t.Name),
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "tasks", Name: t.Name, UID: t.UID},
	}}
}

// At prepends the position to the message of an API error.
func At(place string, err error) error {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status := s.ErrStatus
		status.Message = place + status.Message
		return &apierrors.StatusError{ErrStatus: status}
	}
	return err
}
