// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy serves ValidatingAdmissionPolicies and their bindings, and
// enforces admission policies for every other resource of the server. Policies
// are rules in CEL that an administrator adds without running a webhook.
package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// unset is what kubectl shows for a parameter that a policy lacks.
const unset = "<unset>"

// Resources are the two kinds.
func Resources() []resource.Resource { return []resource.Resource{policies, bindings} }

var policies = &resource.Definition[*admissionv1.ValidatingAdmissionPolicy]{
	Unguarded: true,
	Resource:  admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"),
	Kind:      "ValidatingAdmissionPolicy", Singular: "validatingadmissionpolicy",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	Shape:         resource.Kept[*admissionv1.ValidatingAdmissionPolicy]{Validate: validatePolicy},
	Columns: []resource.Column[*admissionv1.ValidatingAdmissionPolicy]{
		{
			Name: "Validations", Type: "integer", Description: "How many expressions an object must satisfy.",
			Value: func(p *admissionv1.ValidatingAdmissionPolicy) any { return int64(len(p.Spec.Validations)) },
		},
		{Name: "ParamKind", Description: "The kind of the policy's parameters.", Value: paramKind},
	},
}

var bindings = &resource.Definition[*admissionv1.ValidatingAdmissionPolicyBinding]{
	Unguarded: true,
	Resource:  admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"),
	Kind:      "ValidatingAdmissionPolicyBinding", Singular: "validatingadmissionpolicybinding",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	Shape:         resource.Kept[*admissionv1.ValidatingAdmissionPolicyBinding]{Validate: validateBinding},
	Columns: []resource.Column[*admissionv1.ValidatingAdmissionPolicyBinding]{
		{
			Name: "PolicyName", Description: "The policy that is put into force.",
			Value: func(b *admissionv1.ValidatingAdmissionPolicyBinding) any { return b.Spec.PolicyName },
		},
		{Name: "ParamRef", Description: "The objects that are the policy's parameters.", Value: paramRef},
	},
}

func paramKind(p *admissionv1.ValidatingAdmissionPolicy) any {
	k := p.Spec.ParamKind
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

func paramRef(b *admissionv1.ValidatingAdmissionPolicyBinding) any {
	ref := b.Spec.ParamRef
	switch {
	case ref == nil:
		return unset
	case ref.Name != "" && ref.Namespace != "":
		return ref.Namespace + "/" + ref.Name
	case ref.Name != "":
		return "*/" + ref.Name
	case ref.Selector != nil:
		return ref.Selector.String()
	}
	return unset
}
