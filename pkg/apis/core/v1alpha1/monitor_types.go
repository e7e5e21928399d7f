// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MonitorTargetKind is what a monitor looks after.
// +enum
// +k8s:enum
type MonitorTargetKind string

// Values of MonitorTargetKind.
const (
	MonitorPullRequest MonitorTargetKind = "pull_request"
	MonitorIssue       MonitorTargetKind = "issue"
)

// MonitorIntent is what can be asked for: of an issue triage, research, plan, approve_plan, implement, decompose, stop and resume, of a
// pull request review, fix, fix_ci, update_branch, automerge, stop and resume.
// +enum
// +k8s:enum
type MonitorIntent string

// Values of MonitorIntent.
const (
	MonitorTriage          MonitorIntent = "triage"
	MonitorResearch        MonitorIntent = "research"
	MonitorPlan            MonitorIntent = "plan"
	MonitorApprovePlan     MonitorIntent = "approve_plan"
	MonitorImplement       MonitorIntent = "implement"
	MonitorDecompose       MonitorIntent = "decompose"
	MonitorStop            MonitorIntent = "stop"
	MonitorResume          MonitorIntent = "resume"
	MonitorReviewIntent    MonitorIntent = "review"
	MonitorFix             MonitorIntent = "fix"
	MonitorFixCI           MonitorIntent = "fix_ci"
	MonitorUpdateBranch    MonitorIntent = "update_branch"
	MonitorAutomergeIntent MonitorIntent = "automerge"
)
