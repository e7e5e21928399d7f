// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// RepositoryMonitor looks after the pull requests and the issues of one repository on a code host. By its schedule, and when the code host
// says that something has changed, it looks at what is open and has agents do what its spec asks for: review, repair, merge, and lead issues
// from a triage to a pull request. What it finds is in MonitorItems, what is to be done in MonitorWorkActions, and what it writes on the
// code host in MonitorMutations.
type RepositoryMonitor struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec RepositoryMonitorSpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status RepositoryMonitorStatus `json:"status,omitempty"`
}

// RESTPath returns where REST clients read and write repository monitors.
func (*RepositoryMonitor) RESTPath() (path string, written bool) {
	return "monitors/repositories", true
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RepositoryMonitorList is a list of repository monitors.
type RepositoryMonitorList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the repository monitors.
	Items []RepositoryMonitor `json:"items"`
}

// CodeHostProvider is a kind of code host.
// +enum
// +k8s:enum
type CodeHostProvider string

// Kinds of code hosts.
const (
	CodeHostGitHub CodeHostProvider = "github"
	CodeHostGitea  CodeHostProvider = "gitea"
)

// RepositoryMonitorSpec is what a monitor looks after, and what it does.
type RepositoryMonitorSpec struct {
	// provider is the kind of code host: github, for github.com and GitHub Enterprise, or gitea.
	// +optional
	// +k8s:optional
	// +default="github"
	Provider CodeHostProvider `json:"provider,omitempty"`
	// repoURL is the address of the repository, https://HOST/OWNER/NAME, without credentials, query and fragment. It cannot be changed.
	// +required
	// +k8s:required
	// +k8s:maxLength=2048
	RepoURL string `json:"repoURL"`
	// branch is the branch that pull requests go to. Others are left alone. Empty means that all are looked after, and that implementations
	// go to the default branch.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=255
	Branch string `json:"branch,omitempty"`
	// schedule is when the repository is looked at as a whole: five fields of cron, or a descriptor such as "@hourly".
	// +optional
	// +k8s:optional
	// +default="*/10 * * * *"
	// +k8s:maxLength=128
	Schedule string `json:"schedule,omitempty"`
	// timeZone is the IANA name of the time zone of schedule.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// suspend stops the monitor: nothing new is begun.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// readCredentialRef is the credential that the repository is read with. A public repository needs none.
	// +optional
	// +k8s:optional
	ReadCredentialRef *WorkspaceCredentialReference `json:"readCredentialRef,omitempty"`
	// forgeCredentialRef is the credential for what is written about pull requests and issues: reviews, comments, labels, merges.
	// +optional
	// +k8s:optional
	ForgeCredentialRef *WorkspaceCredentialReference `json:"forgeCredentialRef,omitempty"`
	// publicationReadCredentialRef is the credential for looking at branches before and after they are published.
	// +optional
	// +k8s:optional
	PublicationReadCredentialRef *WorkspaceCredentialReference `json:"publicationReadCredentialRef,omitempty"`
	// publicationCredentialRef is the credential that repairs and implementations are pushed with.
	// +optional
	// +k8s:optional
	PublicationCredentialRef *WorkspaceCredentialReference `json:"publicationCredentialRef,omitempty"`
	// targets are what the monitor looks after.
	// +optional
	Targets MonitorTargets `json:"targets,omitempty"`
	// triggers are what people can set on the code host to have something done.
	// +optional
	Triggers MonitorTriggers `json:"triggers,omitempty"`
	// agents are who does the work.
	// +optional
	Agents MonitorAgents `json:"agents,omitempty"`
	// issueWorkflow is what is done about issues.
	// +optional
	IssueWorkflow MonitorIssueWorkflow `json:"issueWorkflow,omitempty"`
	// review is how pull requests are reviewed.
	// +optional
	Review MonitorReview `json:"review,omitempty"`
	// repair is what is done about pull requests that need changes.
	// +optional
	Repair MonitorRepair `json:"repair,omitempty"`
	// automerge is when pull requests are merged.
	// +optional
	Automerge MonitorAutomerge `json:"automerge,omitempty"`
	// policy is what labels forbid and permit.
	// +optional
	Policy MonitorPolicy `json:"policy,omitempty"`
	// validation is how changes are checked by commands of the repository.
	// +optional
	Validation MonitorValidation `json:"validation,omitempty"`
}

// MonitorTargets are what a monitor looks after. At least one of them is enabled.
type MonitorTargets struct {
	// pullRequests are the open pull requests.
	// +optional
	PullRequests MonitorPullRequests `json:"pullRequests,omitempty"`
	// issues are the open issues.
	// +optional
	Issues MonitorIssues `json:"issues,omitempty"`
	// commits are refused: no monitor looks after commits.
	// +optional
	// +k8s:optional
	Commits *MonitorCommits `json:"commits,omitempty"`
}

// MonitorPullRequests are which pull requests are looked after.
type MonitorPullRequests struct {
	// enabled says whether pull requests are looked after.
	// +optional
	// +k8s:optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"`
	// includeDrafts also looks after drafts.
	// +optional
	IncludeDrafts bool `json:"includeDrafts,omitempty"`
	// maxPerRun is how many pull requests one run begins work on; the rest follows in later runs.
	// +optional
	// +k8s:optional
	// +default=20
	// +k8s:minimum=1
	// +k8s:maximum=100
	MaxPerRun *int32 `json:"maxPerRun,omitempty"`
}

// MonitorIssues are which issues are looked after.
type MonitorIssues struct {
	// enabled says whether issues are looked after.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// maxPerRun is how many issues one run begins work on; the rest follows in later runs.
	// +optional
	// +k8s:optional
	// +default=20
	// +k8s:minimum=1
	// +k8s:maximum=100
	MaxPerRun *int32 `json:"maxPerRun,omitempty"`
	// includeLabels are labels of which an issue must have one, if there are any. An issue with a command is looked after in any case.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=128
	// +listType=atomic
	IncludeLabels []string `json:"includeLabels,omitempty"`
	// excludeLabels are labels of which an issue must have none.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=128
	// +listType=atomic
	ExcludeLabels []string `json:"excludeLabels,omitempty"`
}

// MonitorCommits is a target that is refused.
type MonitorCommits struct {
	// enabled must not be set.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// MonitorTriggers are what people can set on the code host to have something done.
type MonitorTriggers struct {
	// github are triggers of the code host, whichever its kind is.
	// +optional
	GitHub MonitorHostTriggers `json:"github,omitempty"`
}

// MonitorHostTriggers are what people can set on the code host to have something done.
type MonitorHostTriggers struct {
	// labels are labels that are commands.
	// +optional
	Labels MonitorLabelTriggers `json:"labels,omitempty"`
}

// MonitorActorPermission is what a person must be allowed to do in the repository.
// +enum
// +k8s:enum
type MonitorActorPermission string

// Permissions of people, the lowest first.
const (
	MonitorActorWrite    MonitorActorPermission = "write"
	MonitorActorMaintain MonitorActorPermission = "maintain"
	MonitorActorAdmin    MonitorActorPermission = "admin"
)

// MonitorLabelTriggers are labels that are commands. A command is obeyed if who set the label may do enough in the repository at that time.
type MonitorLabelTriggers struct {
	// enabled says whether labels are commands. It needs forgeCredentialRef.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// consumeCommandLabels removes a label once it was read, so that it can be set again.
	// +optional
	// +k8s:optional
	// +default=true
	ConsumeCommandLabels *bool `json:"consumeCommandLabels,omitempty"`
	// requireActorPermission is what who set the label must be allowed to do: write, maintain or admin.
	// +optional
	// +k8s:optional
	// +default="write"
	RequireActorPermission MonitorActorPermission `json:"requireActorPermission,omitempty"`
	// issues are the labels of issues. An empty one is platform: with the name of the command, such as platform:implement.
	// +optional
	Issues MonitorIssueLabels `json:"issues,omitempty"`
	// pullRequests are the labels of pull requests. An empty one is platform: with the name of the command, such as platform:review.
	// +optional
	PullRequests MonitorPullRequestLabels `json:"pullRequests,omitempty"`
}

// MonitorIssueLabels are the labels that are commands on issues.
type MonitorIssueLabels struct {
	// triage is the label that has an issue looked at.
	// +optional
	// +k8s:optional
	// +default="platform:triage"
	// +k8s:maxLength=128
	Triage string `json:"triage,omitempty"`
	// research is the label that has an agent find out about an issue.
	// +optional
	// +k8s:optional
	// +default="platform:research"
	// +k8s:maxLength=128
	Research string `json:"research,omitempty"`
	// plan is the label that has an implementation planned.
	// +optional
	// +k8s:optional
	// +default="platform:plan"
	// +k8s:maxLength=128
	Plan string `json:"plan,omitempty"`
	// approvePlan is the label that approves of the plan.
	// +optional
	// +k8s:optional
	// +default="platform:approve-plan"
	// +k8s:maxLength=128
	ApprovePlan string `json:"approvePlan,omitempty"`
	// implement is the label that has an issue implemented.
	// +optional
	// +k8s:optional
	// +default="platform:implement"
	// +k8s:maxLength=128
	Implement string `json:"implement,omitempty"`
	// decompose is the label that has an issue divided into smaller ones.
	// +optional
	// +k8s:optional
	// +default="platform:decompose"
	// +k8s:maxLength=128
	Decompose string `json:"decompose,omitempty"`
	// stop is the label that ends all work on an issue.
	// +optional
	// +k8s:optional
	// +default="platform:stop"
	// +k8s:maxLength=128
	Stop string `json:"stop,omitempty"`
	// resume is the label that permits work again.
	// +optional
	// +k8s:optional
	// +default="platform:resume"
	// +k8s:maxLength=128
	Resume string `json:"resume,omitempty"`
}

// MonitorPullRequestLabels are the labels that are commands on pull requests.
type MonitorPullRequestLabels struct {
	// review is the label that has a pull request reviewed, also one that was reviewed already.
	// +optional
	// +k8s:optional
	// +default="platform:review"
	// +k8s:maxLength=128
	Review string `json:"review,omitempty"`
	// fix is the label that has findings of the review mended.
	// +optional
	// +k8s:optional
	// +default="platform:fix"
	// +k8s:maxLength=128
	Fix string `json:"fix,omitempty"`
	// fixCI is the label that has failed checks mended.
	// +optional
	// +k8s:optional
	// +default="platform:fix-ci"
	// +k8s:maxLength=128
	FixCI string `json:"fixCI,omitempty"`
	// updateBranch is the label that brings the base branch into the pull request.
	// +optional
	// +k8s:optional
	// +default="platform:update-branch"
	// +k8s:maxLength=128
	UpdateBranch string `json:"updateBranch,omitempty"`
	// automerge is the label that has a pull request merged when everything permits it.
	// +optional
	// +k8s:optional
	// +default="platform:automerge"
	// +k8s:maxLength=128
	Automerge string `json:"automerge,omitempty"`
	// stop is the label that ends all work on a pull request.
	// +optional
	// +k8s:optional
	// +default="platform:stop"
	// +k8s:maxLength=128
	Stop string `json:"stop,omitempty"`
	// resume is the label that permits work again.
	// +optional
	// +k8s:optional
	// +default="platform:resume"
	// +k8s:maxLength=128
	Resume string `json:"resume,omitempty"`
}

// MonitorAgents are the Agents, of the same namespace, who do the work of a monitor.
type MonitorAgents struct {
	// reviewer reviews pull requests.
	// +optional
	// +k8s:optional
	Reviewer *LocalReference `json:"reviewer,omitempty"`
	// triager looks at issues for the first time.
	// +optional
	// +k8s:optional
	Triager *LocalReference `json:"triager,omitempty"`
	// researcher finds out about issues.
	// +optional
	// +k8s:optional
	Researcher *LocalReference `json:"researcher,omitempty"`
	// planner plans implementations.
	// +optional
	// +k8s:optional
	Planner *LocalReference `json:"planner,omitempty"`
	// repairer mends pull requests.
	// +optional
	// +k8s:optional
	Repairer *LocalReference `json:"repairer,omitempty"`
	// implementer implements issues. It has a runtime that is built in.
	// +optional
	// +k8s:optional
	Implementer *LocalReference `json:"implementer,omitempty"`
}

// MonitorIssueWorkflow is what is done about issues.
type MonitorIssueWorkflow struct {
	// triage is the first look at an issue.
	// +optional
	Triage MonitorStage `json:"triage,omitempty"`
	// research is finding out about it.
	// +optional
	Research MonitorStage `json:"research,omitempty"`
	// planning is the plan of an implementation.
	// +optional
	Planning MonitorPlanning `json:"planning,omitempty"`
	// implementation is the work itself.
	// +optional
	Implementation MonitorImplementation `json:"implementation,omitempty"`
}

// MonitorStage is a stage of the work on issues.
type MonitorStage struct {
	// enabled has each issue go through the stage. Without it, a command does.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// MonitorPlanning is the planning of implementations.
type MonitorPlanning struct {
	// enabled has each issue planned after its triage. Without it, a command does.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// requireHumanApprovalFor are the risks, as the planner rates them, whose plans a person approves of before they are implemented: low,
	// medium, high. Empty means all.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=3
	// +listType=atomic
	RequireHumanApprovalFor []MonitorRisk `json:"requireHumanApprovalFor,omitempty"`
}

// MonitorRisk is how much an implementation may break.
// +enum
// +k8s:enum
type MonitorRisk string

// Risks.
const (
	MonitorRiskLow    MonitorRisk = "low"
	MonitorRiskMedium MonitorRisk = "medium"
	MonitorRiskHigh   MonitorRisk = "high"
)

// MonitorImplementation is how issues are implemented.
type MonitorImplementation struct {
	// enabled permits implementations, by a command or after an approved plan.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// requireApprovedPlan refuses an implementation without a plan that a person has approved of.
	// +optional
	RequireApprovedPlan bool `json:"requireApprovedPlan,omitempty"`
	// branchPrefix begins the names of branches; the number of the issue follows.
	// +optional
	// +k8s:optional
	// +default="platform/issue"
	// +k8s:maxLength=128
	BranchPrefix string `json:"branchPrefix,omitempty"`
	// maxActive is how many implementations of the monitor run at a time.
	// +optional
	// +k8s:optional
	// +default=2
	// +k8s:minimum=1
	// +k8s:maximum=100
	MaxActive *int32 `json:"maxActive,omitempty"`
	// maxAttemptsPerIssue is how often an issue is tried.
	// +optional
	// +k8s:optional
	// +default=2
	// +k8s:minimum=1
	// +k8s:maximum=20
	MaxAttemptsPerIssue *int32 `json:"maxAttemptsPerIssue,omitempty"`
	// maxChangedFiles is the most files that an implementation may change.
	// +optional
	// +k8s:optional
	// +default=12
	// +k8s:minimum=1
	MaxChangedFiles *int32 `json:"maxChangedFiles,omitempty"`
	// allowedPaths are the paths that an implementation may change; empty means all.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=atomic
	AllowedPaths []string `json:"allowedPaths,omitempty"`
}

// MonitorPhase is where a monitor is.
// +enum
// +k8s:enum
type MonitorPhase string

// Phases of monitors.
const (
	MonitorPending   MonitorPhase = "Pending"
	MonitorReady     MonitorPhase = "Ready"
	MonitorSuspended MonitorPhase = "Suspended"
	MonitorError     MonitorPhase = "Error"
)

// RepositoryMonitorStatus is what is observed of a monitor.
type RepositoryMonitorStatus struct {
	// phase is Pending, Ready, Suspended or Error.
	// +optional
	// +k8s:optional
	Phase MonitorPhase `json:"phase,omitempty"`
	// lastRunID is the newest run.
	// +optional
	LastRunID string `json:"lastRunID,omitempty"`
	// lastRunTime is when it was begun.
	// +optional
	LastRunTime *metav1.Time `json:"lastRunTime,omitempty"`
	// lastSuccessfulRunTime is when the newest run that succeeded was begun.
	// +optional
	LastSuccessfulRunTime *metav1.Time `json:"lastSuccessfulRunTime,omitempty"`
	// lastScheduledTime is the time of the schedule for which a run was made last.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`
	// lastEvidenceTime is when the pull requests of usage were last looked at.
	// +optional
	LastEvidenceTime *metav1.Time `json:"lastEvidenceTime,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// openPullRequests is how many pull requests are looked after.
	// +optional
	OpenPullRequests int32 `json:"openPullRequests,omitempty"`
	// pendingReviews is how many of them are being reviewed or wait for it.
	// +optional
	PendingReviews int32 `json:"pendingReviews,omitempty"`
	// activeRepairs is how many of them are being repaired.
	// +optional
	ActiveRepairs int32 `json:"activeRepairs,omitempty"`
	// blockedItems is how many pull requests something keeps from going on.
	// +optional
	BlockedItems int32 `json:"blockedItems,omitempty"`
	// mergeReadyItems is how many pull requests everything permits to merge.
	// +optional
	MergeReadyItems int32 `json:"mergeReadyItems,omitempty"`
	// openIssues is how many issues are looked after.
	// +optional
	OpenIssues int32 `json:"openIssues,omitempty"`
	// pendingIssueActions is how much work on issues is open.
	// +optional
	PendingIssueActions int32 `json:"pendingIssueActions,omitempty"`
	// blockedIssues is how many issues something keeps from going on.
	// +optional
	BlockedIssues int32 `json:"blockedIssues,omitempty"`
	// conditions are the conditions of the object: Ready.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
