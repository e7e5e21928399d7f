// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/visible"
)

func columns(c clock.PassiveClock) []resource.Column[*v1alpha1.Approval] {
	return []resource.Column[*v1alpha1.Approval]{
		{Name: "Task", Description: "The task that waits.", Value: func(a *v1alpha1.Approval) any { return a.Spec.TaskName }},
		{Name: "Tool", Description: "The tool that waits to be called.", Value: func(a *v1alpha1.Approval) any { return a.Spec.TargetTool }},
		{Name: "Arguments", Description: "The arguments that it would be called with: as JSON, without secrets, cut to fit.", Value: func(a *v1alpha1.Approval) any { return brief(approval.Arguments(&a.Spec)) }},
		{Name: "Action", Description: "What is to be done, in words.", Value: func(a *v1alpha1.Approval) any { return brief(visible.Exact(a.Spec.Action)) }},
		{Name: "State", Description: "Where the approval is.", Value: func(a *v1alpha1.Approval) any { return string(a.Status.State) }},
		{Name: "Requested By", Description: "Who created the task.", Value: func(a *v1alpha1.Approval) any { return a.Spec.RequestedBy }},
		{Name: "Expires", Description: "How long a decision is still in time.", Value: func(a *v1alpha1.Approval) any { return expires(a, c) }},
		{Name: "Outcome", Wide: true, Description: "How the approved action went.", Value: func(a *v1alpha1.Approval) any { return string(a.Status.ExecutionOutcome) }},
		{Name: "Actor", Wide: true, Description: "Who decided.", Value: func(a *v1alpha1.Approval) any { return a.Status.DecisionActor }},
		{Name: "Reason", Wide: true, Description: "Why it was decided so.", Value: func(a *v1alpha1.Approval) any { return brief(visible.Exact(a.Status.DecisionReason)) }},
		{Name: "Digest", Wide: true, Description: "The digest of the exact arguments.", Value: func(a *v1alpha1.Approval) any { return a.Spec.TargetArgsDigest }},
	}
}

// expires returns the time that remains for a decision, as text.
func expires(a *v1alpha1.Approval, c clock.PassiveClock) string {
	left, ok := approval.Left(a, c.Now())
	switch {
	case a.Status.State != v1alpha1.ApprovalPending:
		return ""
	case !ok:
		return "never"
	case left <= 0:
		return "now"
	}
	return duration.HumanDuration(left)
}

// maxBrief is the maximum length of a text in a table, in characters.
const maxBrief = 60

// brief shortens a text that would make a row too long.
func brief(s string) string {
	if utf8.RuneCountInString(s) <= maxBrief {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == maxBrief {
			return fmt.Sprintf("%s… (%d more characters)", s[:i], utf8.RuneCountInString(s)-maxBrief+1)
		}
	}
	return s
}
