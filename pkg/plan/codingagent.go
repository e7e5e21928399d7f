// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/support"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// codingAgent plans a task of type agent: a coding agent of the type that the Agent names, or one at the runtime that it names. It has
// tools and a model of its own, and gets tools of the platform beside them. One of a type gets the system text as a part of its prompt.
func (m *maker) codingAgent(ctx context.Context, t *v1alpha1.Task) error {
	p := m.plan
	if !PromptInSession(&t.Spec) {
		p.Prompt = Prompt(&t.Spec)
	}
	if err := m.agent(ctx, t); err != nil {
		return err
	}
	if p.Agent == nil || p.Agent.Spec.Runtime == nil {
		return refusal.New(v1alpha1.ReasonIncompatibleAgent, "a task of type agent needs an agent with spec.runtime")
	}
	if elsewhere(p.Agent) {
		if err := m.remoteAgent(ctx); err != nil {
			return err
		}
	} else if err := m.localAgent(); err != nil {
		return err
	}
	uses := UsesOf(t, p.Agent)
	names, left := agentTools(p.Agent, uses)
	for _, name := range left {
		p.Notes = append(p.Notes, support.RuntimeTool(name))
	}
	if err := m.tools(ctx, names); err != nil {
		return err
	}
	p.Gated, p.ApprovalTimeout = m.accounts.gated(uses), approvalTimeout(p.Agent.Spec.Coordination)
	if err := m.system(ctx, uses); err != nil {
		return err
	}
	return p.fits()
}

// agentTools divides the tools of an Agent into those that a coding agent gets, and those named that it does not get. One at a registered
// runtime gets none of the platform's, and no agent gets those for which it has its own.
func agentTools(a *v1alpha1.Agent, uses *Uses) (names []types.NamespacedName, left []string) {
	for _, key := range uses.Tools {
		b, ok := builtin.Find(key.Name)
		switch {
		case !elsewhere(a) && (!ok || b.In&builtin.Agents != 0):
			names = append(names, key)
		case slices.ContainsFunc(a.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == key.Name }):
			left = append(left, key.Name)
		}
	}
	return names, left
}

// localAgent checks that the coding agent can be run at the place.
func (m *maker) localAgent() error {
	p, kind := m.plan, m.plan.Agent.Spec.Runtime.Type
	if m.place.NoPrograms != "" {
		return refusal.New(v1alpha1.ReasonSandboxUnavailable, "%s", m.place.NoPrograms)
	}
	if m.place.NoNetwork != "" { // it reaches its models through a port of its worker, and nothing else
		return refusal.New(v1alpha1.ReasonSandboxUnavailable, "%s", m.place.NoNetwork)
	}
	if why := m.place.Runtime(kind); why != "" {
		return refusal.New(v1alpha1.ReasonRuntimeNotAvailable, "agent %q: spec.runtime.type: %s", p.Agent.Name, why)
	}
	return nil
}

// MaxTurns returns how often the coding agent of a task may ask its model; 0 if neither the task nor its Agent says so.
func MaxTurns(t *v1alpha1.Task, a *v1alpha1.Agent) int32 {
	most := ptr.Deref(a.Spec.Runtime.DefaultMaxTurns, 0)
	if own := t.Spec.AgentRuntime; own != nil {
		most = ptr.Deref(own.MaxTurns, most)
	}
	return most
}
