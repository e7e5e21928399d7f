// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageReport reports what the requests of a namespace used of models. It is answered and not stored. Whoever creates
// one needs to list the tasks, the repositorymonitors and the sessions of the namespace.
type UsageReport struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to report on.
	// +optional
	Spec UsageReportSpec `json:"spec,omitempty"`
	// status is the report.
	// +optional
	Status UsageReportStatus `json:"status,omitempty"`
}

// UsageReportMode is which report is wanted.
// +enum
// +k8s:enum
type UsageReportMode string

// Reports.
const (
	UsageSummary UsageReportMode = "summary"
	UsageOfWork  UsageReportMode = "work"
	UsageOther   UsageReportMode = "other"
)

// UsageKind is what a work request began with.
// +enum
// +k8s:enum
type UsageKind string

// Kinds of work requests.
const (
	UsageOfIssue       UsageKind = "issue"
	UsageOfPullRequest UsageKind = "pull_request"
)

// UsageCategory is a category of usage outside work requests.
// +enum
// +k8s:enum
type UsageCategory string

// Categories of other usage.
const (
	// UsageReviewOnly is reviews of pull requests that no request produced.
	UsageReviewOnly UsageCategory = "review_only"
	// UsageOtherRequests is tasks that belong to no work request.
	UsageOtherRequests UsageCategory = "other_requests"
	// UsageUnassociated is usage without a task, such as that of chats and of the vendors' APIs.
	UsageUnassociated UsageCategory = "unassociated"
)

// UsageCompleteness is how much of the usage was reported.
// +enum
// +k8s:enum
type UsageCompleteness string

// Completeness of measurements.
const (
	// UsageComplete is set if every measurement was reported, even if there is none.
	UsageComplete UsageCompleteness = "complete"
	// UsagePartial is set if something was reported and something is missing.
	UsagePartial UsageCompleteness = "partial"
	// UsageUnavailable is set if there are measurements and none was reported.
	UsageUnavailable UsageCompleteness = "unavailable"
)

// UsageBreakdownBy is what a breakdown is by.
// +enum
// +k8s:enum
type UsageBreakdownBy string

// Breakdowns.
const (
	UsageByDay   UsageBreakdownBy = "day"
	UsageByModel UsageBreakdownBy = "model"
	UsageByAgent UsageBreakdownBy = "agent"
)

// UsageModelCost is modelCost of every report. The cost by the prices of Providers is in the field cost.
const UsageModelCost = "Price unavailable in this version"

// UsageReportSpec is what to report on. Times are UTC dates (2026-01-31) or RFC 3339 timestamps.
type UsageReportSpec struct {
	// mode is summary (the default), work for one work request, or other for a category of other usage.
	// +optional
	// +k8s:optional
	Mode UsageReportMode `json:"mode,omitempty"`
	// workID is the work request; mode work needs it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	WorkID string `json:"workID,omitempty"`
	// category is the category; mode other needs it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	Category string `json:"category,omitempty"`
	// teams are the namespaces to report on. The only valid one is the namespace of the report, which is the default.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
	// repository selects requests of a repository: OWNER/REPOSITORY, in any letter case.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Repository string `json:"repository,omitempty"`
	// kind selects requests that began with an issue or with a pull request.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Kind string `json:"kind,omitempty"`
	// model selects requests that used the model, with all their usage, including that of other models.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Model string `json:"model,omitempty"`
	// from selects requests that started then or later. The default is the start of the month of asOf for mode summary,
	// and everything that is retained for the others.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	From string `json:"from,omitempty"`
	// until selects requests that started before. The default is one nanosecond after asOf.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Until string `json:"until,omitempty"`
	// asOf is the time that the report describes: later observations are left out. The default is the present. Later pages
	// and details of a report use the asOf of its first page, and then agree with it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	AsOf string `json:"asOf,omitempty"`
	// limit is the size of a page: 25 by default, at most 100. Mode work returns all tasks by default.
	// +optional
	Limit *int32 `json:"limit,omitempty"`
	// offset is how many items precede the page.
	// +optional
	Offset int32 `json:"offset,omitempty"`
	// by adds a breakdown by day (in UTC, on which a request to a model started), model or agent.
	// +optional
	// +k8s:optional
	By UsageBreakdownBy `json:"by,omitempty"`
}

// UsageReportStatus is a report. Null means that a figure is not known, which is never the same as 0.
type UsageReportStatus struct {
	// selection is what was reported on, with all defaults.
	// +optional
	Selection UsageSelection `json:"selection,omitempty"`
	// retainedSince is the time before which usage is no longer retained; absent if all of it is.
	// +optional
	RetainedSince string `json:"retainedSince,omitempty"`
	// summary is the usage of all work requests that were selected.
	// +optional
	// +k8s:optional
	Summary *UsageSummaryOf `json:"summary,omitempty"`
	// teams are the summaries of namespaces.
	// +optional
	// +listType=atomic
	Teams []UsageTeam `json:"teams,omitempty"`
	// works is a page of the work requests, the newest first.
	// +optional
	// +listType=atomic
	Works []UsageWork `json:"works,omitempty"`
	// otherWork is the usage outside work requests, by category.
	// +optional
	// +listType=atomic
	OtherWork []UsageOtherWork `json:"otherWork,omitempty"`
	// work is the work request of mode work.
	// +optional
	// +k8s:optional
	Work *UsageWork `json:"work,omitempty"`
	// other is the category of mode other.
	// +optional
	// +k8s:optional
	Other *UsageOtherWork `json:"other,omitempty"`
	// breakdown is the usage of everything that was selected, by spec.by: each measurement counts once.
	// +optional
	// +listType=atomic
	Breakdown []UsageBreakdown `json:"breakdown,omitempty"`
	// page is the page of works or of tasks.
	// +optional
	// +k8s:optional
	Page *UsagePage `json:"page,omitempty"`
}

// UsageSelection is what a report is about.
type UsageSelection struct {
	// teams are the namespaces.
	// +listType=atomic
	Teams []string `json:"teams"`
	// repository is OWNER/REPOSITORY; empty for all.
	// +optional
	Repository string `json:"repository,omitempty"`
	// kind is issue or pull_request; empty for both.
	// +optional
	Kind string `json:"kind,omitempty"`
	// model is the model that requests must have used; empty for any.
	// +optional
	Model string `json:"model,omitempty"`
	// from is the start of the period in which requests started.
	From string `json:"from"`
	// until is the end of that period, which is not part of it.
	Until string `json:"until"`
	// asOf is the time of the last observation that may be included.
	AsOf string `json:"asOf"`
}

// UsageTotals is the usage of several measurements. Counts are null where no measurement reported them.
type UsageTotals struct {
	// inputTokens is all input, including what caches supplied or took.
	// +optional
	// +nullable
	InputTokens *int64 `json:"inputTokens"`
	// outputTokens is all output.
	// +optional
	// +nullable
	OutputTokens *int64 `json:"outputTokens"`
	// cachedInputTokens is the part of the input that was read from caches; null unless every measurement reports it.
	// +optional
	// +nullable
	CachedInputTokens *int64 `json:"cachedInputTokens"`
	// cacheWriteInputTokens is the part of the input that was written to caches; null unless every measurement reports it.
	// +optional
	// +nullable
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens"`
	// totalTokens is input and output.
	// +optional
	// +nullable
	TotalTokens *int64 `json:"totalTokens"`
	// estimatedTokens is the part of totalTokens that was estimated.
	EstimatedTokens int64 `json:"estimatedTokens"`
	// cachedUsageReported is set if every measurement reports cachedInputTokens.
	CachedUsageReported bool `json:"cachedUsageReported"`
	// cacheWriteUsageReported is set if every measurement reports cacheWriteInputTokens.
	CacheWriteUsageReported bool `json:"cacheWriteUsageReported"`
	// measurements is how many measurements there are.
	Measurements int64 `json:"measurements"`
	// reportedMeasurements is how many of them reported both input and output.
	ReportedMeasurements int64 `json:"reportedMeasurements"`
	// missingMeasurements is how many of them reported nothing.
	MissingMeasurements int64 `json:"missingMeasurements"`
	// partialMeasurements is how many of them reported a part.
	PartialMeasurements int64 `json:"partialMeasurements"`
	// calls is how many of them are requests to models.
	Calls int64 `json:"calls"`
	// attempts is how many attempts of tasks they belong to.
	Attempts int64 `json:"attempts"`
	// completeness is complete, partial or unavailable.
	Completeness UsageCompleteness `json:"completeness"`
	// modelCost is a fixed text. See cost.
	ModelCost string `json:"modelCost"`
	// cost is the cost by spec.prices of the Providers.
	Cost UsageCost `json:"cost"`
}

// UsageCost is what measurements cost by the prices that were in force when they were observed.
type UsageCost struct {
	// completeness is unavailable if no measurement has a cost, partial if some have none, and complete otherwise.
	Completeness UsageCompleteness `json:"completeness"`
	// unpricedMeasurements is how many measurements have no cost, because no price was in force or their usage is not known.
	UnpricedMeasurements int64 `json:"unpricedMeasurements"`
	// amounts are the costs, one for each currency.
	// +listType=atomic
	Amounts []UsageAmount `json:"amounts"`
}

// UsageAmount is an amount of money.
type UsageAmount struct {
	// currency is the code of the currency, such as USD.
	Currency string `json:"currency"`
	// amount is a decimal number, exact to its last digit.
	Amount string `json:"amount"`
}

// UsageSummaryOf is the usage of work requests and what came of it. Figures about pull requests are null where nothing
// is known about pull requests.
type UsageSummaryOf struct {
	UsageTotals `json:",inline"`
	// workRequests is how many requests were attempted, including those without a pull request.
	WorkRequests int64 `json:"workRequests"`
	// unfinishedWork is how many of them have a task that had not ended.
	UnfinishedWork int64 `json:"unfinishedWork"`
	// prsOpened is how many pull requests were produced.
	// +optional
	// +nullable
	PRsOpened *int64 `json:"prsOpened"`
	// prsReady is how many of all linked ones could be merged at asOf.
	// +optional
	// +nullable
	PRsReady *int64 `json:"prsReady"`
	// prsMerged is how many of the produced ones were merged.
	// +optional
	// +nullable
	PRsMerged *int64 `json:"prsMerged"`
	// prsClosed is how many of the produced ones were closed without a merge.
	// +optional
	// +nullable
	PRsClosed *int64 `json:"prsClosed"`
	// prsAssisted is how many pull requests of others were assisted.
	// +optional
	// +nullable
	PRsAssisted *int64 `json:"prsAssisted"`
	// tokensPerPROpened is totalTokens by prsOpened; null if there is none.
	// +optional
	// +nullable
	TokensPerPROpened *float64 `json:"tokensPerPROpened"`
	// tokensPerPRMerged is totalTokens by prsMerged; null if there is none.
	// +optional
	// +nullable
	TokensPerPRMerged *float64 `json:"tokensPerPRMerged"`
}

// UsageTeam is the summary of a namespace.
type UsageTeam struct {
	// namespace is the namespace.
	Namespace string `json:"namespace"`
	// summary is its summary.
	Summary UsageSummaryOf `json:"summary"`
}

// UsageWork is a work request: an issue or a pull request and everything that was done for it.
type UsageWork struct {
	// id identifies the work request.
	ID string `json:"id"`
	// namespace is the namespace.
	Namespace string `json:"namespace"`
	// namespaceUID is the UID of the namespace.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID"`
	// monitorName is the RepositoryMonitor.
	MonitorName string `json:"monitorName"`
	// monitorUID is the UID of the monitor.
	// +optional
	MonitorUID types.UID `json:"monitorUID"`
	// repository is OWNER/REPOSITORY.
	Repository string `json:"repository"`
	// kind is issue or pull_request.
	Kind UsageKind `json:"kind"`
	// number is that of the issue or pull request.
	Number int64 `json:"number"`
	// startedAt is when its first task was created.
	StartedAt string `json:"startedAt"`
	// summary is its usage.
	Summary UsageSummaryOf `json:"summary"`
	// tasks are its tasks, the oldest first.
	// +optional
	// +listType=atomic
	Tasks []UsageTask `json:"tasks,omitempty"`
	// pullRequests are its pull requests.
	// +optional
	// +listType=atomic
	PullRequests []UsagePullRequest `json:"pullRequests,omitempty"`
	// models are the models that it used.
	// +optional
	// +listType=atomic
	Models []string `json:"models,omitempty"`
}

// UsageTask is a task and its measurements.
type UsageTask struct {
	// namespace is the namespace.
	Namespace string `json:"namespace"`
	// namespaceUID is the UID of the namespace.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID"`
	// taskUID is the UID of the task.
	// +optional
	TaskUID types.UID `json:"taskUID"`
	// taskName is the task; empty for usage without a task, which has one row for each session and each other request.
	TaskName string `json:"taskName"`
	// sessionName is the session.
	SessionName string `json:"sessionName"`
	// parentTaskUID is the UID of the task that delegated this one.
	// +optional
	ParentTaskUID types.UID `json:"parentTaskUID"`
	// workID is the work request that the task was made for.
	WorkID string `json:"workID"`
	// repository is OWNER/REPOSITORY.
	Repository string `json:"repository"`
	// prNumber is the pull request that the task reviews or repairs; 0 for none.
	PRNumber int64 `json:"prNumber"`
	// phase is the phase of the task at asOf; empty for usage without a task.
	Phase string `json:"phase"`
	// role is what the task does for the request, such as planning or review.
	Role string `json:"role"`
	// runtime is the AgentRuntime, or the type of the task: ai or container.
	Runtime string `json:"runtime"`
	// agent is the agent; empty for none.
	// +optional
	Agent string `json:"agent,omitempty"`
	// startedAt is when the task started, or was created if it has not started.
	StartedAt string `json:"startedAt"`
	// gatewayOwner is the Gateway that the task belongs to; empty for none.
	GatewayOwner string `json:"gatewayOwner"`
	// usage is the usage of the task.
	Usage UsageTotals `json:"usage"`
	// measurements are its measurements, the oldest first.
	// +listType=atomic
	Measurements []UsageMeasured `json:"measurements"`
	// shared is set if the task is part of several work requests. Totals count it once.
	Shared bool `json:"shared"`
}

// UsageMeasured is one measurement. A count is null if it was not reported.
type UsageMeasured struct {
	// id identifies the measurement.
	ID string `json:"id"`
	// attemptID is the attempt of the task.
	AttemptID string `json:"attemptID"`
	// scope is call, attempt or session.
	Scope string `json:"scope"`
	// source is provider, agent or estimate.
	Source string `json:"source"`
	// provider is the Provider.
	Provider string `json:"provider"`
	// model is the model.
	Model string `json:"model"`
	// inputTokens is all input.
	// +optional
	// +nullable
	InputTokens *int64 `json:"inputTokens"`
	// outputTokens is all output.
	// +optional
	// +nullable
	OutputTokens *int64 `json:"outputTokens"`
	// cachedInputTokens is the part of the input that was read from a cache.
	// +optional
	// +nullable
	CachedInputTokens *int64 `json:"cachedInputTokens"`
	// cacheWriteInputTokens is the part of the input that was written to a cache.
	// +optional
	// +nullable
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens"`
	// status is started, completed, failed, cancelled or unattributed.
	Status string `json:"status"`
	// completeness is complete, partial or unavailable.
	Completeness UsageCompleteness `json:"completeness"`
	// gap says what is missing; empty if nothing is.
	Gap string `json:"gap"`
	// cost is the cost; absent if no price was in force.
	// +optional
	// +k8s:optional
	Cost *UsageAmount `json:"cost,omitempty"`
	// observedAt is when the last observation was stored.
	ObservedAt string `json:"observedAt"`
}

// UsagePullRequest is a pull request that is linked to a work request.
type UsagePullRequest struct {
	// namespace is the namespace of the link.
	Namespace string `json:"namespace"`
	// repository is OWNER/REPOSITORY.
	Repository string `json:"repository"`
	// number is the number of the pull request.
	Number int64 `json:"number"`
	// githubID is the id that the code host gave it; 0 if that is not known.
	GitHubID int64 `json:"githubID"`
	// url is its address.
	URL string `json:"url"`
	// headSHA is its current head.
	HeadSHA string `json:"headSHA"`
	// state is open, closed, merged or unknown.
	State string `json:"state"`
	// ready is set if it could be merged at asOf.
	Ready bool `json:"ready"`
	// readinessReason says why it is ready or not.
	ReadinessReason string `json:"readinessReason"`
	// createdAt is when it was created; null if that is not known.
	// +optional
	// +nullable
	CreatedAt *string `json:"createdAt"`
	// mergedAt is when it was merged.
	// +optional
	// +nullable
	MergedAt *string `json:"mergedAt"`
	// closedAt is when it was closed.
	// +optional
	// +nullable
	ClosedAt *string `json:"closedAt"`
	// observedAt is when its state was last read.
	// +optional
	// +nullable
	ObservedAt *string `json:"observedAt"`
	// origin is created, assisted or review_only.
	Origin string `json:"origin"`
	// evidenceID identifies the record that links it.
	EvidenceID string `json:"evidenceID"`
}

// UsageOtherWork is usage outside work requests.
type UsageOtherWork struct {
	// category is review_only, other_requests or unassociated.
	Category UsageCategory `json:"category"`
	// explanation says what the category contains.
	Explanation string `json:"explanation"`
	// usage is its usage.
	Usage UsageTotals `json:"usage"`
	// taskCount is how many rows of tasks it contains.
	TaskCount int64 `json:"taskCount"`
	// tasks is a page of the tasks, the newest first.
	// +optional
	// +listType=atomic
	Tasks []UsageTask `json:"tasks,omitempty"`
	// page is the page of tasks.
	// +optional
	// +k8s:optional
	Page *UsagePage `json:"page,omitempty"`
}

// UsageBreakdown is one row of a breakdown.
type UsageBreakdown struct {
	// name is the day, model or agent; empty if the measurement names none.
	Name string `json:"name"`
	// usage is its usage.
	Usage UsageTotals `json:"usage"`
}

// UsagePage is a part of a list.
type UsagePage struct {
	// limit is the size of the page.
	Limit int32 `json:"limit"`
	// offset is how many items precede the page.
	Offset int32 `json:"offset"`
	// total is how many items there are.
	Total int32 `json:"total"`
}
