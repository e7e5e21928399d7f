// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/platform-ai/platform/pkg/server/expression"
)

// These limits are the same as in Kubernetes.
const maxConditions, maxAnnotations = 64, 20

// expressions compiles the expressions of one policy in the same way as the
// plugin does to evaluate them. Hence every stored policy can be evaluated.
type expressions struct {
	compiler *cel.CompositedCompiler
	params   bool
	errs     field.ErrorList
}

func validateExpressions(s *admissionv1.ValidatingAdmissionPolicySpec) field.ErrorList {
	if n := expression.Source(s); n > expression.MaxSource {
		return field.ErrorList{field.Invalid(spec(), n, fmt.Sprintf("all expressions together must have at most %d bytes", expression.MaxSource))}
	}
	compiler, err := expression.NewCompiler()
	if err != nil {
		return field.ErrorList{field.InternalError(spec(), err)}
	}
	e := &expressions{compiler: compiler, params: s.ParamKind != nil}
	e.variables(s.Variables)
	if len(e.errs) > 0 {
		return e.errs // later expressions can use variables, and would fail too
	}
	e.conditions(s.MatchConditions)
	for i, v := range s.Validations {
		path := spec().Child("validations").Index(i)
		e.compile(&validating.ValidationCondition{Expression: v.Expression}, true, path.Child("expression"))
		if v.MessageExpression != "" {
			e.compile(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, false, path.Child("messageExpression"))
		}
	}
	e.annotations(s.AuditAnnotations)
	return e.errs
}

func (e *expressions) add(err *field.Error) { e.errs = append(e.errs, err) }

// variables declares each variable for the expressions after it.
func (e *expressions) variables(variables []admissionv1.Variable) {
	seen := sets.New[string]()
	for i, v := range variables {
		path := spec().Child("variables").Index(i)
		switch {
		case len(content.IsCIdentifier(v.Name)) > 0:
			e.add(field.Invalid(path.Child("name"), v.Name, "name is not a valid CEL identifier"))
		case seen.Has(v.Name):
			e.add(field.Duplicate(path.Child("name"), v.Name))
		case strings.TrimSpace(v.Expression) == "":
			e.add(field.Required(path.Child("expression"), "expression is not specified"))
		}
		if len(e.errs) > 0 {
			return
		}
		seen.Insert(v.Name)
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if r := e.compiler.CompileCELExpression(variable, e.options(true), environment.StoredExpressions); r.Error != nil {
			e.add(field.Invalid(path.Child("expression"), v.Expression, r.Error.Error()))
			return
		}
		e.compiler.CompileAndStoreVariable(variable, e.options(true), environment.StoredExpressions)
	}
}

func (e *expressions) conditions(conditions []admissionv1.MatchCondition) {
	list := spec().Child("matchConditions")
	if len(conditions) > maxConditions {
		e.add(field.TooMany(list, len(conditions), maxConditions))
	}
	seen := sets.New[string]()
	for i, c := range conditions {
		e.name(seen, c.Name, list.Index(i).Child("name"))
		e.compile(&validating.ValidationCondition{Expression: c.Expression}, true, list.Index(i).Child("expression"))
	}
}

func (e *expressions) annotations(annotations []admissionv1.AuditAnnotation) {
	list := spec().Child("auditAnnotations")
	if len(annotations) > maxAnnotations {
		e.add(field.TooMany(list, len(annotations), maxAnnotations))
	}
	seen := sets.New[string]()
	for i, a := range annotations {
		e.name(seen, a.Key, list.Index(i).Child("key"))
		e.compile(&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}, true, list.Index(i).Child("valueExpression"))
	}
}

func (e *expressions) name(seen sets.Set[string], name string, path *field.Path) {
	if seen.Has(name) {
		e.add(field.Duplicate(path, name))
	}
	seen.Insert(name)
	for _, msg := range content.IsLabelKey(name) {
		e.add(field.Invalid(path, name, msg))
	}
}

func (e *expressions) options(authorizer bool) cel.OptionalVariableDeclarations {
	return cel.OptionalVariableDeclarations{HasParams: e.params, HasAuthorizer: authorizer}
}

func (e *expressions) compile(x cel.ExpressionAccessor, authorizer bool, path *field.Path) {
	if strings.TrimSpace(x.GetExpression()) == "" {
		e.add(field.Required(path, "expression is not specified"))
		return
	}
	if r := e.compiler.CompileCELExpression(x, e.options(authorizer), environment.StoredExpressions); r.Error != nil {
		e.add(field.Invalid(path, x.GetExpression(), r.Error.Error()))
	}
}
