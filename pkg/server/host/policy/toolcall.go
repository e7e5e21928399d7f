// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/openapi"
)

const toolCalls = "toolcalls"

// checker compares expressions with the schema of ToolCall.
var checker = sync.OnceValue(func() *validating.TypeChecker {
	scheme := runtime.NewScheme()
	kind := v1alpha1.SchemeGroupVersion.WithKind("ToolCall")
	scheme.AddKnownTypeWithName(kind, &v1alpha1.ToolCall{})
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.AddSpecific(kind, v1alpha1.SchemeGroupVersion.WithResource(toolCalls), v1alpha1.SchemeGroupVersion.WithResource("toolcall"), meta.RESTScopeNamespace)
	return &validating.TypeChecker{
		SchemaResolver: resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, scheme), RestMapper: kinds,
	}
})

// validateToolCalls refuses a policy on calls of tools that could never match, or that could let a call pass because it
// cannot be evaluated. Such a policy would look like protection and be none.
func validateToolCalls(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	if p.Spec.MatchConstraints == nil {
		return nil
	}
	var errs field.ErrorList
	named := false
	for i, r := range p.Spec.MatchConstraints.ResourceRules {
		if !slices.Contains(r.APIGroups, v1alpha1.GroupName) {
			continue
		}
		path := spec().Child("matchConstraints", "resourceRules").Index(i)
		for k, name := range r.Resources {
			plural, sub, _ := strings.Cut(name, "/")
			switch {
			case !strings.EqualFold(strings.TrimSuffix(strings.ToLower(plural), "s"), "toolcall"):
				continue
			case plural != toolCalls || sub != "" && sub != "*":
				errs = append(errs, field.Invalid(path.Child("resources").Index(k), name, "matches nothing: calls of tools are the resource "+toolCalls+", without subresources"))
				continue
			}
			named = true
			if !slices.Contains(r.Operations, admissionv1.Create) && !slices.Contains(r.Operations, admissionv1.OperationAll) {
				errs = append(errs, field.Invalid(path.Child("operations"), r.Operations, "matches nothing: "+toolCalls+" are only created (CREATE)"))
			}
			if !slices.Contains(r.APIVersions, "*") && !slices.Contains(r.APIVersions, v1alpha1.SchemeGroupVersion.Version) {
				errs = append(errs, field.Invalid(path.Child("apiVersions"), r.APIVersions, "matches nothing: "+toolCalls+" exist in "+v1alpha1.SchemeGroupVersion.Version))
			}
		}
	}
	if !named {
		return errs
	}
	if p.Spec.FailurePolicy != nil && *p.Spec.FailurePolicy == admissionv1.Ignore {
		errs = append(errs, field.Invalid(spec().Child("failurePolicy"), *p.Spec.FailurePolicy, "must be Fail for "+toolCalls+": a call that cannot be judged is denied"))
	}
	return append(errs, checkTypes(p)...)
}

// checkTypes refuses expressions that do not fit the schema of ToolCall, such as those with a misspelt member.
func checkTypes(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	if hasOtherKinds(p) {
		return nil // an expression may be meant for another kind
	}
	c := checker()
	ctx := c.CreateContext(p)
	var errs field.ErrorList
	check := func(path *field.Path, expression string) {
		if results := c.CheckExpression(ctx, expression); len(results) > 0 {
			text := strings.TrimSpace(results.String())
			if strings.Contains(text, "undefined field 'arguments'") {
				text += "; arguments has no schema: use strings, numbers or booleans, or the typed arguments of the built-in tool"
			}
			errs = append(errs, field.Invalid(path, expression, text))
		}
	}
	for i, m := range p.Spec.MatchConditions {
		check(spec().Child("matchConditions").Index(i).Child("expression"), m.Expression)
	}
	for i, v := range p.Spec.Validations {
		path := spec().Child("validations").Index(i)
		check(path.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(path.Child("messageExpression"), v.MessageExpression)
		}
	}
	for i, a := range p.Spec.AuditAnnotations {
		check(spec().Child("auditAnnotations").Index(i).Child("valueExpression"), a.ValueExpression)
	}
	return errs
}

// hasOtherKinds reports whether the policy also matches resources other than toolcalls.
func hasOtherKinds(p *admissionv1.ValidatingAdmissionPolicy) bool {
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
		return !slices.Equal(r.APIGroups, []string{v1alpha1.GroupName}) ||
			slices.ContainsFunc(r.Resources, func(name string) bool { return strings.TrimSuffix(name, "/*") != toolCalls })
	})
}
