// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// resultAPI reads what workers submitted.
type resultAPI struct{ *wire }

// result returns what the worker submitted, if anything.
func (w resultAPI) result(ctx context.Context, t *v1alpha1.Task) (text string, ok bool, err error) {
	var r v1alpha1.TaskResult
	err = w.SubResource("result").Get(ctx, t, &r)
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("result: %w", err)
	}
	return r.Result, true, nil
}
