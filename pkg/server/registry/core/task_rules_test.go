// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestTaskRules(t *testing.T) {
	coretest.Rules(t, "Task", [][3]string{
		{"minimal", `{type: container}`, ""},
		{"no type", `{command: [x]}`, "spec.type: Required"},
		{"unknown type", `{type: robot}`, `spec.type: supported values: "agent", "ai", "container"`},
		{"priority", `{type: container, priority: 1001}`, "spec.priority: must be less than or equal to 1000"},
		{"negative priority", `{type: container, priority: -1}`, "spec.priority: must be greater than or equal to 0"},
		{"maxRetries", `{type: container, retryPolicy: {maxRetries: -1}}`, "spec.retryPolicy.maxRetries: must be greater than or equal to 0"},
		{"concurrency", `{type: container, concurrencyPolicy: Replace}`, "spec.concurrencyPolicy: supported values"},
		{"session name", `{type: container, sessionRef: {name: ""}}`, "spec.sessionRef.name: Required"},
		{"session messages", `{type: container, sessionRef: {name: s, maxMessages: 0}}`, "spec.sessionRef.maxMessages: greater than or equal to 1"},
		{"agent name", `{type: container, agentRef: {name: "a b"}}`, "spec.agentRef.name: "},
		{"turns", `{type: agent, prompt: p, agentRef: {name: a}, agentRuntime: {maxTurns: 1001}}`, "spec.agentRuntime.maxTurns: less than or equal to 1000"},
		{"title", `{type: agent, prompt: p, agentRef: {name: a}, workspace: {prTitle: "` + strings.Repeat("x", 257) + `"}}`, "spec.workspace.prTitle: more than 256"},
		{"env twice", `{type: container, env: [{name: A}, {name: A}]}`, "spec.env[1]: Duplicate"},
		{"requester", `{type: container, requestedBy: {subject: me}}`, "spec.requestedBy: set by the server"},
	})
}
