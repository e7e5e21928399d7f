// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
)

// Confinement says what confines the programs of Agents. The zero Confinement is that of runs whose machines decide.
type Confinement struct {
	// By describes the sandbox of this machine, where runs are processes.
	By string
	// Off says that the operator lets programs run without a sandbox.
	Off bool
	// Refusal is why programs are refused, and NetworkRefusal why those with the network are; empty if they are not.
	Refusal, NetworkRefusal string
}

// confined is the step that reports whether programs of the Agent are confined to a sandbox.
type confined struct{ Confinement }

func (s confined) do(_ context.Context, a *v1alpha1.Agent) error {
	if !plan.RunsPrograms(a) {
		meta.RemoveStatusCondition(&a.Status.Conditions, v1alpha1.ConditionSandboxReady)
		return nil
	}
	c := metav1.Condition{Type: v1alpha1.ConditionSandboxReady, Status: metav1.ConditionFalse, ObservedGeneration: a.Generation}
	switch {
	case s.Off:
		c.Reason, c.Message = v1alpha1.ReasonSandboxOff, "the operator lets programs run without a sandbox (--sandbox=off)"
	case s.Refusal != "":
		c.Reason, c.Message = v1alpha1.ReasonSandboxUnavailable, s.Refusal
	case s.NetworkRefusal != "" && plan.PublicNetwork(a):
		c.Reason, c.Message = v1alpha1.ReasonSandboxUnavailable, "spec.sandbox.network: "+s.NetworkRefusal
	case s.By != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonConfined, "programs are confined by "+s.By
	default:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNodeDecides
		c.Message = "the node of each run confines its programs, or refuses them; the event WorkerStarted says what does"
	}
	meta.SetStatusCondition(&a.Status.Conditions, c)
	return nil
}
