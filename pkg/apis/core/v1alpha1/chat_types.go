// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PrefixChatSession begins the name of each session that a chat created without being given a name.
const PrefixChatSession = "chat-session-"

// CreatedByOrchestrator is the value of the label platform.ai/created-by on what a chat created.
const CreatedByOrchestrator = "orchestrator"

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Chat is one turn of a conversation with the orchestrator, a model that creates and follows tasks for the caller. It is
// created, answered in its status and not stored; the conversation is kept in a Session of type chat. With the header
// Accept: text/event-stream the answer is a stream of server-sent events. What the orchestrator does, it does as the caller:
// a caller who may not create tasks gets none.
type Chat struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the user says.
	// +required
	Spec ChatSpec `json:"spec"`
	// status is the answer. The server sets it.
	// +optional
	Status ChatStatus `json:"status,omitempty"`
}

// ChatSpec is what the user says, and how it is to be answered.
type ChatSpec struct {
	// message is what the user says. It may be as long as a request, which is 15 MiB in JSON.
	// +required
	Message string `json:"message"`
	// sessionId is the name of the Session of type chat that the turn continues. One that does not exist is created. Without
	// it, a new session is created. The caller needs get and update on that Session.
	// +optional
	SessionID string `json:"sessionId,omitempty"`
	// provider is the Provider of the namespace that answers. Default: that of the agent, then that of the server.
	// +optional
	Provider string `json:"provider,omitempty"`
	// model is the model that answers. Default: that of the agent, then that of the Provider, then that of the server.
	// +optional
	Model string `json:"model,omitempty"`
	// agentRef is the Agent of the namespace whose provider, model and temperature are the defaults of the turn.
	// +optional
	AgentRef string `json:"agentRef,omitempty"`
	// systemPrompt is appended to the instructions of the orchestrator.
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// temperature is the sampling temperature, from 0 to 2. Default: that of the agent, then that of the vendor.
	// +optional
	Temperature *float64 `json:"temperature,omitempty"`
	// maxTokens bounds each answer of the model. Default: that of the agent, then 4096.
	// +optional
	MaxTokens *int64 `json:"maxTokens,omitempty"`
	// background lets the turn go on when the client disconnects, and when the server restarts. Its frames are read at the
	// subresource turn of its session, by any number of clients. A client that does not accept a stream is answered at once,
	// with the outcome Running.
	// +optional
	Background bool `json:"background,omitempty"`
}

// ChatOutcome says how a turn ended.
type ChatOutcome string

// Outcomes of turns that have an answer, and of those that will have one.
const (
	// ChatRunning means that the turn goes on in the background.
	ChatRunning ChatOutcome = "Running"
	// ChatCompleted means that the model gave its final answer.
	ChatCompleted ChatOutcome = "Completed"
	// ChatIterationLimit means that the model used up its iterations; the message is its summary.
	ChatIterationLimit ChatOutcome = "IterationLimit"
	// ChatTimedOut means that the turn took as long as the server allows; the message says so.
	ChatTimedOut ChatOutcome = "TimedOut"
)

// ChatStatus is the answer of a turn.
type ChatStatus struct {
	// sessionId is the name of the Session that the next turn continues.
	// +optional
	SessionID string `json:"sessionId,omitempty"`
	// provider is the Provider that was asked first.
	// +optional
	Provider string `json:"provider,omitempty"`
	// model is the model that was asked first.
	// +optional
	Model string `json:"model,omitempty"`
	// message is the final text of the model.
	// +optional
	Message string `json:"message,omitempty"`
	// outcome is how the turn ended: Completed, IterationLimit or TimedOut. A turn that goes on in the background is Running.
	// +optional
	Outcome ChatOutcome `json:"outcome,omitempty"`
	// toolCalls are the calls of tools, in order.
	// +optional
	// +k8s:optional
	// +listType=atomic
	ToolCalls []ChatToolCall `json:"toolCalls,omitempty"`
	// usage is what the turn used.
	// +optional
	// +k8s:optional
	Usage *ChatUsage `json:"usage,omitempty"`
}

// ChatToolCall is one call of a tool.
type ChatToolCall struct {
	// id is the id of the call that the model chose.
	// +optional
	ID string `json:"id,omitempty"`
	// name is the name of the tool.
	// +required
	Name string `json:"name"`
	// args are the arguments, as the model wrote them; a text if they are not a JSON object.
	// +optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Args *apiextensionsv1.JSON `json:"args,omitempty" patchStrategy:"replace"`
	// result is what the model was answered: success and data, or success, error, errorType and suggestion.
	// +optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Result *apiextensionsv1.JSON `json:"result,omitempty" patchStrategy:"replace"`
}

// ChatUsage is what a turn used.
type ChatUsage struct {
	// inputTokens is the sum of reported input tokens; absent means that none were reported.
	// +optional
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens is the sum of reported output tokens; absent means that none were reported.
	// +optional
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// llmCalls is the number of requests to models, including repeated ones.
	LLMCalls int32 `json:"llmCalls"`
	// unreportedCalls is the number of requests whose tokens the vendor did not report.
	// +optional
	UnreportedCalls int32 `json:"unreportedCalls,omitempty"`
	// toolCalls is the number of calls of tools.
	ToolCalls int32 `json:"toolCalls"`
	// tasksCreated is the number of tasks that the turn created.
	TasksCreated int32 `json:"tasksCreated"`
	// duration is how long the turn took, such as 1m3.5s.
	Duration string `json:"duration"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChatConfig describes the chat of a server.
type ChatConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// enabled is whether the server answers chats.
	Enabled bool `json:"enabled"`
	// provider is the name of the Provider that answers if nothing else names one; empty means the Provider "default".
	Provider string `json:"provider"`
	// model is the model that answers if neither the chat, its agent nor the Provider names one; it may be empty.
	Model string `json:"model"`
	// maxIterations is how often the model is asked in one turn.
	MaxIterations int32 `json:"maxIterations"`
	// maxDuration is how long a turn may take, such as 30m0s.
	MaxDuration string `json:"maxDuration"`
	// toolTimeout is how long a call of a tool may take.
	ToolTimeout string `json:"toolTimeout"`
	// maxTasksPerTurn is how many tasks a turn may create.
	MaxTasksPerTurn int32 `json:"maxTasksPerTurn"`
	// maxConcurrent is how many turns run at once.
	MaxConcurrent int32 `json:"maxConcurrent"`
	// maxSessionSize is the size in bytes at which the oldest messages of a session are removed.
	MaxSessionSize int64 `json:"maxSessionSize"`
	// availableTools are the names of the tools of the orchestrator.
	// +listType=atomic
	AvailableTools []string `json:"availableTools"`
}
