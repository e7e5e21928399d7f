// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtools

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// updatePlan stores the plan of the run's task. It waits while the server is away.
func (r run) updatePlan(ctx context.Context, p *v1alpha1.TaskPlan) error {
	p.Summary, p.PlanDocument = r.Scrub(p.Summary), r.Scrub(p.PlanDocument)
	err := client.Repeat(ctx, r.Clock, func(ctx context.Context) error {
		_, err := r.API.CoreV1alpha1().Tasks(r.Task.Namespace).UpdatePlan(ctx, r.Task.Name, p, metav1.CreateOptions{})
		return err
	})
	return forModel(ctx, err)
}

// forModel turns an error of the API into one that the model reads.
func forModel(ctx context.Context, err error) error {
	status := apierrors.APIStatus(nil)
	ok := errors.As(err, &status)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return tool.Errorf(tool.TypeCancelled, "the run was stopped")
	case !ok:
		return tool.Errorf(tool.TypeUnavailable, "the server of the platform cannot be reached")
	case apierrors.IsForbidden(err):
		return tool.Errorf(tool.TypePermissionDenied, "%s", status.Status().Message)
	case apierrors.IsNotFound(err):
		return tool.Errorf(tool.TypeNotFound, "%s", status.Status().Message)
	case apierrors.IsAlreadyExists(err):
		return tool.Errorf(tool.TypeAlreadyExists, "%s", status.Status().Message)
	default:
		return tool.InvalidArguments("%s", status.Status().Message)
	}
}
