// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

// AITaskArguments are the arguments of create_ai_task.
type AITaskArguments struct {
	Name        string `json:"name" desc:"Short name; the task's whole name is in the result" minLength:"1"`
	Prompt      string `json:"prompt" desc:"What the task is to do, with everything it needs to know" minLength:"1"`
	AgentRef    string `json:"agentRef,omitempty" desc:"Name of an existing agent"`
	ProviderRef string `json:"providerRef,omitempty" desc:"Name of a provider; default: that of the agent, or else that of this chat"`
	Namespace   string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Timeout     string `json:"timeout,omitempty" desc:"How long it may take, such as 20m"`
	Priority    *int32 `json:"priority,omitempty" desc:"From 0 to 1000; higher starts earlier" minimum:"0" maximum:"1000"`
	SessionRef  string `json:"sessionRef,omitempty" desc:"Name of a session whose history the task reads and continues; it is created if it does not exist"`
	Schedule    string `json:"schedule,omitempty" desc:"Cron expression; the task then runs again and again"`
}

// ContainerTaskArguments are the arguments of create_container_task.
type ContainerTaskArguments struct {
	Name      string              `json:"name" desc:"Short name; the task's whole name is in the result" minLength:"1"`
	Image     string              `json:"image,omitempty" desc:"Container image; default: the platform's own"`
	Command   []string            `json:"command,omitempty" desc:"The program and its first arguments, such as [\"sh\", \"-c\", \"make test\"]; default: that of the image"`
	Args      []string            `json:"args,omitempty" desc:"More arguments"`
	Workspace *WorkspaceArguments `json:"workspace,omitempty" desc:"Repository that the command runs in"`
	PriorTask string              `json:"prior_task,omitempty" desc:"Name of a task whose changes are applied before"`
	Namespace string              `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Timeout   string              `json:"timeout,omitempty" desc:"How long it may take, such as 20m"`
	Priority  *int32              `json:"priority,omitempty" desc:"From 0 to 1000; higher starts earlier" minimum:"0" maximum:"1000"`
	Schedule  string              `json:"schedule,omitempty" desc:"Cron expression; the task then runs again and again"`
}

// AgentTaskArguments are the arguments of create_agent_task.
type AgentTaskArguments struct {
	Name      string                   `json:"name" desc:"Short name; the task's whole name is in the result" minLength:"1"`
	Prompt    string                   `json:"prompt" desc:"What the task is to do" minLength:"1"`
	AgentRef  string                   `json:"agentRef" desc:"Name of an existing agent with a runtime" minLength:"1"`
	Namespace string                   `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Timeout   string                   `json:"timeout,omitempty" desc:"How long it may take, such as 20m"`
	Workspace *AgentWorkspaceArguments `json:"workspace,omitempty" desc:"Repository that the agent works on"`
	MaxTurns  *int32                   `json:"maxTurns,omitempty" desc:"How many turns the runtime may take" minimum:"1" maximum:"1000"`
	Schedule  string                   `json:"schedule,omitempty" desc:"Cron expression; the task then runs again and again"`
}

// TaskArguments are the arguments of tools for one task.
type TaskArguments struct {
	Name      string `json:"name" desc:"Whole name of the task" minLength:"1"`
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
}

// WaitArguments are the arguments of wait_for_task.
type WaitArguments struct {
	Name      string `json:"name" desc:"Whole name of the task" minLength:"1"`
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Timeout   *int64 `json:"timeout,omitempty" desc:"Seconds to wait: 30 by default, at most 60" minimum:"1" maximum:"60"`
}

// NamespaceArguments are the arguments of list_agents and list_tools.
type NamespaceArguments struct {
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
}

// ListTasksArguments are the arguments of list_tasks.
type ListTasksArguments struct {
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Status    string `json:"status,omitempty" desc:"Only tasks of this phase" enum:"Pending,Running,Finalizing,Succeeded,Failed,Cancelled,Scheduled"`
	Limit     *int64 `json:"limit,omitempty" desc:"How many: 20 by default, at most 100" minimum:"1"`
}

// CreateAgentArguments are the arguments of create_agent.
type CreateAgentArguments struct {
	Name          string             `json:"name" desc:"Name of the agent: lower-case letters, digits and dashes" minLength:"1"`
	Namespace     string             `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	ProviderRef   string             `json:"providerRef,omitempty" desc:"Name of a provider; default: that of this chat"`
	SystemPrompt  string             `json:"systemPrompt,omitempty" desc:"Instructions of the agent"`
	Tools         []string           `json:"tools,omitempty" desc:"Names of tools that it may use"`
	Model         *AgentModel        `json:"model,omitempty"`
	Resources     *AgentResources    `json:"resources,omitempty" desc:"What the agent's tasks get of a machine"`
	Runtime       *AgentRuntime      `json:"runtime,omitempty" desc:"Makes it a coding agent with a runtime of its own, and without a provider"`
	Coordination  *AgentCoordination `json:"coordination,omitempty"`
	InitialPrompt string             `json:"initialPrompt,omitempty" desc:"Prompt of a first task, which is created, too"`
}

// UpdateAgentArguments are the arguments of update_agent.
type UpdateAgentArguments struct {
	Name         string      `json:"name" desc:"Name of the agent" minLength:"1"`
	Namespace    string      `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	SystemPrompt *string     `json:"systemPrompt,omitempty" desc:"New instructions"`
	Tools        *[]string   `json:"tools,omitempty" desc:"All tools that it may use from now on"`
	Model        *AgentModel `json:"model,omitempty" desc:"What changes of its model"`
}

// AgentModel is the model of an agent, or what changes of it.
type AgentModel struct {
	Provider      string   `json:"provider,omitempty" desc:"Name of a provider; the same as providerRef"`
	Name          string   `json:"name,omitempty" desc:"Name of the model; default: that of the provider"`
	Temperature   *float64 `json:"temperature,omitempty" desc:"From 0 to 2" minimum:"0" maximum:"2"`
	ContextWindow *int32   `json:"contextWindow,omitempty" minimum:"1"`
	MaxTokens     *int32   `json:"maxTokens,omitempty" desc:"Most tokens of one answer" minimum:"1"`
}

// AgentCoordination says to whom an agent delegates.
type AgentCoordination struct {
	Enabled               bool            `json:"enabled,omitempty" desc:"Lets the agent delegate to others"`
	MaxConcurrentChildren *int32          `json:"maxConcurrentChildren,omitempty" desc:"5 by default" minimum:"1"`
	MaxDepth              *int32          `json:"maxDepth,omitempty" desc:"3 by default" minimum:"1"`
	AllowedAgents         []NameArguments `json:"allowedAgents,omitempty" desc:"Agents that it may delegate to; without any it may delegate to none. The name * stands for all"`
}

// AgentRuntime makes an agent a coding agent.
type AgentRuntime struct {
	Type                string    `json:"type" desc:"The coding agent" enum:"claude,codex,copilot,opencode"`
	DefaultAllowedTools *[]string `json:"defaultAllowedTools,omitempty" desc:"Tools of the runtime that tasks may use; default: the runtime's own"`
	DefaultAllowBash    *bool     `json:"defaultAllowBash,omitempty" desc:"Whether tasks may run shell commands; default: yes"`
}

// AgentResources are what the tasks of an agent get of a machine.
type AgentResources struct {
	Requests *AgentQuantities `json:"requests,omitempty" desc:"What is reserved"`
	Limits   *AgentQuantities `json:"limits,omitempty" desc:"What cannot be exceeded"`
}

// AgentQuantities are amounts of what a machine has.
type AgentQuantities struct {
	CPU              string `json:"cpu,omitempty" desc:"Such as 500m or 2"`
	Memory           string `json:"memory,omitempty" desc:"Such as 512Mi or 2Gi"`
	EphemeralStorage string `json:"ephemeral-storage,omitempty" desc:"Disk for temporary files, such as 1Gi"`
}

// NameArguments are the arguments of tools for one object, and the name of an agent.
type NameArguments struct {
	Name      string `json:"name" minLength:"1"`
	Namespace string `json:"namespace,omitempty"`
}

// LoadToolsArguments are the arguments of load_tools.
type LoadToolsArguments struct {
	For   string `json:"for" desc:"What the user wants" enum:"create,change,delete,pull_requests"`
	Words string `json:"words" desc:"The words with which the user asks for it, exactly as they wrote them in a message of this conversation" minLength:"1"`
}

// CreateToolArguments are the arguments of create_tool.
type CreateToolArguments struct {
	Name        string `json:"name" desc:"Name of the tool: lower-case letters, digits and dashes" minLength:"1"`
	Namespace   string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	Description string `json:"description" desc:"What the tool does; models read it" minLength:"1"`
	URL         string `json:"url" desc:"Address of the HTTP endpoint" minLength:"1"`
	Method      string `json:"method,omitempty" desc:"POST by default" enum:"GET,POST,PUT,PATCH,DELETE"`
}

// DeleteSessionArguments are the arguments of delete_session.
type DeleteSessionArguments struct {
	SessionID string `json:"sessionId" desc:"Name of the session" minLength:"1"`
	Namespace string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
}

// PRMonitorArguments are the arguments of create_pr_monitor.
type PRMonitorArguments struct {
	Name              string `json:"name" desc:"Short name of the monitor; the whole name of its task is in the result" minLength:"1"`
	RepoURL           string `json:"repo_url" desc:"URL of the repository itself, without credentials, such as https://github.com/owner/repo" minLength:"1"`
	Schedule          string `json:"schedule" desc:"Cron expression: when to look" minLength:"1"`
	AgentRef          string `json:"agent_ref" desc:"Name of the agent that reviews: one of type ai whose coordination is enabled and not autonomous" minLength:"1"`
	Namespace         string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	ProviderRef       string `json:"provider_ref,omitempty" desc:"Name of a provider; default: that of the agent"`
	GitSecretRef      string `json:"gitSecretRef,omitempty" desc:"Name of a Secret with a credential for the repository; default: the first that exists of git-credentials, github-credentials, copilot-token, github-token and git-token"`
	ReadCredentialRef string `json:"readCredentialRef,omitempty" desc:"The same as gitSecretRef"`
	PerPage           *int32 `json:"per_page,omitempty" desc:"How many pull requests are read at once; 30 by default" minimum:"1" maximum:"100"`
	ReviewEvent       string `json:"review_event,omitempty" desc:"How a review ends; COMMENT by default" enum:"COMMENT,APPROVE,REQUEST_CHANGES"`
	Prompt            string `json:"prompt,omitempty" desc:"What to look at"`
}

// CheckCIArguments are the arguments of check_pull_request_ci, where there is no task but the one that is named.
type CheckCIArguments struct {
	TaskName string `json:"task_name" desc:"Whole name of a task, for its repository" minLength:"1" maxLength:"253"`
	Number   int64  `json:"pr_number" desc:"Number of the pull request" minimum:"1"`
	RepoURL  string `json:"repo_url,omitempty" desc:"Address of the repository; it must be that of the task, which is the default" maxLength:"2048"`
}

// WorkspaceArguments describe the repository that a task works on. What this server cannot do with it is refused when the
// task is created, with the reason.
type WorkspaceArguments struct {
	GitRepo                  string `json:"gitRepo" desc:"URL of the repository, without credentials" minLength:"1"`
	Branch                   string `json:"branch,omitempty" desc:"Branch to begin from; default: that of the repository"`
	Ref                      string `json:"ref,omitempty" desc:"Commit or tag to begin from"`
	SubPath                  string `json:"subPath,omitempty" desc:"Folder of the repository that becomes the root"`
	ReadCredentialRef        string `json:"readCredentialRef,omitempty" desc:"Name of a Secret whose key token reads the repository"`
	PublicationGitRepo       string `json:"publicationGitRepo,omitempty" desc:"URL of the repository that changes are pushed to"`
	PublicationCredentialRef string `json:"publicationCredentialRef,omitempty" desc:"Name of a Secret whose key token pushes"`
	PushBranch               string `json:"pushBranch,omitempty" desc:"Branch that changes are pushed to"`
}

// AgentWorkspaceArguments are those of coding agents, which may also open pull requests.
type AgentWorkspaceArguments struct {
	Intent                       string `json:"intent,omitempty" desc:"Whether changes are published; read by default" enum:"read,write"`
	GitRepo                      string `json:"gitRepo" desc:"URL of the repository, without credentials" minLength:"1"`
	Branch                       string `json:"branch,omitempty" desc:"Branch to begin from; default: that of the repository"`
	Ref                          string `json:"ref,omitempty" desc:"Commit or tag to begin from"`
	SubPath                      string `json:"subPath,omitempty" desc:"Folder of the repository that becomes the root"`
	ReadCredentialRef            string `json:"readCredentialRef,omitempty" desc:"Name of a Secret whose key token reads the repository"`
	PublicationGitRepo           string `json:"publicationGitRepo,omitempty" desc:"URL of the repository that changes are pushed to"`
	PublicationReadCredentialRef string `json:"publicationReadCredentialRef,omitempty" desc:"Name of a Secret whose key token reads that repository"`
	PublicationCredentialRef     string `json:"publicationCredentialRef,omitempty" desc:"Name of a Secret whose key token pushes"`
	ForgeCredentialRef           string `json:"forgeCredentialRef,omitempty" desc:"Name of a Secret whose key token opens pull requests"`
	PushBranch                   string `json:"pushBranch,omitempty" desc:"Branch that changes are pushed to"`
	PRBaseBranch                 string `json:"prBaseBranch,omitempty" desc:"Branch that a pull request is for"`
	CreatePR                     bool   `json:"createPR,omitempty" desc:"Whether a pull request is opened"`
}
