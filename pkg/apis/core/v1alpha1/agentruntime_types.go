// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// AgentRuntime registers a coding-agent runtime that runs elsewhere. An administrator of the namespace registers it. The controller asks
// runtimes of platform.harness.v2 what they can do. Agents name one in spec.runtime.runtimeRef; tasks are given to those that are ready and
// strict-governed.
type AgentRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec AgentRuntimeSpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status AgentRuntimeStatus `json:"status,omitempty"`
}

// RESTPath returns where REST clients read and write agent runtimes.
func (*AgentRuntime) RESTPath() (path string, written bool) { return "agent-runtimes", true }

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AgentRuntimeList is a list of agent runtimes.
type AgentRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the agent runtimes.
	Items []AgentRuntime `json:"items"`
}

// AgentRuntimeSpec is where a runtime is, and what is agreed with it.
type AgentRuntimeSpec struct {
	// contractVersion is the version of the contract between controller and runtime.
	// +required
	// +k8s:required
	ContractVersion RuntimeContractVersion `json:"contractVersion"`
	// deployment is where the runtime is.
	// +required
	Deployment AgentRuntimeDeployment `json:"deployment"`
	// clientAuth is how the controller proves who it is.
	// +required
	ClientAuth AgentRuntimeAuth `json:"clientAuth"`
	// capabilities is what the runtime must be able to do. What it reports is in the status.
	// +optional
	// +k8s:optional
	Capabilities *AgentRuntimeCapabilities `json:"capabilities,omitempty"`
}

// AgentRuntimeMode is how a runtime is deployed.
// +enum
// +k8s:enum
type AgentRuntimeMode string

// Values of AgentRuntimeMode.
const (
	RuntimeExternalEndpoint AgentRuntimeMode = "external-endpoint"
)

// AgentRuntimeDeployment is where a runtime is.
type AgentRuntimeDeployment struct {
	// mode is how the runtime is deployed.
	// +required
	// +k8s:required
	Mode AgentRuntimeMode `json:"mode"`
	// endpoint is the address of the runtime (https).
	// +required
	// +k8s:required
	// +k8s:maxLength=2048
	Endpoint string `json:"endpoint"`
}

// AgentRuntimeAuth has the Secrets with which the controller proves who it is. The first is for platform.harness.v1, the others are for
// platform.harness.v2.
type AgentRuntimeAuth struct {
	// bearerTokenSecretRef is the token of platform.harness.v1.
	// +optional
	// +k8s:optional
	BearerTokenSecretRef *KeyReference `json:"bearerTokenSecretRef,omitempty"`
	// controllerBearerTokenSecretRef is the controller's token of platform.harness.v2.
	// +optional
	// +k8s:optional
	ControllerBearerTokenSecretRef *KeyReference `json:"controllerBearerTokenSecretRef,omitempty"`
	// operationCapabilitySecretRef is the key of platform.harness.v2 with which the controller signs what an operation may do.
	// +optional
	// +k8s:optional
	OperationCapabilitySecretRef *KeyReference `json:"operationCapabilitySecretRef,omitempty"`
}

// AgentRuntimeCapabilities is what a runtime can do.
type AgentRuntimeCapabilities struct {
	// runtimeInstanceID identifies the instance.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	RuntimeInstanceID string `json:"runtimeInstanceID,omitempty"`
	// profile identifies how the runtime behaves.
	// +optional
	// +k8s:optional
	Profile *RuntimeProfile `json:"profile,omitempty"`
	// supportsDrain says whether the runtime can finish what it does without taking on more.
	// +optional
	// +k8s:optional
	SupportsDrain bool `json:"supportsDrain,omitempty"`
	// supportsPublicationFinalization says whether the runtime takes part in publishing its result.
	// +optional
	// +k8s:optional
	SupportsPublicationFinalization bool `json:"supportsPublicationFinalization,omitempty"`
	// workspaceGovernance is who guards the workspace.
	// +optional
	// +k8s:optional
	WorkspaceGovernance *AgentRuntimeGovernance `json:"workspaceGovernance,omitempty"`
	// mcpPolicy is which tools may be used, and how.
	// +optional
	// +k8s:optional
	McpPolicy *AgentRuntimeToolPolicy `json:"mcpPolicy,omitempty"`
	// limits are the limits of the runtime.
	// +optional
	// +k8s:optional
	Limits *AgentRuntimeLimits `json:"limits,omitempty"`
}

// AgentRuntimeGovernanceMode says who guards a workspace.
// +enum
// +k8s:enum
type AgentRuntimeGovernanceMode string

// Values of AgentRuntimeGovernanceMode.
const (
	GovernanceStrict  AgentRuntimeGovernanceMode = "strict-governed"
	GovernanceTrusted AgentRuntimeGovernanceMode = "trusted-non-governed"
)

// AgentRuntimeGovernance is who guards the workspace of a runtime.
type AgentRuntimeGovernance struct {
	// mode is strict-governed if the platform guards the workspace, and trusted-non-governed if the runtime is trusted to.
	// +required
	// +k8s:required
	Mode AgentRuntimeGovernanceMode `json:"mode"`
	// trusted says that an administrator trusts the runtime.
	// +optional
	// +k8s:optional
	Trusted bool `json:"trusted,omitempty"`
	// guarantees names what the runtime guarantees about the workspace: platformOwnedWorkspaceDeltas,
	// promptScopedBrokerAuthorization, noDirectSCMPublication, platformOwnedCleanRoomPublication, exactInstanceFencing,
	// duplicateSafeMutations, cancellationSettlement.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=7
	// +listType=set
	// +k8s:listType=set
	Guarantees []string `json:"guarantees,omitempty"`
}

// AgentRuntimeToolPolicy is which tools a runtime may use, and how.
type AgentRuntimeToolPolicy struct {
	// allowedTools are the only tools; absent means the default ones, and an empty list none.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=set
	// +k8s:listType=set
	AllowedTools []string `json:"allowedTools,omitzero"`
	// disallowedTools are tools that are never used.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=set
	// +k8s:listType=set
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// allowBash says whether commands may be run.
	// +optional
	// +k8s:optional
	AllowBash *bool `json:"allowBash,omitempty"`
	// approvalRequiredTools are tools that need an approval for each call.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=set
	// +k8s:listType=set
	ApprovalRequiredTools []string `json:"approvalRequiredTools,omitempty"`
}

// AgentRuntimeLimits are the limits of a runtime.
type AgentRuntimeLimits struct {
	// maxResidentSessions is how many sessions the runtime holds.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxResidentSessions *int64 `json:"maxResidentSessions,omitempty"`
	// maxConcurrentPrompts is how many prompts it works on at a time.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxConcurrentPrompts *int64 `json:"maxConcurrentPrompts,omitempty"`
	// maxRequestBytes is the length of a request, in bytes.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxRequestBytes *int64 `json:"maxRequestBytes,omitempty"`
	// maxEventLineBytes is the length of a line of its stream of events, in bytes.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxEventLineBytes *int64 `json:"maxEventLineBytes,omitempty"`
	// maxTerminalResultBytes is the length of a result, in bytes.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxTerminalResultBytes *int64 `json:"maxTerminalResultBytes,omitempty"`
	// maxBufferedEvents is how many events it keeps for a client that is away.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxBufferedEvents *int64 `json:"maxBufferedEvents,omitempty"`
	// maxUpdateEventsPerSecond is how many events it sends in a second.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxUpdateEventsPerSecond *int64 `json:"maxUpdateEventsPerSecond,omitempty"`
	// minPromptLeaseMillis is the shortest lease of a prompt, in milliseconds.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MinPromptLeaseMillis *int64 `json:"minPromptLeaseMillis,omitempty"`
	// maxPromptLeaseMillis is the longest lease of a prompt, in milliseconds.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxPromptLeaseMillis *int64 `json:"maxPromptLeaseMillis,omitempty"`
	// maxPendingPermissions is how many questions for a permission may be open.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxPendingPermissions *int64 `json:"maxPendingPermissions,omitempty"`
	// maxWorkspaceDeltaBytes is how much a prompt may change in the workspace, in bytes.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxWorkspaceDeltaBytes *int64 `json:"maxWorkspaceDeltaBytes,omitempty"`
}

// AgentRuntimeStatus is what is observed of a runtime.
type AgentRuntimeStatus struct {
	// ready says whether the runtime can be used.
	// +optional
	// +k8s:optional
	Ready bool `json:"ready,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +k8s:optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// observedCapabilities is what the runtime reports about itself.
	// +optional
	// +k8s:optional
	ObservedCapabilities *AgentRuntimeCapabilities `json:"observedCapabilities,omitempty"`
	// lastValidated is when the runtime was last asked.
	// +optional
	// +k8s:optional
	LastValidated *metav1.Time `json:"lastValidated,omitempty"`
	// observedSecretVersions are the resource versions of the Secrets that were used, by their names.
	// +optional
	// +k8s:optional
	// +k8s:maxProperties=8
	ObservedSecretVersions map[string]string `json:"observedSecretVersions,omitempty"`
	// message describes the state to people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// conditions are the conditions of the object: Ready.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
