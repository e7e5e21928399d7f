// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
)

// taskOf returns the task that answers an event. It has no prompt: what the sender wrote is the last message of the session that it reads.
// The answer is added to the session when the task has ended, by what makes the delivery of it.
func taskOf(e *v1alpha1.GatewayEvent, b *v1alpha1.GatewayBinding, agent *v1alpha1.Agent, o *Options) *v1alpha1.Task {
	d := &b.Spec.TaskDefaults
	t := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: gateway.TaskName(e.UID, e.Status.Replays),
			Labels: map[string]string{
				v1alpha1.LabelGateway: v1alpha1.LabelValue(e.Spec.GatewayName), v1alpha1.LabelGatewayBinding: v1alpha1.LabelValue(b.Name),
				v1alpha1.LabelGatewayEvent: v1alpha1.LabelValue(e.Name), v1alpha1.LabelGatewaySession: v1alpha1.LabelValue(e.Status.SessionName),
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationGatewayName: e.Spec.GatewayName, v1alpha1.AnnotationGatewayBinding: b.Name,
				v1alpha1.AnnotationGatewayEvent: e.Name, v1alpha1.AnnotationGatewayExternal: e.Spec.ExternalEventID,
			},
		},
		Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: agent.Name},
			SessionRef: &v1alpha1.TaskSessionReference{
				Name: e.Status.SessionName, Append: new(false), MaxMessages: new(o.TranscriptMessages),
				ThroughMessageID: gateway.MessageID(e.Name, v1alpha1.RoleUser), PromptIncluded: true,
			},
			Timeout: v1alpha1.DurationOf(o.TaskTimeout), RetryPolicy: d.RetryPolicy.DeepCopy(),
		},
	}
	if c := b.Status.ResolvedCapabilities; c != nil && c.InterimMessages {
		t.Annotations[v1alpha1.AnnotationGatewayInterim] = "true"
	}
	if d.Timeout != nil {
		t.Spec.Timeout = new(*d.Timeout)
	}
	if d.Priority != nil {
		t.Spec.Priority = new(*d.Priority)
	}
	if agent.Spec.Runtime != nil {
		t.Spec.Type = v1alpha1.TaskTypeAgent
		if d.AgentRuntimeMaxTurns != nil {
			t.Spec.AgentRuntime = &v1alpha1.TaskAgentRuntime{MaxTurns: new(*d.AgentRuntimeMaxTurns)}
		}
	}
	return t
}

// answers reports whether a task is the one that answers an event.
func answers(t *v1alpha1.Task, e *v1alpha1.GatewayEvent) bool {
	return t.Annotations[v1alpha1.AnnotationGatewayEvent] == e.Name && t.Spec.SessionRef != nil && t.Spec.SessionRef.Name == e.Status.SessionName
}
