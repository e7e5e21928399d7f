// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/support"
)

// AgentPlan holds the objects that an Agent refers to and that CheckAgent read.
type AgentPlan struct {
	// Providers are the Provider of the model, if the Agent names one, and those of its fallbacks.
	Providers []*v1alpha1.Provider
	// Skills are the Agent's skills that are Skill objects.
	Skills []*v1alpha1.Skill
}

// CheckAgent decides what Make would decide for a task that names the Agent and nothing else. It accepts an Agent
// that leaves something for the task to name, a model for example. It does not check whether the keys of Providers
// and Tools exist. The error is a *refusal.Error, or comes from the Reader.
func CheckAgent(ctx context.Context, r Reader, place Place, a *v1alpha1.Agent) (*AgentPlan, error) {
	m := &maker{reader: r, place: place, namespace: a.Namespace, withoutKeys: true, anyModel: true, plan: &Plan{Agent: a}}
	task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI}}
	task.Namespace = a.Namespace
	uses := UsesOf(task, a)
	if err := m.agentModels(ctx, uses, a); err != nil {
		return nil, err
	}
	if s := a.Spec.SecretRef; s != nil {
		if err := m.mounted(ctx, types.NamespacedName{Namespace: a.Namespace, Name: s.Name}); err != nil {
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
		return nil, refusal.New(v1alpha1.ReasonNotSupported, "%s", gaps[0])
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
		return refusal.New(v1alpha1.ReasonIncompatibleAgent, "providerRef and runtime are both set")
	case a.Spec.Runtime != nil:
		return m.fallbacks(ctx, nil, uses.Fallbacks)
	case uses.Provider == nil:
		return refusal.New(v1alpha1.ReasonNoProvider, "neither providerRef, model.provider nor runtime is set")
	}
	return m.models(ctx, uses, nil)
}

// coordination checks that the Agents that may be delegated to exist.
func (m *maker) coordination(ctx context.Context, a *v1alpha1.Agent) error {
	c := a.Spec.Coordination
	if c == nil || !c.Enabled {
		return nil
	}
	for _, key := range allowedAgents(a) {
		if key.Name == v1alpha1.AnyAgent {
			continue
		}
		ref := Reference{From: a.Namespace, NamespacedName: key}
		if err := m.isolated(ref, "Agent"); err != nil {
			return err
		}
		_, err := m.reader.Agent(ctx, key)
		if err := lookedFor(err, "Agent", key); err != nil {
			return err
		}
	}
	return nil
}
