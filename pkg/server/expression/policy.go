// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// MaxSource is the largest sum of the lengths of a policy's expressions, in bytes. Compiled, an expression needs a hundred
// times as much memory as its text.
const MaxSource = 256 << 10

// Source returns the sum of the lengths of a policy's expressions.
func Source(s *admissionv1.ValidatingAdmissionPolicySpec) int {
	n := 0
	for _, v := range s.Variables {
		n += len(v.Expression)
	}
	for _, c := range s.MatchConditions {
		n += len(c.Expression)
	}
	for _, v := range s.Validations {
		n += len(v.Expression) + len(v.MessageExpression)
	}
	for _, a := range s.AuditAnnotations {
		n += len(a.ValueExpression)
	}
	return n
}

// Compile compiles a policy as the admission plugin of Kubernetes does, which does not export that. An expression that does
// not compile fails for every request.
func Compile(p *admissionv1.ValidatingAdmissionPolicy) validating.Validator {
	s := &p.Spec
	c, err := NewCompiler()
	if err == nil && s.MatchConstraints == nil {
		err = errors.New("spec.matchConstraints: is required")
	}
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, s.FailurePolicy, err)
	}
	all := cel.OptionalVariableDeclarations{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	c.CompileAndStoreVariables(namedExpressions(s.Variables), all, environment.StoredExpressions)
	match := matcher(c, s.MatchConditions, all, s.FailurePolicy, p.Name)
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
	return validator{validating.NewValidator(
		c.CompileCondition(rules, all, environment.StoredExpressions), match, c.CompileCondition(notes, all, environment.StoredExpressions),
		c.CompileCondition(messages, cel.OptionalVariableDeclarations{HasParams: all.HasParams}, environment.StoredExpressions), s.FailurePolicy, nil,
	)}
}

func namedExpressions(variables []admissionv1.Variable) []cel.NamedExpressionAccessor {
	all := make([]cel.NamedExpressionAccessor, len(variables))
	for i, v := range variables {
		all[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	return all
}

// matcher compiles the conditions under which a policy applies. It returns nil if there are none.
func matcher(c *cel.CompositedCompiler, conditions []admissionv1.MatchCondition, o cel.OptionalVariableDeclarations, onFailure *admissionv1.FailurePolicyType, name string) matchconditions.Matcher {
	if len(conditions) == 0 {
		return nil
	}
	all := make([]cel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		all[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return matchconditions.NewMatcher(c.CompileCondition(all, o, environment.StoredExpressions), onFailure, "policy", "validate", name)
}

// validator gives each evaluation of a policy an account.
type validator struct{ validating.Validator }

// Validate implements validating.Validator.
func (v validator) Validate(ctx context.Context, r schema.GroupVersionResource, attr *admission.VersionedAttributes, params runtime.Object, namespace *corev1.Namespace, budget int64, authz authorizer.UnconditionalAuthorizer) validating.ValidateResult {
	ctx, a := open(ctx)
	defer a.close()
	return v.Validator.Validate(ctx, r, attr, params, namespace, budget, authz)
}
