// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// MonitorItem is a pull request or an issue that a monitor looks after: what it is now, and what the monitor has found and done. It is
// named MONITOR.pr-NUMBER or MONITOR.issue-NUMBER.
type MonitorItem struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is which pull request or issue it is. It never changes.
	// +required
	Spec MonitorItemSpec `json:"spec"`
	// status is what is known of it.
	// +optional
	Status MonitorItemStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MonitorItemList is a list of items of monitors.
type MonitorItemList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the items of monitors.
	Items []MonitorItem `json:"items"`
}

// MonitorItemSpec is which pull request or issue an item is.
type MonitorItemSpec struct {
	// monitorName is the monitor.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	MonitorName string `json:"monitorName"`
	// monitorUID is the identity of the monitor.
	// +required
	// +k8s:required
	MonitorUID types.UID `json:"monitorUID"`
	// targetKind is pull_request or issue.
	// +required
	// +k8s:required
	TargetKind MonitorTargetKind `json:"targetKind"`
	// number is the number of the pull request or issue.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	Number int64 `json:"number"`
}

// MonitorItemState is the state of a pull request or issue at the code host.
// +enum
// +k8s:enum
type MonitorItemState string

// Values of MonitorItemState.
const (
	MonitorItemOpen   MonitorItemState = "open"
	MonitorItemClosed MonitorItemState = "closed"
	MonitorItemMerged MonitorItemState = "merged"
)

// MonitorItemStatus is what is known of a pull request or issue. Titles, names and labels were written by anybody.
type MonitorItemStatus struct {
	// state is open, closed or merged.
	// +optional
	// +k8s:optional
	State MonitorItemState `json:"state,omitempty"`
	// title is its title.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Title string `json:"title,omitempty"`
	// url is its page for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	URL string `json:"url,omitempty"`
	// author is the login of who made it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Author string `json:"author,omitempty"`
	// labels are its labels.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=100
	// +listType=atomic
	Labels []string `json:"labels,omitempty"`
	// draft is set while it is not to be reviewed yet.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// headSHA is the head of the pull request.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// headBranch is the branch that it comes from.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	HeadBranch string `json:"headBranch,omitempty"`
	// headRepository is the repository of that branch, OWNER/NAME; another one for a fork.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	HeadRepository string `json:"headRepository,omitempty"`
	// baseBranch is the branch that it goes to.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	BaseBranch string `json:"baseBranch,omitempty"`
	// checks is what the checks of the head said: passed, failed, pending, no_checks, unknown.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	Checks string `json:"checks,omitempty"`
	// observedAt is when the code host said so. As long as nothing changes, it is written again once an hour.
	// +optional
	// +k8s:optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
	// stopped is set by the command stop, until the command resume.
	// +optional
	Stopped bool `json:"stopped,omitempty"`
	// blockedReason is what keeps it from going on, in one word; empty if nothing does.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	BlockedReason string `json:"blockedReason,omitempty"`
	// message says so for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// review is its newest review.
	// +optional
	// +k8s:optional
	Review *MonitorItemReview `json:"review,omitempty"`
	// repair is its newest repair.
	// +optional
	// +k8s:optional
	Repair *MonitorItemRepair `json:"repair,omitempty"`
	// automerge is whether it is to be merged, and was.
	// +optional
	// +k8s:optional
	Automerge *MonitorItemAutomerge `json:"automerge,omitempty"`
	// issue is where the work on an issue is.
	// +optional
	// +k8s:optional
	Issue *MonitorItemIssue `json:"issue,omitempty"`
}

// MonitorVerdict is what a review came to.
// +enum
// +k8s:enum
type MonitorVerdict string

// Values of MonitorVerdict.
const (
	MonitorVerdictPassed            MonitorVerdict = "passed"
	MonitorVerdictNeedsChanges      MonitorVerdict = "needs_changes"
	MonitorVerdictNeedsHuman        MonitorVerdict = "needs_human"
	MonitorVerdictSecuritySensitive MonitorVerdict = "security_sensitive"
	// MonitorVerdictFailed means that the reviewer gave no answer that can be read.
	MonitorVerdictFailed MonitorVerdict = "failed"
	// MonitorVerdictStale means that the head moved during the review.
	MonitorVerdictStale MonitorVerdict = "stale"
	// MonitorVerdictSkipped means that there was no review, for example because somebody else had reviewed the head with the marker of this platform.
	MonitorVerdictSkipped MonitorVerdict = "skipped"
)

// MonitorPublishPhase is how far something that is written on the code host is.
// +enum
// +k8s:enum
type MonitorPublishPhase string

// Values of MonitorPublishPhase.
const (
	MonitorPublishStarted   MonitorPublishPhase = "started"
	MonitorPublishSucceeded MonitorPublishPhase = "succeeded"
	MonitorPublishSkipped   MonitorPublishPhase = "skipped"
	MonitorPublishFailed    MonitorPublishPhase = "failed"
)

// MonitorItemReview is a review of a head.
type MonitorItemReview struct {
	// headSHA is the commit that was reviewed.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// taskName is the task of the reviewer.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	TaskName string `json:"taskName,omitempty"`
	// verdict is what it came to; empty while it goes on.
	// +optional
	// +k8s:optional
	Verdict MonitorVerdict `json:"verdict,omitempty"`
	// summary is the summary of the reviewer.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=4096
	Summary string `json:"summary,omitempty"`
	// findings are the findings.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=50
	// +listType=atomic
	Findings []MonitorFinding `json:"findings,omitempty"`
	// reviewedAt is when it ended.
	// +optional
	// +k8s:optional
	ReviewedAt *metav1.Time `json:"reviewedAt,omitempty"`
	// publishPhase is how far its publication is.
	// +optional
	// +k8s:optional
	PublishPhase MonitorPublishPhase `json:"publishPhase,omitempty"`
	// publishReason says why it was not posted.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	PublishReason string `json:"publishReason,omitempty"`
	// url is the page of the posted review.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	URL string `json:"url,omitempty"`
}

// MonitorFinding is something that a reviewer found.
type MonitorFinding struct {
	// path is the file.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Path string `json:"path,omitempty"`
	// line is the line of the file as it is after the change; 0 for none.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	Line int32 `json:"line,omitempty"`
	// priority is P0 to P3.
	// +optional
	// +k8s:optional
	Priority MonitorPriority `json:"priority,omitempty"`
	// title is what was found, in a line.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Title string `json:"title,omitempty"`
	// body explains it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=4096
	Body string `json:"body,omitempty"`
}

// MonitorRepairPhase is where a repair is.
// +enum
// +k8s:enum
type MonitorRepairPhase string

// Values of MonitorRepairPhase.
const (
	MonitorRepairQueued    MonitorRepairPhase = "queued"
	MonitorRepairSucceeded MonitorRepairPhase = "succeeded"
	MonitorRepairFailed    MonitorRepairPhase = "failed"
)

// MonitorItemRepair is the newest repair of a pull request.
type MonitorItemRepair struct {
	// phase is queued, succeeded or failed.
	// +optional
	// +k8s:optional
	Phase MonitorRepairPhase `json:"phase,omitempty"`
	// headSHA is the head that was repaired.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// taskName is the task of the repairer.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	TaskName string `json:"taskName,omitempty"`
	// attempts is how often the pull request was repaired.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// attemptsOnHead is how often this head was.
	// +optional
	AttemptsOnHead int32 `json:"attemptsOnHead,omitempty"`
	// message says how it ended.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
}

// MonitorAutomergeState is whether a pull request is merged.
// +enum
// +k8s:enum
type MonitorAutomergeState string

// Values of MonitorAutomergeState.
const (
	MonitorMergeReady   MonitorAutomergeState = "merge_ready"
	MonitorMergeStarted MonitorAutomergeState = "started"
	MonitorMergeDone    MonitorAutomergeState = "merged"
	MonitorMergeBlocked MonitorAutomergeState = "blocked"
	MonitorMergeFailed  MonitorAutomergeState = "failed"
)

// MonitorItemAutomerge is whether a pull request is to be merged, and was.
type MonitorItemAutomerge struct {
	// state is merge_ready, started, merged, blocked or failed.
	// +optional
	// +k8s:optional
	State MonitorAutomergeState `json:"state,omitempty"`
	// headSHA is the head that it is about.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// requested is set by the command automerge.
	// +optional
	Requested bool `json:"requested,omitempty"`
	// reason says why it is not merged.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Reason string `json:"reason,omitempty"`
	// mergeSHA is the commit that it was merged as.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	MergeSHA string `json:"mergeSHA,omitempty"`
}

// MonitorIssuePhase is where the work on an issue is.
// +enum
// +k8s:enum
type MonitorIssuePhase string

// Values of MonitorIssuePhase.
const (
	MonitorIssueDiscovered           MonitorIssuePhase = "discovered"
	MonitorIssueTriageQueued         MonitorIssuePhase = "triage_queued"
	MonitorIssueTriaging             MonitorIssuePhase = "triaging"
	MonitorIssueTriaged              MonitorIssuePhase = "triaged"
	MonitorIssueResearchQueued       MonitorIssuePhase = "research_queued"
	MonitorIssueResearching          MonitorIssuePhase = "researching"
	MonitorIssueResearched           MonitorIssuePhase = "researched"
	MonitorIssuePlanQueued           MonitorIssuePhase = "plan_queued"
	MonitorIssuePlanning             MonitorIssuePhase = "planning"
	MonitorIssuePlanReady            MonitorIssuePhase = "plan_ready"
	MonitorIssueApprovalRequired     MonitorIssuePhase = "approval_required"
	MonitorIssueApproved             MonitorIssuePhase = "approved"
	MonitorIssueImplementationQueued MonitorIssuePhase = "implementation_queued"
	MonitorIssueImplementing         MonitorIssuePhase = "implementing"
	MonitorIssuePatchReady           MonitorIssuePhase = "patch_ready"
	MonitorIssueMutationQueued       MonitorIssuePhase = "mutation_queued"
	MonitorIssueMutatingToPR         MonitorIssuePhase = "mutating_to_pr"
	MonitorIssuePROpened             MonitorIssuePhase = "pr_opened"
	MonitorIssueComplete             MonitorIssuePhase = "complete"
	MonitorIssueBlocked              MonitorIssuePhase = "blocked"
)

// MonitorItemIssue is where the work on an issue is.
type MonitorItemIssue struct {
	// phase is where the work is.
	// +optional
	// +k8s:optional
	Phase MonitorIssuePhase `json:"phase,omitempty"`
	// risk is how much an implementation may break, as the planner rates it.
	// +optional
	// +k8s:optional
	Risk MonitorRisk `json:"risk,omitempty"`
	// triage is what the triager said.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=8192
	Triage string `json:"triage,omitempty"`
	// research is what the researcher said.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=16384
	Research string `json:"research,omitempty"`
	// plan is the plan.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32768
	Plan string `json:"plan,omitempty"`
	// planApprovedBy is who approved of the plan.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	PlanApprovedBy string `json:"planApprovedBy,omitempty"`
	// planFor is the SHA-256 of the title and the text that the plan was made for. An issue that changes afterwards needs a new plan.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	PlanFor string `json:"planFor,omitempty"`
	// attempts is how often an implementation was tried.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// taskName is the newest task of the issue.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	TaskName string `json:"taskName,omitempty"`
	// branch is the branch of the implementation.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Branch string `json:"branch,omitempty"`
	// pullRequest is the number of the pull request that was opened.
	// +optional
	PullRequest int64 `json:"pullRequest,omitempty"`
}
