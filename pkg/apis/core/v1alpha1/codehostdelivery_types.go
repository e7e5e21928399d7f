// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// CodeHostDelivery is a webhook delivery of a code host whose signature was right: what it said, what was decided, and what it caused. It is
// in the namespace of the webhook (PLATFORM_GITHUB_LABEL_TRIGGER_NAMESPACE), and kept for some time.
type CodeHostDelivery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the code host said. It never changes.
	// +required
	Spec CodeHostDeliverySpec `json:"spec"`
	// status is what was decided.
	// +optional
	Status CodeHostDeliveryStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CodeHostDeliveryList is a list of deliveries of code hosts.
type CodeHostDeliveryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the deliveries of code hosts.
	Items []CodeHostDelivery `json:"items"`
}

// CodeHostDeliverySpec is what a code host said. All texts in it were written by anybody.
type CodeHostDeliverySpec struct {
	// deliveryID is the identity that the code host gave to the event. Two hooks get one event with one identity.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	DeliveryID string `json:"deliveryID"`
	// hook is the hook that delivered it; empty if the code host does not say.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	Hook string `json:"hook,omitempty"`
	// bodySHA256 is the digest of the body, in lower-case hexadecimal digits.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	BodySHA256 string `json:"bodySHA256"`
	// event is the name of the event, such as pull_request.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	Event string `json:"event"`
	// action is what happened, such as labeled.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Action string `json:"action,omitempty"`
	// repository is OWNER/NAME.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Repository string `json:"repository,omitempty"`
	// repositoryURL is its page.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	RepositoryURL string `json:"repositoryURL,omitempty"`
	// defaultBranch is its default branch.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	DefaultBranch string `json:"defaultBranch,omitempty"`
	// targetKind is pull_request or issue; empty for other events.
	// +optional
	// +k8s:optional
	TargetKind MonitorTargetKind `json:"targetKind,omitempty"`
	// number is the number of the pull request or issue.
	// +optional
	Number int64 `json:"number,omitempty"`
	// title is its title, without what looks like a secret.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Title string `json:"title,omitempty"`
	// body is the beginning of its text, without what looks like a secret.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=16384
	Body string `json:"body,omitempty"`
	// url is its page.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	URL string `json:"url,omitempty"`
	// labels are the labels that were set or removed.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +listType=atomic
	Labels []string `json:"labels,omitempty"`
	// allLabels are the labels that it has then.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=100
	// +listType=atomic
	AllLabels []string `json:"allLabels,omitempty"`
	// sender is the login of who caused the event.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Sender string `json:"sender,omitempty"`
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
	// headRepository is the repository of that branch.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	HeadRepository string `json:"headRepository,omitempty"`
	// baseBranch is the branch that it goes to.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	BaseBranch string `json:"baseBranch,omitempty"`
	// draft is set while it is not to be reviewed yet.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// pullRequestIssue is set for an event about an issue that is a pull request.
	// +optional
	PullRequestIssue bool `json:"pullRequestIssue,omitempty"`
	// receivedAt is when it arrived.
	// +required
	ReceivedAt metav1.MicroTime `json:"receivedAt"`
}

// CodeHostDeliveryState is what became of a delivery.
// +enum
// +k8s:enum
type CodeHostDeliveryState string

// Values of CodeHostDeliveryState.
const (
	// DeliveryReceived means that it is to be decided yet.
	DeliveryReceived CodeHostDeliveryState = "Received"
	// DeliveryProcessed means that it caused something.
	DeliveryProcessed CodeHostDeliveryState = "Processed"
	// DeliveryIgnored means that it caused nothing.
	DeliveryIgnored CodeHostDeliveryState = "Ignored"
	// DeliveryDuplicate means that another delivery caused the same before.
	DeliveryDuplicate CodeHostDeliveryState = "Duplicate"
	// DeliveryFailed means that what it asks for cannot be done, for example because an Agent is missing.
	DeliveryFailed CodeHostDeliveryState = "Failed"
)

// CodeHostDeliveryStatus is what was decided about a delivery.
type CodeHostDeliveryStatus struct {
	// state is Received, Processed, Ignored, Duplicate or Failed.
	// +optional
	// +k8s:optional
	State CodeHostDeliveryState `json:"state,omitempty"`
	// reason says why in one word.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	Reason string `json:"reason,omitempty"`
	// message says so for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// action is what a label asks for: what follows its prefix.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	Action string `json:"action,omitempty"`
	// tasks are the tasks that it caused.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +listType=atomic
	Tasks []string `json:"tasks,omitempty"`
	// runs are the MonitorRuns that it caused or that were there already, NAMESPACE/NAME.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=atomic
	Runs []string `json:"runs,omitempty"`
	// commands are the MonitorCommands that it caused, NAMESPACE/NAME.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=atomic
	Commands []string `json:"commands,omitempty"`
	// matchedMonitors is how many monitors look after the repository.
	// +optional
	MatchedMonitors int32 `json:"matchedMonitors,omitempty"`
	// monitorRunsQueued is how many runs were made.
	// +optional
	MonitorRunsQueued int32 `json:"monitorRunsQueued,omitempty"`
	// monitorRunsCached is how many runs of the same head were there already.
	// +optional
	MonitorRunsCached int32 `json:"monitorRunsCached,omitempty"`
	// monitorRunsSkipped is how many monitors did not want a run.
	// +optional
	MonitorRunsSkipped int32 `json:"monitorRunsSkipped,omitempty"`
	// redeliveries is how often the same hook delivered the same event again.
	// +optional
	Redeliveries int32 `json:"redeliveries,omitempty"`
	// replays is how often a person had it decided again.
	// +optional
	Replays int32 `json:"replays,omitempty"`
	// replayedBy is the user who did so last.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	ReplayedBy string `json:"replayedBy,omitempty"`
	// nextAttemptAt is when the server decides it, if it was interrupted.
	// +optional
	// +k8s:optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// decidedAt is when it was decided.
	// +optional
	// +k8s:optional
	DecidedAt *metav1.MicroTime `json:"decidedAt,omitempty"`
}
