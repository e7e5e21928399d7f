// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MonitorReviewEvent is what a published review says to the code host.
// +enum
// +k8s:enum
type MonitorReviewEvent string

// MonitorReviewComment is a review that neither approves nor asks for changes. There is no other.
const MonitorReviewComment MonitorReviewEvent = "COMMENT"

// MonitorReview is how pull requests are reviewed. A head that was reviewed is not reviewed again unless somebody asks for it.
type MonitorReview struct {
	// event is what a review says to the code host: COMMENT.
	// +optional
	// +k8s:optional
	// +default="COMMENT"
	Event MonitorReviewEvent `json:"event,omitempty"`
	// requireGreenCI reviews a head only when its checks have passed.
	// +optional
	RequireGreenCI bool `json:"requireGreenCI,omitempty"`
	// staleReviewTTL is after how long a review of a head counts no longer, such as 720h. Empty means never.
	// +optional
	// +k8s:optional
	StaleReviewTTL *Duration `json:"staleReviewTTL,omitempty"`
	// exactEventEnabled reviews the head that the code host's webhook names, as soon as it does.
	// +optional
	ExactEventEnabled bool `json:"exactEventEnabled,omitempty"`
	// publish is what of a review is posted on the code host.
	// +optional
	Publish MonitorReviewPublish `json:"publish,omitempty"`
}

// MonitorPublishMode is what of a review is posted.
// +enum
// +k8s:enum
type MonitorPublishMode string

// Modes of publication.
const (
	MonitorPublishSummary  MonitorPublishMode = "summary_only"
	MonitorPublishFindings MonitorPublishMode = "summary_with_inline_findings"
)

// MonitorSameHeadPolicy is what happens to a second review of one head.
// +enum
// +k8s:enum
type MonitorSameHeadPolicy string

// MonitorSameHeadSkip posts no second review of one head. There is no other policy.
const MonitorSameHeadSkip MonitorSameHeadPolicy = "skip"

// MonitorReviewPublish is what of a review is posted on the code host.
type MonitorReviewPublish struct {
	// enabled posts reviews. Without it, they are in MonitorItems only.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// mode is summary_only or summary_with_inline_findings.
	// +optional
	// +k8s:optional
	// +default="summary_only"
	Mode MonitorPublishMode `json:"mode,omitempty"`
	// event is COMMENT.
	// +optional
	// +k8s:optional
	// +default="COMMENT"
	Event MonitorReviewEvent `json:"event,omitempty"`
	// postPassed also posts reviews without findings.
	// +optional
	PostPassed bool `json:"postPassed,omitempty"`
	// postNeedsChanges posts reviews that ask for changes.
	// +optional
	// +k8s:optional
	// +default=true
	PostNeedsChanges *bool `json:"postNeedsChanges,omitempty"`
	// postNeedsHuman posts reviews that a person has to decide.
	// +optional
	// +k8s:optional
	// +default=true
	PostNeedsHuman *bool `json:"postNeedsHuman,omitempty"`
	// postSecuritySensitive also posts reviews about security, for everybody to read.
	// +optional
	PostSecuritySensitive bool `json:"postSecuritySensitive,omitempty"`
	// sameHeadPolicy is skip: a head gets one review.
	// +optional
	// +k8s:optional
	// +default="skip"
	SameHeadPolicy MonitorSameHeadPolicy `json:"sameHeadPolicy,omitempty"`
	// inline is which findings become comments on lines.
	// +optional
	Inline MonitorInline `json:"inline,omitempty"`
}

// MonitorPriority is how much a finding matters, P0 most.
// +enum
// +k8s:enum
type MonitorPriority string

// Priorities.
const (
	MonitorP0 MonitorPriority = "P0"
	MonitorP1 MonitorPriority = "P1"
	MonitorP2 MonitorPriority = "P2"
	MonitorP3 MonitorPriority = "P3"
)

// MonitorInline is which findings become comments on lines.
type MonitorInline struct {
	// enabled makes comments on lines in the mode summary_with_inline_findings.
	// +optional
	// +k8s:optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"`
	// minPriority is the lowest priority of such a finding.
	// +optional
	// +k8s:optional
	// +default="P2"
	MinPriority MonitorPriority `json:"minPriority,omitempty"`
	// maxComments is how many such comments one review has.
	// +optional
	// +k8s:optional
	// +default=10
	// +k8s:minimum=0
	// +k8s:maximum=50
	MaxComments *int32 `json:"maxComments,omitempty"`
	// onlyChangedLines leaves findings on other lines in the summary. Code hosts take no comments on lines beyond the diff in any case.
	// +optional
	// +k8s:optional
	// +default=true
	OnlyChangedLines *bool `json:"onlyChangedLines,omitempty"`
}

// MonitorRepair is what is done about pull requests that need changes.
type MonitorRepair struct {
	// enabled permits repairs, by a command or, with an opt-in label, by themselves.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// requireMaintainerOptIn repairs only pull requests with the label policy.optInLabels.autofix, or with a command.
	// +optional
	// +k8s:optional
	// +default=true
	RequireMaintainerOptIn *bool `json:"requireMaintainerOptIn,omitempty"`
	// maxRepairsPerPR is how often one pull request is repaired.
	// +optional
	// +k8s:optional
	// +default=3
	// +k8s:minimum=1
	// +k8s:maximum=20
	MaxRepairsPerPR *int32 `json:"maxRepairsPerPR,omitempty"`
	// maxRepairsPerHead is how often one head is repaired.
	// +optional
	// +k8s:optional
	// +default=1
	// +k8s:minimum=1
	// +k8s:maximum=20
	MaxRepairsPerHead *int32 `json:"maxRepairsPerHead,omitempty"`
	// maxValidationRetries is how often a repair whose validation failed is tried again.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=10
	MaxValidationRetries *int32 `json:"maxValidationRetries,omitempty"`
	// maxReviewFixRetries is how often a repair whose review has findings is repaired again.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=10
	MaxReviewFixRetries *int32 `json:"maxReviewFixRetries,omitempty"`
}

// MonitorMergeMethod is how pull requests are merged.
// +enum
// +k8s:enum
type MonitorMergeMethod string

// Methods of merging.
const (
	MonitorMergeCommit MonitorMergeMethod = "merge"
	MonitorMergeSquash MonitorMergeMethod = "squash"
	MonitorMergeRebase MonitorMergeMethod = "rebase"
)

// MonitorAutomerge is when pull requests are merged.
type MonitorAutomerge struct {
	// enabled permits merging.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// requireMaintainerOptIn merges only pull requests with the label policy.optInLabels.automerge, or with a command.
	// +optional
	// +k8s:optional
	// +default=true
	RequireMaintainerOptIn *bool `json:"requireMaintainerOptIn,omitempty"`
	// requireGlobalMergeGate merges only while the operator has opened the gate (PLATFORM_REPOSITORY_MONITOR_AUTOMERGE_GATE).
	// +optional
	// +k8s:optional
	// +default=true
	RequireGlobalMergeGate *bool `json:"requireGlobalMergeGate,omitempty"`
	// allowedMergeMethods are merge, squash and rebase; the first is used. Empty means squash.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=3
	// +listType=atomic
	AllowedMergeMethods []MonitorMergeMethod `json:"allowedMergeMethods,omitempty"`
}

// MonitorPolicy is what labels forbid and permit. Labels that a stranger can set permit nothing that is written here as a maintainer's.
type MonitorPolicy struct {
	// protectedLabels are labels with which nothing is changed or merged by the monitor, whoever asks for it.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=128
	// +listType=atomic
	ProtectedLabels []string `json:"protectedLabels,omitempty"`
	// pauseLabels are labels with which nothing new is begun.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=128
	// +listType=atomic
	PauseLabels []string `json:"pauseLabels,omitempty"`
	// optInLabels are labels that permit repairs and merges.
	// +optional
	OptInLabels MonitorOptInLabels `json:"optInLabels,omitempty"`
	// advisoryLabels are labels that agents are told about.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=128
	// +listType=atomic
	AdvisoryLabels []string `json:"advisoryLabels,omitempty"`
	// allowedRepositoryPermissions are what a person who sets a command label may be allowed to do in the repository: write, maintain,
	// admin. Empty means what triggers.github.labels.requireActorPermission says, and more.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=3
	// +listType=atomic
	AllowedRepositoryPermissions []MonitorActorPermission `json:"allowedRepositoryPermissions,omitempty"`
}

// MonitorOptInLabels are labels that permit repairs and merges.
type MonitorOptInLabels struct {
	// autofix permits repairs.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	Autofix string `json:"autofix,omitempty"`
	// automerge permits merging.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	Automerge string `json:"automerge,omitempty"`
}

// MonitorValidationMode is which files are checked.
// +enum
// +k8s:enum
type MonitorValidationMode string

// Modes of validation.
const (
	MonitorValidationOff     MonitorValidationMode = "off"
	MonitorValidationChanged MonitorValidationMode = "changed"
	MonitorValidationFull    MonitorValidationMode = "full"
)

// MonitorValidation is how changes are checked by commands of the repository.
type MonitorValidation struct {
	// mode is off, changed or full.
	// +optional
	// +k8s:optional
	// +default="changed"
	Mode MonitorValidationMode `json:"mode,omitempty"`
	// commands are command lines that check the repository, one after the other.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +k8s:eachVal=+k8s:maxLength=1024
	// +listType=atomic
	Commands []string `json:"commands,omitempty"`
	// image is the image that commands run in, pinned by its digest: NAME@sha256:DIGEST.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Image string `json:"image,omitempty"`
}
