// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/acp"
)

// bash is the name by which lists of tools mean all commands.
const bash = "bash"

// rules are what a task and its Agent say about the tools of a coding agent. A name in them is the agent's own name of a tool, or one of
// the kinds of the protocol, in any case; Bash also means execute.
type rules struct {
	// limited is set if only allowed tools may be used.
	limited             bool
	allowed, disallowed []string
	bash                bool
	gated               []string
}

// rulesOf returns the rules of a task. Its own settings replace those of its Agent.
func rulesOf(t *v1alpha1.Task, p *plan.Plan) rules {
	agent := p.Agent.Spec.Runtime
	own := ptr.Deref(t.Spec.AgentRuntime, v1alpha1.TaskAgentRuntime{})
	r := rules{allowed: agent.DefaultAllowedTools, disallowed: own.DisallowedTools, bash: ptr.Deref(agent.DefaultAllowBash, true), gated: p.Gated}
	if own.AllowedTools != nil {
		r.allowed = own.AllowedTools
	}
	r.limited = r.allowed != nil
	r.bash = ptr.Deref(own.AllowBash, r.bash)
	return r
}

// refuse returns why a call may not be made; empty if it may.
func (r rules) refuse(c *acp.Call) string {
	switch {
	case c.Kind == acp.KindExecute && !r.bash:
		return "the task does not allow commands (allowBash)"
	case names(r.disallowed, c):
		return "the task does not allow this tool (disallowedTools)"
	case r.limited && !names(r.allowed, c):
		return "the task does not allow this tool (allowedTools)"
	}
	return ""
}

// allows reports whether the lists leave a tool of the platform.
func (r rules) allows(name string) bool {
	is := func(other string) bool { return strings.EqualFold(name, other) }
	return !slices.ContainsFunc(r.disallowed, is) && (!r.limited || slices.ContainsFunc(r.allowed, is))
}

// gates reports whether people have to approve a call.
func (r rules) gates(c *acp.Call) bool { return names(r.gated, c) }

// names reports whether a list names the tool of a call.
func names(list []string, c *acp.Call) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return strings.EqualFold(name, c.Kind) || c.Tool != "" && strings.EqualFold(name, c.Tool) || c.Kind == acp.KindExecute && strings.EqualFold(name, bash)
	})
}

// ToolPolicy returns the rules for a runtime that is to keep to them itself, too; nil if they restrict nothing.
func (t *Talk) ToolPolicy() *v1alpha1.AgentRuntimeToolPolicy { return t.rules.policy() }

func (r rules) policy() *v1alpha1.AgentRuntimeToolPolicy {
	if !r.limited && len(r.disallowed)+len(r.gated) == 0 && r.bash {
		return nil
	}
	return &v1alpha1.AgentRuntimeToolPolicy{AllowedTools: r.allowed, DisallowedTools: r.disallowed, AllowBash: &r.bash, ApprovalRequiredTools: r.gated}
}
