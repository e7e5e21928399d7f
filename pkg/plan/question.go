// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// Question is a request to a model that no worker plans: one turn of a chat, a request to one of the vendors' APIs that the server
// offers, or one of a coding agent.
type Question struct {
	// Namespace is where Provider and Agent are, and where the request is made from.
	Namespace string
	// Provider and Model override those of the Agent; they may be empty.
	Provider, Model string
	// Agent supplies what Provider and Model leave open, and the fallbacks; it may be empty.
	Agent string
	// Coding is set for a request of a coding agent, which is what the Agent then must be.
	Coding bool
	// DefaultProvider is used if neither Provider nor the Agent names one, and DefaultModel if the Provider has no
	// default either. Both may be empty.
	DefaultProvider, DefaultModel string
	// RequireHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireHosts bool
}

// task returns a task that would use the same models.
func (q *Question) task() *v1alpha1.Task {
	t := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, AI: &v1alpha1.TaskAI{Model: q.Model}}}
	t.Namespace = q.Namespace
	if q.Coding {
		t.Spec.Type = v1alpha1.TaskTypeAgent
	}
	if q.Provider != "" {
		t.Spec.AI.ProviderRef = &v1alpha1.NamespacedReference{Name: q.Provider}
	}
	if q.Agent != "" {
		t.Spec.AgentRef = &v1alpha1.NamespacedReference{Name: q.Agent}
	}
	return t
}

// Answering decides which models answer a question, by the rules that Make applies to a task. The Plan has the Agent,
// the candidates, their Secrets and the limits of an answer, and nothing else. References to other namespaces are
// refused. The error is a *refusal.Error if no model can answer; any other error comes from the Reader.
func Answering(ctx context.Context, r Reader, q *Question) (*Plan, error) {
	m := &maker{reader: r, place: Place{Started: true, RequireHosts: q.RequireHosts}, namespace: q.Namespace, anyModel: true, plan: &Plan{}}
	t := q.task()
	if err := m.agent(ctx, t); err != nil {
		return nil, err
	}
	uses := UsesOf(t, m.plan.Agent)
	if uses.Provider == nil {
		if q.DefaultProvider == "" {
			return nil, refusal.New(v1alpha1.ReasonNoProvider, "neither the request nor its agent names a provider")
		}
		uses.Provider = &ProviderChoice{Ref: Reference{
			From: q.Namespace, NamespacedName: types.NamespacedName{Namespace: q.Namespace, Name: q.DefaultProvider},
		}}
	}
	if err := m.models(ctx, uses, modelNames(t, m.plan.Agent)); err != nil {
		return nil, err
	}
	for i := range m.plan.Candidates {
		c := &m.plan.Candidates[i]
		if c.Model = cmp.Or(c.Model, q.DefaultModel); c.Model == "" {
			return nil, refusal.New(v1alpha1.ReasonNoModel, "no model is named: not by the request, its agent or provider %q", c.Provider.Name)
		}
	}
	m.plan.limit(t.Spec.AI)
	return m.plan, nil
}
