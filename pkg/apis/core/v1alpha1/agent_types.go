// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Agent is a model or coding agent with its instructions, tools and skills.
type Agent struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec AgentSpec `json:"spec"`
	// status is what is observed, written by the server and its controllers.
	// +optional
	Status AgentStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AgentList is a list of agents.
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the agents.
	Items []Agent `json:"items"`
}

// AgentSpec is what an agent is. It has a provider, or a runtime, but not both.
type AgentSpec struct {
	// providerRef is the Provider of the model; it cannot be set together with runtime.
	// +optional
	// +k8s:optional
	ProviderRef *NamespacedReference `json:"providerRef,omitempty"`
	// model is the model and how it is called.
	// +optional
	// +k8s:optional
	Model *AgentModel `json:"model,omitempty"`
	// systemPrompt is the agent's instruction.
	// +optional
	// +k8s:optional
	SystemPrompt *AgentSystemPrompt `json:"systemPrompt,omitempty"`
	// tools are the tools that the agent may use.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +listType=map
	// +listMapKey=name
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	Tools []AgentTool `json:"tools,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// skills are put before the system prompt.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=atomic
	Skills []SkillReference `json:"skills,omitempty"`
	// resources are the compute resources of the agent's workers.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// execution places the agent's workers.
	// +optional
	// +k8s:optional
	Execution *ExecutionPlacement `json:"execution,omitempty"`
	// sandbox says what programs that the agent runs (code_exec) may reach besides the folders of their run.
	// +optional
	// +k8s:optional
	Sandbox *AgentSandbox `json:"sandbox,omitempty"`
	// secretRef is a Secret of the same namespace for the agent's runtime.
	// +optional
	// +k8s:optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// session says how conversations are kept.
	// +optional
	// +k8s:optional
	Session *AgentSession `json:"session,omitempty"`
	// memory says what tasks of the agent may recall.
	// +optional
	// +k8s:optional
	Memory *AgentMemory `json:"memory,omitempty"`
	// recording says how much of what tasks of the agent say and do is kept beside their events.
	// +optional
	// +k8s:optional
	Recording *AgentRecording `json:"recording,omitempty"`
	// rateLimit limits the model requests of all tasks of this agent.
	// +optional
	// +k8s:optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// coordination lets the agent delegate to other agents.
	// +optional
	// +k8s:optional
	Coordination *AgentCoordination `json:"coordination,omitempty"`
	// runtime makes this a coding agent with a runtime of its own.
	// +optional
	// +k8s:optional
	Runtime *AgentCodingRuntime `json:"runtime,omitempty"`
	// ttlAfterLastTask deletes the agent when it is idle for longer, and has no active task.
	// +optional
	// +k8s:optional
	TTLAfterLastTask *Duration `json:"ttlAfterLastTask,omitempty"`
}

// MemoryScope is which memories and messages a task may find.
// +enum
// +k8s:enum
type MemoryScope string

// Scopes of memories, the widest first.
const (
	// MemoryScopeNamespace is all memories of the task's namespace, and the messages of all its sessions but those of gateways.
	MemoryScopeNamespace MemoryScope = "Namespace"
	// MemoryScopeAgent is the memories for the task's agent, or for any, and the messages of the task's session.
	MemoryScopeAgent MemoryScope = "Agent"
	// MemoryScopeSession is the memories for the task's agent, or for any, that are for the task's session, or for any, and the
	// messages of that session.
	MemoryScopeSession MemoryScope = "Session"
)

// AgentMemory says what tasks of an agent may recall.
type AgentMemory struct {
	// recall is which memories the tool recall_memory may find, and which messages the tool search_transcript: Namespace,
	// Agent or Session. Arguments of the tools narrow that. What the system text of a task begins with is always that of the
	// scope Session.
	// +optional
	// +default="Namespace"
	// +k8s:optional
	Recall MemoryScope `json:"recall,omitempty"`
}

// SandboxNetwork says what programs of an agent may connect to.
// +enum
// +k8s:enum
type SandboxNetwork string

// Networks of programs.
const (
	// SandboxNetworkNone is no network, not even loopback.
	SandboxNetworkNone SandboxNetwork = "None"
	// SandboxNetworkPublic is the public internet, through an HTTP proxy that HTTP_PROXY and HTTPS_PROXY name. Private, loopback
	// and link-local addresses and the platform's server stay closed. Needs Linux 6.7 where the program runs.
	SandboxNetworkPublic SandboxNetwork = "Public"
)

// AgentSandbox says what programs that an agent runs may reach.
type AgentSandbox struct {
	// network is what they may connect to: None, or Public, which is the public internet through the HTTP proxy that their
	// environment names.
	// +optional
	// +default="None"
	// +k8s:optional
	Network SandboxNetwork `json:"network,omitempty"`
}

// AgentModel is a model and how it is called.
type AgentModel struct {
	// provider is the vendor's protocol, where there is no providerRef.
	// +optional
	// +k8s:optional
	Provider ProviderType `json:"provider,omitempty"`
	// name is the model's name; empty means the Provider's default.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Name string `json:"name,omitempty"`
	// temperature is the sampling temperature, from 0 to 2.
	// +optional
	// +k8s:optional
	Temperature *float64 `json:"temperature,omitempty"`
	// contextWindow is the size of the model's context window in tokens.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	ContextWindow *int32 `json:"contextWindow,omitempty"`
	// maxTokens limits the output of one model call, in tokens.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxTokens *int32 `json:"maxTokens,omitempty"`
	// fallbacks are tried in order when the model cannot be reached.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=16
	// +listType=atomic
	Fallbacks []ModelFallback `json:"fallbacks,omitempty"`
}

// ModelFallback is a model that is tried when the one before it cannot be reached.
type ModelFallback struct {
	// providerRef is the Provider of the model; unset means the Agent's.
	// +optional
	// +k8s:optional
	ProviderRef *NamespacedReference `json:"providerRef,omitempty"`
	// model is the model's name; empty means the Provider's default.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Model string `json:"model,omitempty"`
}

// AgentSystemPrompt is an instruction, in place or in a ConfigMap. At most one
// of the two is set.
type AgentSystemPrompt struct {
	// inline is the text of the instruction.
	// +optional
	// +k8s:optional
	Inline string `json:"inline,omitempty"`
	// configMapRef is a ConfigMap key with the text.
	// +optional
	// +k8s:optional
	ConfigMapRef *KeyReference `json:"configMapRef,omitempty"`
}

// AgentTool is a tool that an agent may use.
type AgentTool struct {
	// name is the name of a built-in tool or of a Tool of the same namespace.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	Name string `json:"name"`
	// enabled turns the tool on.
	// +optional
	// +default=true
	// +k8s:optional
	Enabled *bool `json:"enabled,omitempty"`
}

// SessionPersistence says where a conversation was once kept. It is accepted
// for old manifests and has no effect.
// +enum
// +k8s:enum
type SessionPersistence string

// Session persistence.
const (
	PersistenceConfigMap SessionPersistence = "configmap"
	PersistencePVC       SessionPersistence = "pvc"
	PersistenceNone      SessionPersistence = "none"
)

// AgentSession says how an agent's conversations are kept.
type AgentSession struct {
	// persistence is configmap, pvc or none. It is accepted for old manifests and has no effect.
	// +optional
	// +default="configmap"
	// +k8s:optional
	Persistence SessionPersistence `json:"persistence,omitempty"`
	// ttl is how long an idle session is kept.
	// +optional
	// +k8s:optional
	TTL *Duration `json:"ttl,omitempty"`
	// maxMessages is how many of the newest messages of its session a task of the agent reads whose sessionRef.maxMessages is the
	// default, 50.
	// +optional
	// +default=50
	// +k8s:optional
	// +k8s:minimum=1
	MaxMessages *int32 `json:"maxMessages,omitempty"`
}

// AnyAgent as the name in spec.coordination.allowedAgents stands for every agent.
const AnyAgent = "*"

// AgentCoordination lets an agent delegate to other agents and work in iterations.
type AgentCoordination struct {
	// enabled gives the agent the coordination tools.
	// +optional
	// +k8s:optional
	Enabled bool `json:"enabled,omitempty"`
	// allowedAgents are the agents that may be delegated to, beside those that tasks of this agent create. An empty list
	// admits none. A namespace that is not given is that of this agent. The name * stands for every agent of the namespace,
	// or of all namespaces if none is given.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +k8s:eachVal=+k8s:opaqueType
	// +listType=atomic
	AllowedAgents []NamespacedReference `json:"allowedAgents,omitempty"`
	// maxConcurrentChildren limits the active children of one task.
	// +optional
	// +default=5
	// +k8s:optional
	// +k8s:minimum=1
	MaxConcurrentChildren *int32 `json:"maxConcurrentChildren,omitempty"`
	// maxDepth limits how deep delegation may nest, from 1 to 10.
	// +optional
	// +default=3
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=10
	MaxDepth *int32 `json:"maxDepth,omitempty"`
	// maxTasks limits how many tasks may be delegated in one tree, on all its levels together. Tasks that have ended count
	// until they are deleted. Below a task, no agent allows more than this task's agent does. The server has a limit for all
	// trees, too (--tree-tasks).
	// +optional
	// +default=200
	// +k8s:optional
	// +k8s:minimum=1
	MaxTasks *int32 `json:"maxTasks,omitempty"`
	// autonomous makes the agent work in iterations until its goal is complete.
	// +optional
	// +k8s:optional
	Autonomous bool `json:"autonomous,omitempty"`
	// maxIterations limits the iterations; 0 means no limit.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	MaxIterations int32 `json:"maxIterations,omitempty"`
	// approvalRequiredTools are the tools that wait for a person's approval before each call, even if enabled is not set. For an agent
	// with a runtime they are names that the coding agent gives its tools, or kinds of tools (see spec.kind of ToolCall), in any case;
	// bash means all commands.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +listType=set
	// +k8s:listType=set
	ApprovalRequiredTools []string `json:"approvalRequiredTools,omitempty"`
	// approvalTimeout is how long a decision may take; then the approval expires
	// and the call is not made. Without it an approval waits as long as its task.
	// +optional
	// +k8s:optional
	ApprovalTimeout *Duration `json:"approvalTimeout,omitempty"`
}

// AgentRuntimeType names a coding agent.
// +enum
// +k8s:enum
type AgentRuntimeType string

// Coding agents.
const (
	RuntimeClaude   AgentRuntimeType = "claude"
	RuntimeCodex    AgentRuntimeType = "codex"
	RuntimeCopilot  AgentRuntimeType = "copilot"
	RuntimeOpenCode AgentRuntimeType = "opencode"
)

// RuntimeContractVersion names the protocol between the platform and a runtime.
// +enum
// +k8s:enum
type RuntimeContractVersion string

// Contract versions.
const (
	HarnessV1 RuntimeContractVersion = "platform.harness.v1"
	HarnessV2 RuntimeContractVersion = "platform.harness.v2"
)

// ReasoningEffort is how hard a model is asked to think.
// +enum
// +k8s:enum
type ReasoningEffort string

// Reasoning efforts, lowest first. ReasoningMax is for claude only.
const (
	ReasoningLow    ReasoningEffort = "low"
	ReasoningMedium ReasoningEffort = "medium"
	ReasoningHigh   ReasoningEffort = "high"
	ReasoningXHigh  ReasoningEffort = "xhigh"
	ReasoningMax    ReasoningEffort = "max"
)

// AgentCodingRuntime is the runtime of a coding agent. Exactly one of type and
// runtimeRef is set.
type AgentCodingRuntime struct {
	// type is a coding agent that the platform runs: claude, codex, copilot or opencode.
	// +optional
	// +k8s:optional
	Type AgentRuntimeType `json:"type,omitempty"`
	// runtimeRef is an AgentRuntime that was registered.
	// +optional
	// +k8s:optional
	RuntimeRef *LocalReference `json:"runtimeRef,omitempty"`
	// contractVersion is the protocol with the runtime: platform.harness.v1 or platform.harness.v2. It cannot be changed.
	// +optional
	// +k8s:optional
	// +k8s:immutable
	ContractVersion RuntimeContractVersion `json:"contractVersion,omitempty"`
	// defaultMaxTurns limits the prompt loop where the task does not, from 1 to 1000 turns.
	// +optional
	// +default=50
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=1000
	DefaultMaxTurns *int32 `json:"defaultMaxTurns,omitempty"`
	// defaultAllowedTools are the tools where the task names none. Unset means the runtime's own; an empty list allows none.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +listType=atomic
	DefaultAllowedTools []string `json:"defaultAllowedTools,omitzero"`
	// defaultAllowBash allows shell commands where the task does not say.
	// +optional
	// +default=true
	// +k8s:optional
	DefaultAllowBash *bool `json:"defaultAllowBash,omitempty"`
	// defaultReasoningEffort is low, medium, high or xhigh for codex, also max for claude, and refused for the others.
	// +optional
	// +k8s:optional
	DefaultReasoningEffort ReasoningEffort `json:"defaultReasoningEffort,omitempty"`
}

// AgentStatus is what is observed of an agent.
type AgentStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ready is set when everything that the agent refers to was found.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// activeTasks is the number of active tasks of the agent.
	// +optional
	ActiveTasks int32 `json:"activeTasks,omitempty"`
	// lastUsed is when a task of the agent last ended.
	// +optional
	// +k8s:optional
	LastUsed *metav1.Time `json:"lastUsed,omitempty"`
	// conditions are the conditions of the object: Ready.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
