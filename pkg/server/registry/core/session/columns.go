// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Session] {
	return []resource.Column[*v1alpha1.Session]{
		{Name: "Type", Description: "What the session belongs to.", Value: func(s *v1alpha1.Session) any { return string(s.Spec.SessionType) }},
		{Name: "Active Task", Description: "The task that holds the session.", Value: func(s *v1alpha1.Session) any { return s.Status.ActiveTask }},
		{Name: "Waiting", Type: "integer", Description: "The number of tasks that wait for their turn.", Value: func(s *v1alpha1.Session) any { return int64(s.Status.WaitingCount) }},
		{Name: "Messages", Type: "integer", Description: "The number of messages.", Value: func(s *v1alpha1.Session) any { return int64(s.Status.MessageCount) }},
		{Name: "Tokens", Description: "Input and output tokens of its tasks, as reported by the providers.", Value: func(s *v1alpha1.Session) any { return tokens(s.Status.InputTokens, s.Status.OutputTokens) }},
		{Name: "Updated", Description: "The time since the last change.", Value: func(s *v1alpha1.Session) any { return s.Status.UpdatedAt }},
	}
}

// tokens shows unknown numbers as unknown, never as zero.
func tokens(input, output *int64) string {
	if input == nil && output == nil {
		return "unavailable"
	}
	return fmt.Sprintf("%s/%s", count(input), count(output))
}

func count(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}
