// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestAgentRules(t *testing.T) {
	coretest.Rules(t, "Agent", [][3]string{
		{"empty", `{}`, ""},
		{"provider and runtime", `{providerRef: {name: p}, runtime: {type: codex}}`, "spec.providerRef: cannot be set together with runtime"},
		{"runtime of nothing", `{runtime: {}}`, "spec.runtime: one of type and runtimeRef"},
		{"two runtimes", `{runtime: {type: codex, runtimeRef: {name: r}}}`, "spec.runtime.runtimeRef: cannot be set together with type"},
		{"effort", `{runtime: {type: codex, defaultReasoningEffort: xhigh}}`, ""},
		{"most effort", `{runtime: {type: claude, defaultReasoningEffort: max}}`, ""},
		{"too much effort", `{runtime: {type: codex, defaultReasoningEffort: max}}`, "spec.runtime.defaultReasoningEffort: only the runtime claude"},
		{"effort of copilot", `{runtime: {type: copilot, defaultReasoningEffort: low}}`, "spec.runtime.defaultReasoningEffort: only the runtimes claude and codex"},
		{"contract", `{runtime: {type: codex, contractVersion: v3}}`, "spec.runtime.contractVersion: supported values"},
		{"temperature", `{model: {temperature: -0.1}}`, "spec.model.temperature: between 0 and 2"},
		{"fallback to nothing", `{model: {fallbacks: [{model: m}, {}]}}`, "spec.model.fallbacks[1]: providerRef or model"},
		{"output beyond the window", `{model: {contextWindow: 10, maxTokens: 11}}`, "spec.model.maxTokens: not be greater than contextWindow"},
		{"two prompts", `{systemPrompt: {inline: x, configMapRef: {name: c, key: k}}}`, "spec.systemPrompt.configMapRef: cannot be set together with inline"},
		{"two skills in one", `{skills: [{name: s, configMapRef: {name: c, key: k}}]}`, "spec.skills[0]: only one of"},
		{"tool twice", `{tools: [{name: t}, {name: t}]}`, "spec.tools[1]: Duplicate"},
		{"depth", `{coordination: {maxDepth: 11}}`, "spec.coordination.maxDepth: less than or equal to 10"},
		{"children", `{coordination: {maxConcurrentChildren: 0}}`, "spec.coordination.maxConcurrentChildren: greater than or equal to 1"},
		{"all agents", `{coordination: {allowedAgents: [{name: "*"}, {name: "*", namespace: other}]}}`, ""},
		{"a pattern of agents", `{coordination: {allowedAgents: [{name: "a*"}]}}`, "spec.coordination.allowedAgents[0].name: a lowercase RFC 1123 subdomain"},
		{"an agent without a name", `{coordination: {allowedAgents: [{name: a}, {namespace: b}]}}`, "spec.coordination.allowedAgents[1].name: must name an agent"},
		{"agents of no namespace", `{coordination: {allowedAgents: [{name: a, namespace: B/C}]}}`, "spec.coordination.allowedAgents[0].namespace: a lowercase RFC 1123 label"},
		{"ttl", `{ttlAfterLastTask: 0s}`, "spec.ttlAfterLastTask: greater than zero"},
	})
}
