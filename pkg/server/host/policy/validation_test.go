// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func match() *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}},
	}
}

// check compares the fields of the errors, in order, with the expected ones.
func check(t *testing.T, name string, errs field.ErrorList, want string) {
	t.Helper()
	fields := make([]string, 0, len(errs))
	for _, e := range errs {
		fields = append(fields, strings.TrimPrefix(e.Field, "spec."))
	}
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("%s: errors in %q, want %q: %v", name, got, want, errs.ToAggregate())
	}
}

func TestValidatePolicy(t *testing.T) {
	type spec = admissionv1.ValidatingAdmissionPolicySpec
	for name, test := range map[string]struct {
		change func(*spec)
		want   string
	}{
		"valid": {func(*spec) {}, ""},
		"everything valid": {func(s *spec) {
			s.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
			s.Variables = []admissionv1.Variable{{Name: "n", Expression: "object.data.size()"}, {Name: "m", Expression: "variables.n + 1"}}
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "named", Expression: "object.metadata.name != ''"}}
			s.Validations = []admissionv1.Validation{{Expression: "variables.m < int(params.data.n)", MessageExpression: "'too many: ' + string(variables.n)"}}
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "n", ValueExpression: "string(variables.n)"}}
		}, ""},
		"nothing to check":   {func(s *spec) { s.Validations = nil }, "validations"},
		"matches nothing":    {func(s *spec) { s.MatchConstraints = nil }, "matchConstraints"},
		"no rules":           {func(s *spec) { s.MatchConstraints.ResourceRules = nil }, "matchConstraints.resourceRules"},
		"failure policy":     {func(s *spec) { s.FailurePolicy = ptr.To(admissionv1.FailurePolicyType("Shrug")) }, "failurePolicy"},
		"param kind":         {func(s *spec) { s.ParamKind = &admissionv1.ParamKind{APIVersion: "a/b/c", Kind: "-"} }, "paramKind.apiVersion paramKind.kind"},
		"operation":          {func(s *spec) { s.MatchConstraints.ResourceRules[0].Operations[0] = "READ" }, "matchConstraints.resourceRules[0].operations[0]"},
		"empty rule":         {func(s *spec) { s.MatchConstraints.ResourceRules[0].Rule = admissionv1.Rule{} }, "matchConstraints.resourceRules[0].apiGroups matchConstraints.resourceRules[0].apiVersions matchConstraints.resourceRules[0].resources"},
		"star and more":      {func(s *spec) { s.MatchConstraints.ResourceRules[0].Resources = []string{"*", "secrets"} }, "matchConstraints.resourceRules[0].resources"},
		"selector":           {func(s *spec) { s.MatchConstraints.ObjectSelector.MatchLabels = map[string]string{"a b": ""} }, "matchConstraints.objectSelector.matchLabels"},
		"message":            {func(s *spec) { s.Validations[0].Message = "a\nb" }, "validations[0].message"},
		"reason":             {func(s *spec) { s.Validations[0].Reason = ptr.To(metav1.StatusReasonGone) }, "validations[0].reason"},
		"no expression":      {func(s *spec) { s.Validations[0].Expression = " " }, "validations[0].expression"},
		"message expression": {func(s *spec) { s.Validations[0].MessageExpression = "1" }, "validations[0].messageExpression"},
		"condition twice": {func(s *spec) {
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "true"}, {Name: "a", Expression: "true"}}
		}, "matchConditions[1].name"},
		"variable of no name": {func(s *spec) { s.Variables = []admissionv1.Variable{{Name: "a-b", Expression: "1"}} }, "variables[0].name"},
		"variable before use": {func(s *spec) {
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "variables.b"}, {Name: "b", Expression: "1"}}
		}, "variables[0].expression"},
		"annotation name": {func(s *spec) {
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "a b", ValueExpression: "'x'"}}
		}, "auditAnnotations[0].key"},
	} {
		p := &admissionv1.ValidatingAdmissionPolicy{Spec: spec{
			MatchConstraints: match(), Validations: []admissionv1.Validation{{Expression: "object.metadata.name != 'x'"}},
		}}
		test.change(&p.Spec)
		check(t, name, validatePolicy(t.Context(), p), test.want)
	}
}

func TestValidateBinding(t *testing.T) {
	type spec = admissionv1.ValidatingAdmissionPolicyBindingSpec
	allow := ptr.To(admissionv1.AllowAction)
	for name, test := range map[string]struct {
		change func(*spec)
		want   string
	}{
		"valid":            {func(*spec) {}, ""},
		"valid parameters": {func(s *spec) { s.ParamRef = &admissionv1.ParamRef{Name: "a", ParameterNotFoundAction: allow} }, ""},
		"valid match":      {func(s *spec) { s.MatchResources = match() }, ""},
		"no policy":        {func(s *spec) { s.PolicyName = "" }, "policyName"},
		"no action":        {func(s *spec) { s.ValidationActions = nil }, "validationActions"},
		"action":           {func(s *spec) { s.ValidationActions[0] = "Shout" }, "validationActions[0]"},
		"deny and warn":    {func(s *spec) { s.ValidationActions = append(s.ValidationActions, admissionv1.Warn) }, "validationActions"},
		"action twice":     {func(s *spec) { s.ValidationActions = append(s.ValidationActions, admissionv1.Deny) }, "validationActions[1]"},
		"no parameter":     {func(s *spec) { s.ParamRef = &admissionv1.ParamRef{ParameterNotFoundAction: allow} }, "paramRef"},
		"unclear parameter": {func(s *spec) {
			s.ParamRef = &admissionv1.ParamRef{Name: "a", Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: allow}
		}, "paramRef.name"},
		"no not-found action": {func(s *spec) { s.ParamRef = &admissionv1.ParamRef{Name: "a"} }, "paramRef.parameterNotFoundAction"},
	} {
		b := &admissionv1.ValidatingAdmissionPolicyBinding{Spec: spec{PolicyName: "p", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
		test.change(&b.Spec)
		check(t, name, validateBinding(t.Context(), b), test.want)
	}
}
