// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.RepositoryMonitor] {
	return []resource.Column[*v1alpha1.RepositoryMonitor]{
		{Name: "Phase", Description: "Where the monitor is.", Value: func(m *v1alpha1.RepositoryMonitor) any { return string(m.Status.Phase) }},
		{Name: "Repository", Description: "The repository.", Value: func(m *v1alpha1.RepositoryMonitor) any { return m.Spec.RepoURL }},
		{Name: "Pulls", Type: "integer", Description: "Pull requests that are looked after.", Value: func(m *v1alpha1.RepositoryMonitor) any { return int64(m.Status.OpenPullRequests) }},
		{Name: "Reviews", Type: "integer", Description: "Of these, how many wait for their review.", Value: func(m *v1alpha1.RepositoryMonitor) any { return int64(m.Status.PendingReviews) }},
		{Name: "Issues", Type: "integer", Description: "Issues that are looked after.", Value: func(m *v1alpha1.RepositoryMonitor) any { return int64(m.Status.OpenIssues) }},
		{Name: "Blocked", Type: "integer", Description: "Pull requests and issues that something keeps from going on.", Value: func(m *v1alpha1.RepositoryMonitor) any {
			return int64(m.Status.BlockedItems) + int64(m.Status.BlockedIssues)
		}},
		{Name: "Last Run", Description: "When the repository was looked at.", Value: func(m *v1alpha1.RepositoryMonitor) any { return m.Status.LastRunTime }},
	}
}
