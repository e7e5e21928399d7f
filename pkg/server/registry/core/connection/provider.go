// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// providers returns the resource connectorproviders. Persons see which services there are; a provider decides where their tokens are sent,
// so only operators write them.
func (o *Options) providers() resource.Resource {
	return &resource.Definition[*v1alpha1.ConnectorProvider]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("connectorproviders"),
		Kind:       "ConnectorProvider",
		Singular:   "connectorprovider",
		ShortNames: []string{"cprov"},
		Categories: []string{category},
		Roles:      resource.Roles{Readers: resource.Users(resource.Person, resource.Worker), Writers: []resource.Role{resource.Operator}},
		Scopes:     &external.Scopes{Read: scopeRead},
		Stored:     o.Stored.Providers,
		Guard:      o.catalogGuard(),
		Columns: []resource.Column[*v1alpha1.ConnectorProvider]{
			{Name: "Display name", Description: "What people see.", Value: func(p *v1alpha1.ConnectorProvider) any { return cmp.Or(p.Spec.DisplayName, p.Name) }},
			{Name: "Accepted", Description: "Whether its definition can be used.", Value: condition(v1alpha1.ConditionAccepted)},
			{Name: "Resolved", Description: "Whether its Secret was found.", Value: condition(v1alpha1.ConditionResolvedRefs)},
			{Name: "Tools", Wide: true, Description: "What agents may do with an account.", Value: func(p *v1alpha1.ConnectorProvider) any {
				names := make([]string, len(p.Spec.Tools))
				for i := range p.Spec.Tools {
					names[i] = p.Spec.Tools[i].Name
				}
				return strings.Join(names, ",")
			}},
		},
		Shape: resource.Kept[*v1alpha1.ConnectorProvider]{
			Validate: func(_ context.Context, p *v1alpha1.ConnectorProvider) field.ErrorList {
				return connector.Validate(p)
			},
		},
	}
}

// condition returns a column with the status of a condition.
func condition(kind string) func(*v1alpha1.ConnectorProvider) any {
	return func(p *v1alpha1.ConnectorProvider) any {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil {
			return string(c.Status)
		}
		return ""
	}
}
