// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/platform-ai/platform/pkg/tool"
)

// What the user says when they want something that this version lacks. The tools for it are offered then, so that the model
// can explain why it does not work.
var (
	wantsPullRequests = regexp.MustCompile(`(?i)\b(pull.?requests?|merge.?requests?|PRs?|monitor)\b`)
	// Tools for files are asked for by their names alone, because most who speak of files do not want this server's.
	wantsFiles = regexp.MustCompile(`\bfile_(read|write)\b`)
)

// absentTools returns the tools whose calls are always refused, with the reason.
func absentTools() []entry {
	return []entry{
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
