// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// CheckTask refuses a task that the transaction of its creator does not allow. A delegated task, whose parent is given,
// is in the transaction of its parent.
func (s *Service) CheckTask(ctx context.Context, t, parent *v1alpha1.Task) error {
	if s == nil || s.mode == ModeOff || s.mode == "" {
		return nil
	}
	var transaction *v1alpha1.TaskTransaction
	if parent != nil {
		transaction = parent.Spec.Transaction
	} else if u, ok := request.UserFrom(ctx); ok {
		if i := From(u); i != nil {
			transaction = i.Transaction
		}
	}
	c, err := constraintsOf(transaction)
	if err != nil {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, err)
	}
	if parent != nil {
		c.Task = nil // names those that a caller may address
	}
	if reason := s.deny(ctx, c.task(t)); reason != "" {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New(reason))
	}
	return nil
}
