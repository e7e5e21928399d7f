// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules are those of Kubernetes, so that a cluster accepts every policy
// that is accepted here.

func spec() *field.Path { return field.NewPath("spec") }

func validatePolicy(_ context.Context, p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	s := &p.Spec
	var errs field.ErrorList
	if s.FailurePolicy != nil {
		errs = append(errs, oneOf(spec().Child("failurePolicy"), *s.FailurePolicy, admissionv1.Fail, admissionv1.Ignore)...)
	}
	if s.ParamKind != nil {
		errs = append(errs, validateParamKind(s.ParamKind)...)
	}
	constraints := spec().Child("matchConstraints")
	if s.MatchConstraints == nil {
		errs = append(errs, field.Required(constraints, ""))
	} else {
		errs = append(errs, validateMatch(s.MatchConstraints, constraints)...)
		if len(s.MatchConstraints.ResourceRules) == 0 {
			errs = append(errs, field.Required(constraints.Child("resourceRules"), ""))
		}
	}
	if len(s.Validations) == 0 && len(s.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(spec().Child("validations"), "validations or auditAnnotations must be specified"))
	}
	for i, v := range s.Validations {
		errs = append(errs, validateAnswer(v, spec().Child("validations").Index(i))...)
	}
	errs = append(errs, validateExpressions(s)...)
	if len(errs) > 0 {
		return errs
	}
	return validateToolCalls(p)
}

func validateParamKind(k *admissionv1.ParamKind) field.ErrorList {
	path := spec().Child("paramKind")
	var errs field.ErrorList
	if gv, err := schema.ParseGroupVersion(k.APIVersion); err != nil || gv.Version == "" {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), k.APIVersion, "must be group/version, or the version of the core group"))
	}
	if msgs := content.IsDNS1123Label(strings.ToLower(k.Kind)); len(msgs) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), k.Kind, "may have mixed case, but should otherwise match: "+strings.Join(msgs, ",")))
	}
	return errs
}

// validateAnswer checks the message and reason that are returned for a request
// that fails the expression.
func validateAnswer(v admissionv1.Validation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v.Message != "" && strings.TrimSpace(v.Message) == "" {
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "message must be non-empty if specified"))
	}
	if strings.Contains(v.Message, "\n") {
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "message must not contain line breaks"))
	}
	if strings.Contains(v.Expression, "\n") && v.Message == "" {
		errs = append(errs, field.Required(path.Child("message"), "message must be specified if expression contains line breaks"))
	}
	if v.Reason != nil {
		errs = append(errs, oneOf(path.Child("reason"), *v.Reason, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
			metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonUnauthorized)...)
	}
	return errs
}

func validateBinding(_ context.Context, b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	s := &b.Spec
	var errs field.ErrorList
	if s.PolicyName == "" {
		errs = append(errs, field.Required(spec().Child("policyName"), ""))
	} else {
		for _, msg := range content.IsDNS1123Subdomain(s.PolicyName) {
			errs = append(errs, field.Invalid(spec().Child("policyName"), s.PolicyName, msg))
		}
	}
	if s.ParamRef != nil {
		errs = append(errs, validateParamRef(s.ParamRef)...)
	}
	if s.MatchResources != nil {
		errs = append(errs, validateMatch(s.MatchResources, spec().Child("matchResources"))...)
	}
	return append(errs, validateActions(s.ValidationActions)...)
}

func validateActions(actions []admissionv1.ValidationAction) field.ErrorList {
	path := spec().Child("validationActions")
	if len(actions) == 0 {
		return field.ErrorList{field.Required(path, "at least one validation action is required")}
	}
	var errs field.ErrorList
	seen := sets.New[admissionv1.ValidationAction]()
	for i, a := range actions {
		errs = append(errs, oneOf(path.Index(i), a, admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
		if seen.Has(a) {
			errs = append(errs, field.Duplicate(path.Index(i), a))
		}
		seen.Insert(a)
	}
	if seen.HasAll(admissionv1.Deny, admissionv1.Warn) {
		errs = append(errs, field.Invalid(path, actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}

func validateParamRef(ref *admissionv1.ParamRef) field.ErrorList {
	path := spec().Child("paramRef")
	var errs field.ErrorList
	switch {
	case ref.Name == "" && ref.Selector == nil:
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	case ref.Name != "" && ref.Selector != nil:
		errs = append(errs, field.Forbidden(path.Child("name"), "name and selector are mutually exclusive"))
	case ref.Name != "":
		for _, msg := range content.IsPathSegmentName(ref.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), ref.Name, msg))
		}
	default:
		errs = append(errs, validateSelector(ref.Selector, path.Child("selector"))...)
	}
	if ref.ParameterNotFoundAction == nil {
		return append(errs, field.Required(path.Child("parameterNotFoundAction"), ""))
	}
	return append(errs, oneOf(path.Child("parameterNotFoundAction"), *ref.ParameterNotFoundAction, admissionv1.AllowAction, admissionv1.DenyAction)...)
}

func validateMatch(m *admissionv1.MatchResources, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.MatchPolicy != nil {
		errs = append(errs, oneOf(path.Child("matchPolicy"), *m.MatchPolicy, admissionv1.Equivalent, admissionv1.Exact)...)
	}
	errs = append(errs, validateSelector(m.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, validateSelector(m.ObjectSelector, path.Child("objectSelector"))...)
	for i := range m.ResourceRules {
		errs = append(errs, validateRule(&m.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateRule(&m.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateRule(r *admissionv1.NamedRuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range r.ResourceNames {
		for _, msg := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(path.Child("resourceNames").Index(i), name, msg))
		}
		if slices.Contains(r.ResourceNames[:i], name) {
			errs = append(errs, field.Duplicate(path.Child("resourceNames").Index(i), name))
		}
	}
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(path.Child("operations"), ""))
	}
	for i, op := range r.Operations {
		errs = append(errs, oneOf(path.Child("operations").Index(i), op, admissionv1.OperationAll,
			admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update)...)
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(path.Child("operations"), r.Operations, "if '*' is present, must not specify other operations"))
	}
	errs = append(errs, validateNames(r.APIGroups, true, path.Child("apiGroups"))...)
	errs = append(errs, validateNames(r.APIVersions, false, path.Child("apiVersions"))...)
	errs = append(errs, validateNames(r.Resources, false, path.Child("resources"))...)
	if r.Scope != nil {
		errs = append(errs, oneOf(path.Child("scope"), *r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
	}
	return errs
}

// validateNames checks one list of a rule. mayBeEmpty is set for API groups,
// because the core group's name is empty.
func validateNames(values []string, mayBeEmpty bool, path *field.Path) field.ErrorList {
	if len(values) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for i, v := range values {
		if v == "" && !mayBeEmpty {
			errs = append(errs, field.Required(path.Index(i), ""))
		}
	}
	if len(values) > 1 && slices.Contains(values, "*") {
		errs = append(errs, field.Invalid(path, values, "if '*' is present, must not specify other values"))
	}
	return errs
}

func oneOf[T ~string](path *field.Path, v T, known ...T) field.ErrorList {
	if slices.Contains(known, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, v, known)}
}
