// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestDelegates: the condition CanDelegate warns of a coordinator that names no agents, such as one that an earlier version
// stored, and is only on coordinators.
func TestDelegates(t *testing.T) {
	for name, tc := range map[string]struct {
		c      *v1alpha1.AgentCoordination
		want   metav1.ConditionStatus
		reason string
		text   string
	}{
		"no coordinator": {c: nil},
		"not enabled":    {c: &v1alpha1.AgentCoordination{}},
		"names none":     {&v1alpha1.AgentCoordination{Enabled: true}, metav1.ConditionFalse, v1alpha1.ReasonNoAgentAllowed, `"*"`},
		"names all":      {&v1alpha1.AgentCoordination{Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "*"}}}, metav1.ConditionTrue, v1alpha1.ReasonAgentsAllowed, "names agents"},
	} {
		a := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Coordination: tc.c}}
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCanDelegate, Status: metav1.ConditionUnknown, Reason: "Old"})
		if err := delegates(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		got := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionCanDelegate)
		if got == nil {
			got = &metav1.Condition{}
		}
		if got.Status != tc.want || got.Reason != tc.reason || !strings.Contains(got.Message, tc.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
