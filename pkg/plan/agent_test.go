// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

// TestCheckAgent: wherever tasks run, the decision about an Agent is the one about a task that names the Agent and nothing
// else.
func TestCheckAgent(t *testing.T) {
	s := newShelf()
	keys, ok := s["secret "+plantest.Namespace+"/keys"].(*corev1.Secret)
	if !ok {
		t.Fatal("no keys")
	}
	keys.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: "*"}
	refused := map[string]int{}
	for name, place := range map[string]plan.Place{
		"anywhere":          {},
		"no mounts":         {NoMounts: "no"},
		"no programs":       {NoPrograms: "no"},
		"no network":        {NoNetwork: "no"},
		"lacks a tool":      {Lacks: func(tool string) string { return map[string]string{"code_exec": "no interpreter"}[tool] }},
		"requires hosts":    {RequireHosts: true},
		"other namespaces":  {OtherNamespaces: true},
		"pods of a cluster": {OtherNamespaces: true, Pods: true},
	} {
		for _, o := range plantest.Objects() {
			a, ok := o.(*v1alpha1.Agent)
			if !ok || a.Spec.Runtime != nil { // such an Agent is for tasks of type agent, which no server runs
				continue
			}
			_, err := plan.CheckAgent(t.Context(), s, place, a)
			_, asTask := plan.Make(t.Context(), s, place, plantest.AI(plantest.ByAgent(a.Name)))
			if got, want := decided(err), decided(asTask); got != want {
				t.Errorf("%s: agent %s: %s, but its tasks: %s", name, a.Name, got, want)
			} else if got != "runs" {
				refused[name]++
			}
		}
	}
	for name, n := range refused {
		if more := n - refused["anywhere"]; more <= 0 && name != "anywhere" && name != "other namespaces" && name != "pods of a cluster" {
			t.Errorf("%s refuses no agent that runs elsewhere", name)
		}
	}
}
