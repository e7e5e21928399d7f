// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package asking

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
)

// warned returns the risk of a call, as people who decide read it, with a warning if the same call may have been carried out before.
func (a *Approvals) warned(ctx context.Context, name, digest, risk string, here bool) (string, error) {
	if !here && (a.Attempt > 1 || a.asked > 0) {
		list, err := a.API.CoreV1alpha1().Approvals(a.Task.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.taskName=" + a.Task.Name})
		if err != nil {
			return "", fmt.Errorf("approvals: %w", err)
		}
		here = slices.ContainsFunc(list.Items, func(p v1alpha1.Approval) bool {
			return p.Spec.TargetTool == name && p.Spec.TargetArgsDigest == digest && p.Status.ExecutionOutcome == v1alpha1.ApprovalUnknown
		})
	}
	if !here {
		return risk, nil
	}
	return cutText(repeated + risk), nil
}

// repeated warns people of a call that may be carried out twice.
const repeated = "The same call was made before, and whether it was carried out is unknown: it may happen twice. "

// cutText shortens a text to what an approval can have.
func cutText(s string) string {
	if utf8.RuneCountInString(s) <= approval.MaxTextChars {
		return s
	}
	return string([]rune(s)[:approval.MaxTextChars-1]) + "…"
}
