// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/support"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// codingAgent plans a task of type agent: a coding agent of the type that the Agent names, or one at the runtime that it names. It has
// tools and a model of its own, and gets tools of the platform beside them. One of a type gets the system text as a part of its prompt.
func (m *maker) codingAgent(ctx context.Context, t *v1alpha1.Task) error {
	p := m.plan
	if t.Spec.SessionRef != nil {
		return refusal.New(v1alpha1.ReasonNotSupported, "spec.sessionRef: not supported yet: coding agents read and write no sessions; leave it out, and say in the prompt what the agent has to know")
	}
	p.Prompt = Prompt(&t.Spec)
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
	if err := m.agentTools(ctx, uses); err != nil {
		return err
	}
	p.Gated, p.ApprovalTimeout = uses.Gated, approvalTimeout(p.Agent.Spec.Coordination)
	if err := m.system(ctx, uses); err != nil {
		return err
	}
	return p.fits()
}

// agentTools finds the platform's tools that a coding agent gets. One at a registered runtime gets none, and no agent gets those for which
// it has its own.
func (m *maker) agentTools(ctx context.Context, uses *Uses) error {
	a := m.plan.Agent
	var names []types.NamespacedName
	for _, key := range uses.Tools {
		b, ok := builtin.Find(key.Name)
		if !elsewhere(a) && (!ok || b.In&builtin.Agents != 0) {
			names = append(names, key)
			continue
		}
		if slices.ContainsFunc(a.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == key.Name }) {
			m.plan.Notes = append(m.plan.Notes, support.RuntimeTool(key.Name))
		}
	}
	return m.tools(ctx, names)
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
