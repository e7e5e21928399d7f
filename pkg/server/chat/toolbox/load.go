// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// loadable are the intents that load_tools knows.
var loadable = []builtin.Intent{builtin.Create, builtin.Change, builtin.Delete, builtin.PullRequests}

// loadTools offers the tools for an intent that the user's words do not show to the server: they may be of any language. The model
// repeats the words. That binds what is loaded to something that the user has said, and it is the model that understands it.
func (b *Box) loadTools(ctx context.Context, a builtin.LoadToolsArguments) (any, error) {
	if words := plain(a.Words); words == "" || !slices.ContainsFunc(b.Said, func(said string) bool { return strings.Contains(plain(said), words) }) {
		return nil, tool.InvalidArguments("words: no message of the user has these words").
			Suggest("repeat the user's words exactly; if the user has not asked for this, do without these tools")
	}
	intent := loadable[slices.Index([]string{"create", "change", "delete", "pull_requests"}, a.For)]
	tools, err := b.serve(ctx, func(of *builtin.Tool) bool {
		_, has := b.catalogue.Definition(of.Name)
		return of.Asked == intent && !has
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := b.catalogue.Add(tools...); err != nil {
		return nil, err
	}
	names := []string{}
	for _, t := range tools {
		names = append(names, t.Definition().Name)
	}
	return loadedTools{names}, nil
}

// loadedTools is the result of load_tools.
type loadedTools struct {
	Loaded []string `json:"loaded"`
}

// plain is a text without differences of case and white space, which models do not keep when they repeat it.
func plain(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// Said returns what the user has said in a conversation.
func Said(message string, history []v1alpha1.SessionMessage) []string {
	said := []string{message}
	for _, m := range history {
		if m.Role == v1alpha1.RoleUser {
			said = append(said, m.Content)
		}
	}
	return said
}

// LoadAgain offers what a turn had loaded before it was interrupted, by the messages that it had added to the conversation.
func (b *Box) LoadAgain(ctx context.Context, messages []llm.Message) {
	for _, m := range messages {
		if m.Role != llm.RoleAssistant {
			continue
		}
		for _, c := range m.ToolCalls {
			if c.Name == builtin.ChatLoadTools.Name {
				b.catalogue.Call(ctx, c.Name, c.Arguments)
			}
		}
	}
}
