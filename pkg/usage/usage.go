// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage defines what is recorded about the use of models: observations of tokens, the tasks that contributed,
// links to pull requests, and how they are added up. The ledger writes these records, reports and budgets read them.
// The package has no clock and no store.
//
// Rules that hold for every record:
//
//   - A count that was not reported is nil and never zero. A sum in which nothing was reported is nil as well.
//   - InputTokens is all input. CachedInputTokens (read from a cache) and CacheWriteInputTokens (written to one) are
//     parts of it, and do not overlap. This is the same for all vendors, whatever their own figures include.
//   - A count or a sum is at most MaxTokens. Greater ones are refused and never rounded.
//   - A record is never changed in place. Each state has the time at which it was recorded, and a View shows the
//     states as of a time, so a later page of a report never differs from an earlier one.
//   - Records outlive the task that they are about. Only retention removes them.
package usage

import "time"

// MaxTokens is the greatest count and the greatest sum: 2^53-1, the greatest integer that every JSON reader has exactly.
const MaxTokens = int64(1)<<53 - 1

// Scope is what one observation covers.
type Scope string

// Scopes.
const (
	// ScopeCall is one request to a model: one HTTP request, so a repeated request is another observation.
	ScopeCall Scope = "call"
	// ScopeAttempt is a counter of one attempt of a task, reported by the agent that runs it.
	ScopeAttempt Scope = "attempt"
	// ScopeSession is a counter that an agent continues over several tasks of one session.
	ScopeSession Scope = "session"
)

// Source is who reported the counts.
type Source string

// Sources.
const (
	// SourceProvider is the model's vendor, in its answer.
	SourceProvider Source = "provider"
	// SourceAgent is the program of an agent, which nobody verified.
	SourceAgent Source = "agent"
	// SourceEstimate is not a report. No part of the platform makes estimates; they would not count as recorded tokens.
	SourceEstimate Source = "estimate"
)

// Status is how far what was observed has come.
type Status string

// Statuses.
const (
	// StatusStarted: the start was recorded, and no end. It is the durable record that precedes each request. While the
	// request may still end, Gap is empty; once it cannot, Gap is GapFinalUsage.
	StatusStarted Status = "started"
	// StatusCompleted: the request was answered, or the counter belongs to an attempt that succeeded or still runs.
	StatusCompleted Status = "completed"
	// StatusFailed: the request or the attempt failed. It may have used tokens.
	StatusFailed Status = "failed"
	// StatusCancelled: the request or the attempt was cancelled. It may have used tokens.
	StatusCancelled Status = "cancelled"
	// StatusUnattributed: the first total of a session counter without a baseline. It was used before this task as far
	// as anybody knows, so it is part of no request and appears as unassociated usage.
	StatusUnattributed Status = "unattributed"
)

// Gaps: why an observation is not complete. The texts are part of reports.
const (
	// GapFinalUsage: the request was started, and nothing reports its end: a process was killed, or the record was lost.
	GapFinalUsage = "missing final usage"
	// GapNotReported: the request ended, and the vendor or agent did not report its input or its output.
	GapNotReported = "usage not reported"
	// GapZero: the request was answered, and the vendor reported that it used nothing at all.
	GapZero = "reported as zero"
	// GapRefused: the vendor refused the request, or never got it. It reports nothing of such a request, which used nothing.
	GapRefused = "request refused"
	// GapStart: an end was reported of a request whose start was not recorded.
	GapStart = "missing start record"
	// GapDecreased: a cumulative counter decreased. Its highest total is kept.
	GapDecreased = "counter decreased"
	// GapBaseline: a session counter has no baseline. Its first total is unattributed.
	GapBaseline = "missing initial baseline"
	// GapTooLarge: a count was negative or above MaxTokens. It counts as not reported.
	GapTooLarge = "count out of range"
	// GapUnavailable: the agent's runtime cannot report what it consumed.
	GapUnavailable = "usage unavailable"
)

// Counts are the four columns of tokens. Nil is not reported.
type Counts struct {
	// InputTokens is all input, whatever a cache supplied or took.
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// OutputTokens is all output, thinking included.
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// CachedInputTokens is the part of InputTokens that was read from a cache.
	CachedInputTokens *int64 `json:"cachedInputTokens,omitempty"`
	// CacheWriteInputTokens is the part of InputTokens that was written to a cache.
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens,omitempty"`
}

// Reported reports whether both input and output were reported.
func (c Counts) Reported() bool { return c.InputTokens != nil && c.OutputTokens != nil }

// Some reports whether any of input and output was reported.
func (c Counts) Some() bool { return c.InputTokens != nil || c.OutputTokens != nil }

// Observation is a stored measurement as of a time.
type Observation struct {
	// ID identifies the observation in its namespace, also in later states. It is a digest and says nothing.
	ID string `json:"id"`
	// Namespace is where the tokens were used, and NamespaceUID the identity of that namespace; empty if it could not be
	// read when the observation was recorded.
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespaceUID,omitempty"`
	// TaskUID and TaskName are the task whose worker made the request; empty for chats and the vendors' APIs.
	TaskUID  string `json:"taskUID,omitempty"`
	TaskName string `json:"taskName,omitempty"`
	// SessionName is the session of the task or the chat; empty without one.
	SessionName string `json:"sessionName,omitempty"`
	// AttemptID is the attempt of the task, from 1, or the ID of the request of a chat or of a vendor's API.
	AttemptID string `json:"attemptID,omitempty"`
	// CounterID is the call within the attempt ("ITERATION/ATTEMPT") or the name of a counter.
	CounterID string `json:"counterID,omitempty"`
	Scope     Scope  `json:"scope"`
	Source    Source `json:"source"`
	// Provider is the name of the Provider, and Model the vendor's name of the model.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Counts
	Status Status `json:"status"`
	// Complete is set if the counts are all that this observation will ever report, and both input and output are known.
	Complete bool `json:"complete"`
	// Gap is why it is not complete; empty if it is, or if the request is still open.
	Gap string `json:"gap,omitempty"`
	// StartedAt is when the request, or the counter, began. It never changes.
	StartedAt time.Time `json:"startedAt"`
	// ObservedAt is when this state was recorded.
	ObservedAt time.Time `json:"observedAt"`
	// User is the name of the caller of a chat or of a vendor's API; empty for tasks.
	User string `json:"user,omitempty"`
}

// Open reports whether the request may still end.
func (o *Observation) Open() bool { return o.Status == StatusStarted && o.Gap == "" }

// Work identifies the original request on a code host, as far as the task names it.
type Work struct {
	// Kind is issue or pull_request.
	Kind string `json:"kind,omitempty"`
	// Repository is OWNER/REPOSITORY in lower case.
	Repository string `json:"repository,omitempty"`
	// Number is the number of the issue or pull request; 0 for none.
	Number int64 `json:"number,omitempty"`
	// MonitorName and MonitorUID are the RepositoryMonitor that asked for the task.
	MonitorName string `json:"monitorName,omitempty"`
	MonitorUID  string `json:"monitorUID,omitempty"`
}

// Kinds of Work.
const (
	KindIssue       = "issue"
	KindPullRequest = "pull_request"
)

// Task is what reports need to know about a task that may have used tokens. It outlives the task.
type Task struct {
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespaceUID,omitempty"`
	UID          string `json:"uid"`
	Name         string `json:"name"`
	SessionName  string `json:"sessionName,omitempty"`
	// ParentTaskUID and RootTaskUID are the task that delegated this one and the top of its tree, as the server recorded
	// them. RootTaskUID is the task's own UID if nobody delegated it.
	ParentTaskUID string `json:"parentTaskUID,omitempty"`
	RootTaskUID   string `json:"rootTaskUID"`
	// ForkSourceUID is the task that this one is a fork of.
	ForkSourceUID string `json:"forkSourceUID,omitempty"`
	// Type is that of the task: container, ai or agent. No model calls are inferred for container tasks.
	Type string `json:"type"`
	// Phase is that of the task; a task that was deleted before it ended keeps its last one.
	Phase string `json:"phase,omitempty"`
	// Role is the label agent-role.
	Role string `json:"role,omitempty"`
	// Runtime is what ran the task: the name of an AgentRuntime for tasks of type agent, otherwise empty.
	Runtime string `json:"runtime,omitempty"`
	// Agent is the name of the Agent.
	Agent string `json:"agent,omitempty"`
	// Labels are those of the task, for budgets that select by them.
	Labels map[string]string `json:"labels,omitempty"`
	// RequestedBy is the user who created the task.
	RequestedBy string `json:"requestedBy,omitempty"`
	// GatewayOwner is the Gateway that owns the task; empty for all others.
	GatewayOwner string `json:"gatewayOwner,omitempty"`
	// Repository is OWNER/REPOSITORY in lower case that the task works on, and PRNumber the pull request; 0 for none.
	Repository string `json:"repository,omitempty"`
	PRNumber   int64  `json:"prNumber,omitempty"`
	// Work is the original request that the task says it belongs to. Delegated tasks and forks inherit it only in
	// reports, through ParentTaskUID and ForkSourceUID.
	Work Work `json:"work,omitzero"`
	// CreatedAt is when the task was created, which is the start of the request. StartedAt is its first start and EndedAt
	// its end; zero before that.
	CreatedAt time.Time `json:"createdAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Deleted is set once the task was deleted.
	Deleted bool `json:"deleted,omitempty"`
	// ObservedAt is when this state was recorded.
	ObservedAt time.Time `json:"observedAt"`
}

// Ended reports whether the task has no more work to do: it has ended, or is gone.
func (t *Task) Ended() bool { return !t.EndedAt.IsZero() || t.Deleted }
