// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Fields by which bindings are found, and identities by the first one.
const (
	FieldGatewayRef = "spec.gatewayRef.name"
	FieldAgentRef   = "spec.agentRef.name"
)

// bindings returns the resource gatewaybindings.
func (o *Options) bindings() resource.Resource {
	return &resource.Definition[*v1alpha1.GatewayBinding]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("gatewaybindings"),
		Kind:       "GatewayBinding",
		Singular:   "gatewaybinding",
		ShortNames: []string{"gwb"},
		Categories: []string{category},
		Roles:      writers(),
		Scopes:     &external.Scopes{Read: scopeRead},
		Stored:     o.Stored.Bindings,
		Fields: []resource.Field[*v1alpha1.GatewayBinding]{
			{Path: FieldGatewayRef, Indexed: true, Value: func(b *v1alpha1.GatewayBinding) string { return b.Spec.GatewayRef.Name }},
			{Path: FieldAgentRef, Indexed: true, Value: func(b *v1alpha1.GatewayBinding) string { return b.Spec.AgentRef.Name }},
		},
		Columns: []resource.Column[*v1alpha1.GatewayBinding]{
			{Name: "Gateway", Description: "The gateway.", Value: func(b *v1alpha1.GatewayBinding) any { return b.Spec.GatewayRef.Name }},
			{Name: "Agent", Description: "The Agent that answers.", Value: func(b *v1alpha1.GatewayBinding) any { return b.Spec.AgentRef.Name }},
			{Name: "Context", Description: "Where it answers.", Value: func(b *v1alpha1.GatewayBinding) any { return b.Spec.Match.ContextID }},
			{Name: "Session", Description: "Which events are one conversation.", Value: func(b *v1alpha1.GatewayBinding) any { return string(b.Spec.Session.Mode) }},
			{Name: "Ready", Type: "boolean", Description: "Whether the Agent answers.", Value: func(b *v1alpha1.GatewayBinding) any { return b.Status.Ready }},
			{Name: "Message", Wide: true, Description: "What is wrong.", Value: func(b *v1alpha1.GatewayBinding) any { return b.Status.Message }},
		},
		Shape: resource.Kept[*v1alpha1.GatewayBinding]{
			Validate: func(ctx context.Context, b *v1alpha1.GatewayBinding) field.ErrorList {
				if errs := validateBinding(b); len(errs) > 0 {
					return errs
				}
				return o.ambiguous(ctx, b)
			},
			Frozen:   []resource.Frozen[*v1alpha1.GatewayBinding]{{Path: specPath.Child("gatewayRef"), Value: func(b *v1alpha1.GatewayBinding) any { return b.Spec.GatewayRef }}},
			Warnings: bindingWarnings,
		},
	}
}

// ambiguous refuses a binding beside which another one matches the same with the same priority. Of two that are written at the same time
// both may be accepted; then their events are rejected until one of them is changed.
func (o *Options) ambiguous(ctx context.Context, b *v1alpha1.GatewayBinding) field.ErrorList {
	all, err := o.Stored.BindingsOf(ctx, b.Namespace, b.Spec.GatewayRef.Name)
	if err != nil {
		return field.ErrorList{field.InternalError(specPath.Child("match"), err)}
	}
	for _, other := range all {
		if other.Name != b.Name && other.DeletionTimestamp == nil && gateway.Same(other, b) {
			return field.ErrorList{field.Forbidden(specPath.Child("match"), fmt.Sprintf(
				"the GatewayBinding %s is for the same conversation with the same priority, so no event could be routed: give one of them another priority", other.Name))}
		}
	}
	return nil
}

func bindingWarnings(_ context.Context, b, _ *v1alpha1.GatewayBinding) []string {
	if p := &b.Spec.SenderPolicy; p.Mode != v1alpha1.GatewaySendersAll && len(p.AllowedSenderIDs) == 0 {
		return []string{"spec.senderPolicy: nobody may write: list senders in allowedSenderIds, or set mode to all"}
	}
	return nil
}
