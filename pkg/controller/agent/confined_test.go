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

// TestConfined: the condition SandboxReady says what becomes of the programs of an Agent, and is only on Agents that have any.
func TestConfined(t *testing.T) {
	runs := []v1alpha1.AgentTool{{Name: "code_exec"}}
	public := &v1alpha1.AgentSandbox{Network: v1alpha1.SandboxNetworkPublic}
	for _, tc := range []struct {
		name    string
		by      Confinement
		spec    v1alpha1.AgentSpec
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"no programs", Confinement{By: "Landlock 7"}, v1alpha1.AgentSpec{}, "", "", ""},
		{"tool switched off", Confinement{By: "Landlock 7"}, v1alpha1.AgentSpec{Tools: []v1alpha1.AgentTool{{Name: "code_exec", Enabled: new(false)}}}, "", "", ""},
		{"confined", Confinement{By: "Landlock 7"}, v1alpha1.AgentSpec{Tools: runs}, metav1.ConditionTrue, v1alpha1.ReasonConfined, "Landlock 7"},
		{"refused", Confinement{Refusal: "no Landlock"}, v1alpha1.AgentSpec{Tools: runs}, metav1.ConditionFalse, v1alpha1.ReasonSandboxUnavailable, "no Landlock"},
		{"network refused", Confinement{By: "Landlock 3", NetworkRefusal: "too old"}, v1alpha1.AgentSpec{Tools: runs, Sandbox: public}, metav1.ConditionFalse, v1alpha1.ReasonSandboxUnavailable, "spec.sandbox.network: too old"},
		{"no network wanted", Confinement{By: "Landlock 3", NetworkRefusal: "too old"}, v1alpha1.AgentSpec{Tools: runs}, metav1.ConditionTrue, v1alpha1.ReasonConfined, "Landlock 3"},
		{"off", Confinement{Off: true}, v1alpha1.AgentSpec{Tools: runs}, metav1.ConditionFalse, v1alpha1.ReasonSandboxOff, "--sandbox=off"},
		{"in Pods", Confinement{}, v1alpha1.AgentSpec{Tools: runs}, metav1.ConditionUnknown, v1alpha1.ReasonNodeDecides, "WorkerStarted"},
	} {
		a := &v1alpha1.Agent{ObjectMeta: in("a"), Spec: tc.spec}
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSandboxReady, Status: metav1.ConditionTrue, Reason: "Old"})
		if err := (confined{tc.by}).do(t.Context(), a); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionSandboxReady)
		if c == nil {
			c = &metav1.Condition{}
		}
		if c.Status != tc.status || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
}
