// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

func TestAnswering(t *testing.T) {
	t.Parallel()
	objects := newShelf()
	for name, tc := range map[string]struct {
		q      plan.Question
		want   []string
		reason string
	}{
		"a provider":                  {q: plan.Question{Provider: "openai"}, want: []string{"openai/model"}},
		"a provider and a model":      {q: plan.Question{Provider: "openai", Model: "m"}, want: []string{"openai/m"}},
		"the default provider":        {q: plan.Question{DefaultProvider: "claude"}, want: []string{"claude/model"}},
		"a default is not a choice":   {q: plan.Question{Provider: "openai", DefaultProvider: "claude", DefaultModel: "m"}, want: []string{"openai/model"}},
		"an agent with fallbacks":     {q: plan.Question{Agent: "full", DefaultProvider: "claude"}, want: []string{"openai/agent-model", "azure/model", "openai/cheap"}},
		"a model before the agent's":  {q: plan.Question{Agent: "full", Model: "m"}, want: []string{"openai/m", "azure/model", "openai/cheap"}},
		"a provider before agent's":   {q: plan.Question{Agent: "full", Provider: "claude"}, want: []string{"claude/agent-model", "azure/model", "claude/cheap"}},
		"an agent without a provider": {q: plan.Question{Agent: "no-provider", DefaultProvider: "claude"}, want: []string{"claude/model"}},
		"nothing":                     {q: plan.Question{}, reason: v1alpha1.ReasonNoProvider},
		"no such provider":            {q: plan.Question{Provider: "gone"}, reason: v1alpha1.ReasonProviderNotFound + "?"},
		"no such agent":               {q: plan.Question{Agent: "gone"}, reason: v1alpha1.ReasonAgentNotFound + "?"},
		"an agent with a runtime":     {q: plan.Question{Agent: "runtime"}, reason: v1alpha1.ReasonIncompatibleAgent},
		"a provider without a key":    {q: plan.Question{Provider: "no-key"}, reason: v1alpha1.ReasonSecretKeyNotFound + "?"},
		"a provider without a secret": {q: plan.Question{Provider: "no-secret"}, reason: v1alpha1.ReasonSecretNotFound + "?"},
		"a provider of no known type": {q: plan.Question{Provider: "strange"}, reason: v1alpha1.ReasonProviderUnsupported},
	} {
		tc.q.Namespace = plantest.Namespace
		p, err := plan.Answering(t.Context(), objects, &tc.q)
		if got, want := decided(err), cmp.Or(tc.reason, "runs"); got != want {
			t.Errorf("%s: reason %q, want %q (%v)", name, got, want, err)
			continue
		}
		if err != nil {
			continue
		}
		var got []string
		for _, c := range p.Candidates {
			got = append(got, c.Provider.Name+"/"+c.Model)
		}
		if d := diff.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A default model is used only where the Provider has none, and a Provider without any is refused.
func TestAnsweringDefaultModel(t *testing.T) {
	t.Parallel()
	q := plan.Question{Namespace: plantest.Other, Provider: "no-model", DefaultModel: "m"}
	p, err := plan.Answering(t.Context(), newShelf(), &q)
	if err != nil || p.Candidates[0].Model != "m" {
		t.Errorf("%v %+v, want the model m", err, p)
	}
	q.DefaultModel = ""
	if _, err := plan.Answering(t.Context(), newShelf(), &q); decided(err) != v1alpha1.ReasonNoModel {
		t.Errorf("%v, want %s", err, v1alpha1.ReasonNoModel)
	}
}
