// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// classes returns the resource gatewayclasses. It is in no namespace, so a role reaches it by a ClusterRoleBinding alone: an operator of one
// namespace changes no class.
func (o *Options) classes() resource.Resource {
	return &resource.Definition[*v1alpha1.GatewayClass]{
		Resource:      v1alpha1.SchemeGroupVersion.WithResource("gatewayclasses"),
		Kind:          "GatewayClass",
		Singular:      "gatewayclass",
		ShortNames:    []string{"gwc"},
		Categories:    []string{category},
		ClusterScoped: true,
		Roles:         writers(),
		Scopes:        &external.Scopes{Read: scopeRead},
		Stored:        o.Stored.Classes,
		Columns: []resource.Column[*v1alpha1.GatewayClass]{
			{Name: "Category", Description: "What the gateways connect to.", Value: func(c *v1alpha1.GatewayClass) any { return string(c.Spec.Category) }},
			{Name: "Accepted", Type: "boolean", Description: "Whether gateways of the class can be used.", Value: func(c *v1alpha1.GatewayClass) any { return c.Status.Accepted }},
			{Name: "Message", Wide: true, Description: "What is wrong.", Value: func(c *v1alpha1.GatewayClass) any { return c.Status.Message }},
		},
		Shape: resource.Kept[*v1alpha1.GatewayClass]{Validate: validateClass},
	}
}
