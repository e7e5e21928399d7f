// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestChatFlags: the flags of chats default to environment variables, and a variable that is no value of its flag keeps a server
// from starting.
func TestChatFlags(t *testing.T) {
	options := func(args ...string) (*Options, error) {
		o := &Options{Chat: ChatDefaults()}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addChatFlags(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return o, o.checkChat()
	}
	for name, value := range map[string]string{
		"ENABLED": "false", "PROVIDER": "p", "MODEL": "m", "MAX_ITERATIONS": "7", "MAX_DURATION": "2m", "TOOL_TIMEOUT": "3s", "MAX_CONCURRENT": "4",
		"MAX_TASKS_PER_TURN": "0", "MAX_PREMATURE_END_RETRIES": "0", "MAX_SESSION_SIZE": "99",
	} {
		t.Setenv("PLATFORM_CHAT_"+name, value)
	}
	o, err := options("--chat-max-iterations=8")
	l := o.Chat
	if err != nil || l.Enabled || l.Provider != "p" || l.Model != "m" || l.MaxIterations != 8 || l.MaxDuration != 2*time.Minute || l.ToolTimeout != 3*time.Second ||
		l.MaxConcurrent != 4 || l.MaxTasksPerTurn != 0 || l.MaxPrematureEnds != 0 || l.MaxSessionBytes != 99 {
		t.Errorf("%+v, %v", l, err)
	}
	for name, want := range map[string]string{
		"ENABLED": "must be true or false", "MAX_ITERATIONS": "must be a number", "MAX_DURATION": "must be a duration", "MAX_SESSION_SIZE": "must be a number",
	} {
		t.Setenv("PLATFORM_CHAT_"+name, "x")
		if _, err := options(); err == nil || !strings.Contains(err.Error(), "PLATFORM_CHAT_"+name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		t.Setenv("PLATFORM_CHAT_"+name, "")
	}
	t.Setenv("PLATFORM_CHAT_MAX_ITERATIONS", "0")
	if _, err := options(); err == nil || !strings.Contains(err.Error(), "--chat-max-iterations must be at least 1") {
		t.Errorf("no iterations: %v", err)
	}
}

// TestClientTools: tools that clients of the vendors' APIs bring are passed on unless the flag or its variable says otherwise.
func TestClientTools(t *testing.T) {
	for value, valid := range map[string]bool{"": true, ClientToolsPass: true, ClientToolsDrop: true, "keep": false} {
		t.Setenv("PLATFORM_COMPAT_CLIENT_TOOLS", value)
		o := &Options{Chat: ChatDefaults()}
		o.addChatFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
		if err := o.checkChat(); (err == nil) != valid || value != "" && o.CompatClientTools != value {
			t.Errorf("%q: %q, %v", value, o.CompatClientTools, err)
		}
	}
}
