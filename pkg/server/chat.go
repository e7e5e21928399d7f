// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/envflag"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/registry/core/session"
)

// ChatDefaults are the default limits of chats.
func ChatDefaults() chat.Limits {
	return chat.Limits{
		Enabled: true, MaxIterations: 50, MaxDuration: 30 * time.Minute, ToolTimeout: time.Minute, MaxConcurrent: 10, MaxTasksPerTurn: 5,
		MaxPrematureEnds: 3,
		MaxSessionBytes:  session.DefaultChatBytes,
	}
}

// addChatFlags binds the limits of chats to flags, whose defaults are in environment variables of the same name.
func (o *Options) addChatFlags(flags *pflag.FlagSet) {
	l, fs := &o.Chat, envflag.Set{FlagSet: flags}
	fs.Bool(&l.Enabled, "chat-enabled", l.Enabled, "answer chats, and give models the server's tools at /openai/v1 and /anthropic/v1; if false, chats are refused (403), and these APIs only pass requests on. This and all other --chat flags default to an environment variable, such as PLATFORM_CHAT_ENABLED")
	fs.Text(&l.Provider, "chat-provider", l.Provider, "name of the Provider for chats that name no Provider; empty is \"default\"")
	fs.Text(&l.Model, "chat-model", l.Model, "model that answers chats if neither the chat, its agent nor the Provider names one")
	fs.Int(&l.MaxIterations, "chat-max-iterations", l.MaxIterations, "how often the model is asked in one turn of a chat; then it has to sum up")
	fs.Duration(&l.MaxDuration, "chat-max-duration", l.MaxDuration, "how long one turn of a chat may take")
	fs.Duration(&l.ToolTimeout, "chat-tool-timeout", l.ToolTimeout, "how long one call of a tool of a chat may take")
	fs.Int(&l.MaxConcurrent, "chat-max-concurrent", l.MaxConcurrent, "turns of chats that run at once; more are refused with 429")
	fs.Int(&l.MaxTasksPerTurn, "chat-max-tasks-per-turn", l.MaxTasksPerTurn, "tasks that one turn of a chat may create")
	fs.Int(&l.MaxPrematureEnds, "chat-max-premature-end-retries", l.MaxPrematureEnds, "how often a model is told to go on: in a chat if tasks of the chat still run when it answers; at /openai/v1 and /anthropic/v1 if its answer does not state whether the goal is reached")
	fs.Int64(&l.MaxSessionBytes, "chat-max-session-size", l.MaxSessionBytes, "bytes of a chat's session beyond which its oldest messages are removed; the first one of the user stays")
	fs.Text(&o.CompatClientTools, "compat-client-tools", ClientToolsPass, "requests to /openai/v1/chat/completions and /anthropic/v1/messages that bring tools of the client's own, and no header X-Platform-Tools: \"pass\" passes them on, as X-Platform-Tools: disabled does; \"drop\" gives the model the server's tools instead of them, as X-Platform-Tools: enabled does")
	o.invalidChat = fs.Check()
}

// What becomes of the tools that clients of the vendors' APIs bring.
const (
	ClientToolsPass = "pass"
	ClientToolsDrop = "drop"
)

func (o *Options) checkChat() error {
	switch l := &o.Chat; {
	case o.invalidChat != nil:
		return o.invalidChat
	case o.CompatClientTools != "" && o.CompatClientTools != ClientToolsPass && o.CompatClientTools != ClientToolsDrop:
		return errors.New("--compat-client-tools must be pass or drop")
	case l.MaxIterations < 1:
		return errors.New("--chat-max-iterations must be at least 1")
	case l.MaxDuration <= 0:
		return errors.New("--chat-max-duration must be positive")
	case l.ToolTimeout <= 0:
		return errors.New("--chat-tool-timeout must be positive")
	case l.MaxConcurrent < 1:
		return errors.New("--chat-max-concurrent must be at least 1; --chat-enabled=false answers no chats")
	case l.MaxTasksPerTurn < 0:
		return errors.New("--chat-max-tasks-per-turn must not be negative")
	case l.MaxPrematureEnds < 0:
		return errors.New("--chat-max-premature-end-retries must not be negative")
	case l.MaxSessionBytes < 1:
		return errors.New("--chat-max-session-size must be at least 1")
	}
	return nil
}
