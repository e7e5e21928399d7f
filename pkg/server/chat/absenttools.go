// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/platform-ai/platform/pkg/worker/tool"
)

// What the user says when they want something that this version lacks. The tools for it are offered then, so that the model
// can explain why it does not work.
var (
	wantsPullRequests = regexp.MustCompile(`(?i)\b(pull.?requests?|merge.?requests?|PRs?|monitor)\b`)
	// Tools for files are asked for by their names alone, because most who speak of files do not want this server's.
	wantsFiles       = regexp.MustCompile(`\bfile_(read|write)\b`)
	wantsConnections = regexp.MustCompile(`(?i)\b(connections?|connectors?|(linked|connected) accounts?)\b`)
)

// absentTools returns the tools whose calls are always refused, with the reason.
func absentTools() []entry {
	return []entry{
		operation("create_pr_monitor", "Watch the pull requests of a repository and have an agent review them. This server does not support it yet.", (*toolbox).createPRMonitor).
			when(wantsPullRequests.MatchString).again().lacking(),
		operation("list_connections", "List the accounts of other services that the user has connected. This server does not support it yet.", (*toolbox).listConnections).
			when(wantsConnections.MatchString).again().lacking(),
		refusing("create_pull_request", "Open a pull request. This server does not support it yet.", wantsPullRequests, noCodeHost),
		refusing("check_pull_request_ci", "Get the checks of a pull request. This server does not support it yet.", wantsPullRequests, noCodeHost),
		refusing("file_read", "Read a file. This server has no files for a conversation.", wantsFiles, noFiles),
		refusing("file_write", "Write a file. This server has no files for a conversation.", wantsFiles, noFiles),
	}
}

// refusing returns the entry of a tool that chats do not have and that refuses every call, whatever its arguments are.
func refusing(name, description string, wants *regexp.Regexp, why func() *tool.Error) entry {
	e := entry{name: name, make: func(*toolbox) tool.Tool {
		return refuser{tool.Definition{Name: name, Description: description, Parameters: json.RawMessage(`{"type":"object"}`)}, why}
	}}
	return e.when(wants.MatchString).again().lacking().unlessNamed()
}

// refuser is a tool that refuses every call.
type refuser struct {
	definition tool.Definition
	why        func() *tool.Error
}

// Definition accepts any arguments, so that a model reads the reason whatever it wrote.
func (r refuser) Definition() tool.Definition { return r.definition }

// Call returns the reason.
func (r refuser) Call(context.Context, json.RawMessage) (any, error) { return nil, r.why() }

func noCodeHost() *tool.Error {
	return tool.Errorf(tool.TypeUnavailable, "pull requests are not supported yet: this server has no connection to a code host").
		Suggest("tell the user")
}

func noFiles() *tool.Error {
	return tool.Errorf(tool.TypeUnavailable, "a conversation has no files: what is written on the server would be read by everybody who uses it").
		Suggest("create a task with file_read and file_write for an agent, or run a program with code_exec, and let it print what you need")
}

type prMonitorArguments struct {
	Name              string `json:"name" desc:"Name of the monitor" minLength:"1"`
	RepoURL           string `json:"repo_url" desc:"URL of the repository" minLength:"1"`
	Schedule          string `json:"schedule" desc:"Cron expression: when to look" minLength:"1"`
	AgentRef          string `json:"agent_ref" desc:"Name of the agent that reviews" minLength:"1"`
	Namespace         string `json:"namespace,omitempty" desc:"Only the namespace of this chat is possible"`
	ProviderRef       string `json:"provider_ref,omitempty" desc:"Name of a provider"`
	ReadCredentialRef string `json:"readCredentialRef,omitempty" desc:"Name of a Secret with a credential that reads the repository"`
	PerPage           *int32 `json:"per_page,omitempty" desc:"How many pull requests are read at once; 30 by default" minimum:"1" maximum:"100"`
	ReviewEvent       string `json:"review_event,omitempty" desc:"How a review ends"`
	Prompt            string `json:"prompt,omitempty" desc:"What to look at"`
}

func (*toolbox) createPRMonitor(context.Context, prMonitorArguments) (any, error) {
	return nil, tool.Errorf(tool.TypeUnavailable, "monitors of pull requests are not supported yet: this server has no connection to a code host").
		Suggest("tell the user; a task with a schedule can look at a repository with commands of its own")
}

func (*toolbox) listConnections(context.Context, whereArguments) (any, error) {
	return nil, tool.Errorf(tool.TypeUnavailable, "connections to other services are not supported yet").
		Suggest("tell the user that nobody can connect an account to this server")
}
