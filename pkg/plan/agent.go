// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/support"
)

// AgentPlan is what an Agent refers to, as far as it is read.
type AgentPlan struct {
	// Providers are that of the model, if the Agent names one, and those of its fallbacks.
	Providers []*v1alpha1.Provider
	// Skills are those that are objects of their own.
	Skills []*v1alpha1.Skill
}

// CheckAgent decides about an Agent what Make would decide about a task that names it and nothing else. The task may
// still name what the Agent does not: a model, for example. The keys of Providers and Tools are not looked for. The error
// is a *RefusedError, or the Reader's.
func CheckAgent(ctx context.Context, r Reader, place Place, a *v1alpha1.Agent) (*AgentPlan, error) {
	m := &maker{reader: r, place: place, namespace: a.Namespace, withoutKeys: true, anyModel: true, plan: &Plan{}}
	task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI}}
	task.Namespace = a.Namespace
	uses := UsesOf(task, a)
	if err := m.agentModels(ctx, uses, a); err != nil {
		return nil, err
	}
	if s := a.Spec.SecretRef; s != nil {
		if err := m.need(ctx, Secret{Use: ForMount, Namespace: a.Namespace, Ref: v1alpha1.KeyReference{Name: s.Name}}); err != nil {
			return nil, err
		}
	}
	if err := m.system(ctx, uses); err != nil {
		return nil, err
	}
	if err := m.tools(ctx, uses.Tools); err != nil {
		return nil, err
	}
	if err := m.coordination(ctx, a); err != nil {
		return nil, err
	}
	if gaps := support.Refused(support.Agent(&a.Spec)); len(gaps) > 0 {
		return nil, refuse(v1alpha1.ReasonNotSupported, "%s", gaps[0])
	}
	p := &AgentPlan{Skills: m.skills}
	for _, c := range m.plan.Candidates {
		p.Providers = append(p.Providers, c.Provider)
	}
	return p, nil
}

func (m *maker) agentModels(ctx context.Context, uses *Uses, a *v1alpha1.Agent) error {
	switch {
	case a.Spec.Runtime != nil && a.Spec.ProviderRef != nil:
		return refuse(v1alpha1.ReasonIncompatibleAgent, "providerRef and runtime are both set")
	case a.Spec.Runtime != nil:
		return m.fallbacks(ctx, nil, uses.Fallbacks)
	case uses.Provider == nil:
		return refuse(v1alpha1.ReasonNoProvider, "neither providerRef, model.provider nor runtime is set")
	}
	return m.models(ctx, uses, nil)
}

// coordination looks for the Agents that may be delegated to.
func (m *maker) coordination(ctx context.Context, a *v1alpha1.Agent) error {
	c := a.Spec.Coordination
	if c == nil || !c.Enabled {
		return nil
	}
	for i := range c.AllowedAgents {
		ref := refer(a.Namespace, &c.AllowedAgents[i])
		if err := m.isolated(ref, "Agent"); err != nil {
			return err
		}
		_, err := m.reader.Agent(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		if err := lookedFor(err, "Agent", ref.NamespacedName); err != nil {
			return err
		}
	}
	return nil
}
