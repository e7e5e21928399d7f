// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// TestLimitsAreNoPermission: the model reads that a number was reached, and not that it may not do what it asked for.
func TestLimitsAreNoPermission(t *testing.T) {
	tree := apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t-child", errors.New(`the tree of task "t" has 5 delegated tasks, and agent "a" allows 5`))
	tree.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1alpha1.ReasonTreeLimitReached}}
	for want, err := range map[tool.ErrorType]error{
		tool.TypeLimitReached:     tree,
		tool.TypePermissionDenied: apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t-child", errors.New(`agent "b" is not among those that agent "a" may delegate to`)),
	} {
		got, ok := errors.AsType[*tool.Error](Explain(t.Context(), err))
		if !ok || got.Type != want || strings.Contains(got.Message, "forbidden") {
			t.Errorf("%s: %+v", want, got)
		}
	}
	quota := apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t-child", errors.New("exceeded quota: few, requested: count/tasks=1, used: count/tasks=2, limited: count/tasks=2"))
	if got, ok := errors.AsType[*tool.Error](Explain(t.Context(), quota)); !ok || got.Type != tool.TypeLimitReached || got.Suggestion == "" {
		t.Errorf("a quota: %+v", got)
	}
}
