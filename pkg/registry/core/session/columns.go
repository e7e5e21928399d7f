// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Session] {
	return []resource.Column[*v1alpha1.Session]{
		{Name: "Type", Description: "What the session belongs to.", Value: func(s *v1alpha1.Session) any { return string(s.Spec.SessionType) }},
		{Name: "Messages", Type: "integer", Description: "The number of messages.", Value: func(s *v1alpha1.Session) any { return int64(s.Status.MessageCount) }},
		{Name: "Active Task", Description: "The task that holds the session.", Value: func(s *v1alpha1.Session) any { return s.Status.ActiveTask }},
		{Name: "Input Tokens", Wide: true, Description: "The sum of reported input tokens.", Value: func(s *v1alpha1.Session) any { return tokens(s.Status.InputTokens) }},
		{Name: "Output Tokens", Wide: true, Description: "The sum of reported output tokens.", Value: func(s *v1alpha1.Session) any { return tokens(s.Status.OutputTokens) }},
		{Name: "Updated", Wide: true, Description: "The time since the last change.", Value: func(s *v1alpha1.Session) any { return s.Status.UpdatedAt }},
	}
}

// tokens shows what is not known as such, never as zero.
func tokens(n *int64) any {
	if n == nil {
		return "unavailable"
	}
	return *n
}
