// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"

	"github.com/platform-ai/platform/pkg/tool"
)

// Tools that the server carries out in the name of the user who speaks to it. What such a call creates is marked with the call, so the
// call creates it once. A tool that manages objects is offered only to a user who asks for that, so that text which the model reads
// elsewhere cannot lead it to such a call in passing. What users say in English is recognised; for all else the model asks with
// load_tools, for which it has to repeat the user's own words.
var (
	ChatCreateAITask = &Tool{
		Name: "create_ai_task", Description: "Create a task in which a model works on a prompt, with the tools of an agent if one is named.",
		Schema: schema[AITaskArguments], In: Chats | APIs, Effects: Writes, Once: true,
	}
	ChatCreateContainerTask = &Tool{
		Name: "create_container_task", Description: "Create a task that runs a command. Its output is the result.",
		Schema: schema[ContainerTaskArguments], In: Chats | APIs, Effects: Writes, Once: true,
	}
	ChatCreateAgentTask = &Tool{
		Name: "create_agent_task", Description: "Create a task for an existing agent that has a coding-agent runtime.",
		Schema: schema[AgentTaskArguments], In: Chats | APIs, Effects: Writes, Once: true,
	}
	ChatCheckTaskProgress = &Tool{
		Name: "check_task_progress", Description: "Get the phase and the conditions of a task.",
		Schema: schema[TaskArguments], In: Chats | APIs, Effects: Reads,
	}
	ChatFetchTaskOutput = &Tool{
		Name: "fetch_task_output", Description: "Get the result of a task that has ended. Long results are cut.",
		Schema: schema[TaskArguments], In: Chats | APIs, Effects: Reads,
	}
	ChatWaitForTask = &Tool{
		Name: "wait_for_task", Description: "Wait until a task has ended, for at most 60 seconds; then call it again or go on.",
		Schema: schema[WaitArguments], In: Chats | APIs, Effects: Reads,
	}
	ChatCancelTask = &Tool{
		Name: "cancel_task", Description: "Cancel a task with everything that it delegated.",
		Schema: schema[TaskArguments], In: Chats | APIs, Effects: Writes,
	}
	ChatListAgents = &Tool{
		Name: "list_agents", Description: "List the agents of the namespace.",
		Schema: schema[NamespaceArguments], In: Chats | APIs, Effects: Reads,
	}
	ChatListTools = &Tool{
		Name: "list_tools", Description: "List the tools that agents of the namespace can use.",
		Schema: schema[NamespaceArguments], In: Chats, Effects: Reads,
	}
	ChatListTasks = &Tool{
		Name: "list_tasks", Description: "List tasks of the namespace, the newest first.",
		Schema: schema[ListTasksArguments], In: Chats | APIs, Effects: Reads,
	}
	ChatLoadTools = &Tool{
		Name: "load_tools", Description: "Get the tools that create, change or delete agents, tools and sessions, or work with pull requests. Only if the user asks for that, in whatever words and language.",
		Schema: schema[LoadToolsArguments], In: Chats, Effects: Reads,
	}
	ChatCreateAgent = &Tool{
		Name: "create_agent", Description: "Create an agent. With initialPrompt, also a first task of it.",
		Schema: schema[CreateAgentArguments], In: Chats | APIs, Effects: Writes, Asked: Create, Once: true,
	}
	ChatUpdateAgent = &Tool{
		Name: "update_agent", Description: "Change an agent. What is not given stays as it is.",
		Schema: schema[UpdateAgentArguments], In: Chats, Effects: Writes, Asked: Change,
	}
	ChatDeleteAgent = &Tool{
		Name: "delete_agent", Description: "Delete an agent.",
		Schema: schema[NameArguments], In: Chats, Effects: Writes, Asked: Delete,
	}
	ChatCreateTool = &Tool{
		Name: "create_tool", Description: "Create a tool that calls an HTTP endpoint.",
		Schema: schema[CreateToolArguments], In: Chats, Effects: Writes, Asked: Create, Once: true,
	}
	ChatDeleteTool = &Tool{
		Name: "delete_tool", Description: "Delete a tool of the namespace.",
		Schema: schema[NameArguments], In: Chats, Effects: Writes, Asked: Delete,
	}
	ChatDeleteSession = &Tool{
		Name: "delete_session", Description: "Delete a session with everything that was said in it.",
		Schema: schema[DeleteSessionArguments], In: Chats, Effects: Writes, Asked: Delete,
	}
	ChatCreatePRMonitor = &Tool{
		Name: "create_pr_monitor", Description: "Create a task that has an agent review the open pull requests of a repository, by a schedule.",
		Schema: schema[PRMonitorArguments], In: Chats | APIs, Effects: Writes, Asked: PullRequests, Once: true,
	}
	ChatCreatePullRequest = &Tool{
		Name: "create_pull_request", Description: "Open a pull request for the branch to which a task has published its changes. The task must have ended, and its branch must have been verified.",
		Schema: CreatePullRequest.Schema, In: Chats | APIs, Effects: Sends | Writes, Asked: PullRequests, Once: true,
	}
	ChatCheckPullRequestCI = &Tool{
		Name: "check_pull_request_ci", Description: "Get the present state of the checks of a pull request.",
		Schema: schema[CheckCIArguments], In: Chats | APIs, Effects: Sends | Reads, Asked: PullRequests,
	}
	// ChatCodeExec runs a program as a task: the server itself runs none.
	ChatCodeExec = &Tool{
		Name: "code_exec", Description: "Run a short program as a task of type container and return what it prints. Each call starts with an empty folder.",
		Schema: func() json.RawMessage { return codeSchema(Languages()) }, In: APIs, Effects: Writes | Executes, Once: true,
	}
)

// Tools that refuse every call. They are offered to users who speak of what they are for, so that the model can explain why it does
// not work.
var (
	ChatFileRead  = absent("file_read", "Read a file. This server has no files for a conversation.", Files, noFiles())
	ChatFileWrite = absent("file_write", "Write a file. This server has no files for a conversation.", Files, noFiles())
)

// absent returns a tool that refuses every call. It accepts any arguments, so that a model reads the reason whatever it wrote.
func absent(name, description string, asked Intent, why *tool.Error) *Tool {
	return &Tool{Name: name, Description: description, Schema: text(`{"type":"object"}`), In: APIs, Asked: asked, Absent: why}
}

func noFiles() *tool.Error {
	return tool.Errorf(tool.TypeUnavailable, "a conversation has no files: what is written on the server would be read by everybody who uses it").
		Suggest("create a task with file_read and file_write for an agent, or run a program with code_exec, and let it print what you need")
}
