// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/usage"
)

// fieldTaskUID is the selector for which not all of the namespace is read.
const fieldTaskUID = "spec.taskUID"

type measurement = *v1alpha1.UsageMeasurement

func measurementFields() []resource.Field[measurement] {
	return []resource.Field[measurement]{
		{Path: fieldTaskUID, Value: func(m measurement) string { return string(m.Spec.TaskUID) }},
		{Path: "spec.taskName", Value: func(m measurement) string { return m.Spec.TaskName }},
		{Path: "taskName", Value: func(m measurement) string { return m.Spec.TaskName }}, // as in all kinds
		{Path: "spec.sessionName", Value: func(m measurement) string { return m.Spec.SessionName }},
		{Path: "spec.provider", Value: func(m measurement) string { return m.Spec.Provider }},
		{Path: "spec.model", Value: func(m measurement) string { return m.Spec.Model }},
		{Path: "spec.user", Value: func(m measurement) string { return m.Spec.User }},
		{Path: "status.state", Value: func(m measurement) string { return m.Status.State }},
	}
}

func measurementColumns() []resource.Column[measurement] {
	return []resource.Column[measurement]{
		{Name: "Task", Description: "The task; empty for chats and the vendors' APIs.", Value: func(m measurement) any { return m.Spec.TaskName }},
		{Name: "Session", Description: "The session.", Value: func(m measurement) any { return m.Spec.SessionName }},
		{Name: "Model", Description: "The model that was asked.", Value: func(m measurement) any { return m.Spec.Model }},
		{Name: "State", Description: "How far the request has come.", Value: func(m measurement) any { return m.Status.State }},
		{Name: "Input", Description: "All input, in tokens.", Value: func(m measurement) any { return count(m, m.Status.InputTokens) }},
		{Name: "Output", Description: "All output, in tokens.", Value: func(m measurement) any { return count(m, m.Status.OutputTokens) }},
		{Name: "Gap", Description: "What is missing.", Value: func(m measurement) any { return m.Status.Gap }},
		{Name: "Cached", Wide: true, Description: "The part of the input that a cache supplied.", Value: func(m measurement) any { return count(m, m.Status.CachedInputTokens) }},
		{Name: "Written", Wide: true, Description: "The part of the input that a cache took.", Value: func(m measurement) any { return count(m, m.Status.CacheWriteInputTokens) }},
		{Name: "Provider", Wide: true, Description: "The Provider.", Value: func(m measurement) any { return m.Spec.Provider }},
		{Name: "Attempt", Wide: true, Description: "The attempt of the task, or the request of the caller.", Value: func(m measurement) any { return m.Spec.AttemptID }},
		{Name: "User", Wide: true, Description: "Who called a chat or a vendor's API.", Value: func(m measurement) any { return m.Spec.User }},
	}
}

// count shows a count; it is empty while the request may still end.
func count(m measurement, n *int64) string {
	switch {
	case n != nil:
		return strconv.FormatInt(*n, 10)
	case m.Status.State == string(usage.StatusStarted) && m.Status.Gap == "":
		return ""
	}
	return "Unavailable"
}
