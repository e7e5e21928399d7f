// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"errors"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// evaluator compiles a policy as the admission plugin does, which does not export that. An expression that does not
// compile finds fault with every call.
func evaluator(p *admissionv1.ValidatingAdmissionPolicy) validating.Validator {
	s := &p.Spec
	c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err == nil && s.MatchConstraints == nil {
		err = errors.New("spec.matchConstraints: is required")
	}
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, s.FailurePolicy, err)
	}
	all := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	variables := make([]cel.NamedExpressionAccessor, len(s.Variables))
	for i, v := range s.Variables {
		variables[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	c.CompileAndStoreVariables(variables, all, environment.StoredExpressions)
	var match matchconditions.Matcher
	if len(s.MatchConditions) > 0 {
		conditions := make([]cel.ExpressionAccessor, len(s.MatchConditions))
		for i := range s.MatchConditions {
			conditions[i] = (*matchconditions.MatchCondition)(&s.MatchConditions[i])
		}
		match = matchconditions.NewMatcher(c.CompileCondition(conditions, all, environment.StoredExpressions), s.FailurePolicy, "policy", "validate", p.Name)
	}
	rules, messages := make([]cel.ExpressionAccessor, len(s.Validations)), make([]cel.ExpressionAccessor, len(s.Validations))
	for i, v := range s.Validations {
		rules[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	notes := make([]cel.ExpressionAccessor, len(s.AuditAnnotations))
	for i, a := range s.AuditAnnotations {
		notes[i] = &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
	}
	return validating.NewValidator(
		c.CompileCondition(rules, all, environment.StoredExpressions), match, c.CompileCondition(notes, all, environment.StoredExpressions),
		c.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions), s.FailurePolicy, nil,
	)
}
