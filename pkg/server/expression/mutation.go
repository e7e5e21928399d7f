// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/environment"
)

// CompileMutating compiles a policy as the admission plugin of Kubernetes does, which does not export that. An expression that
// does not compile fails for every request.
func CompileMutating(p *admissionv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
	s := &p.Spec
	c, err := NewCompiler()
	if err != nil {
		return mutating.PolicyEvaluator{Error: err}
	}
	all := cel.OptionalVariableDeclarations{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	c.CompileAndStoreVariables(namedExpressions(s.Variables), all, environment.StoredExpressions)
	match := matcher(c, s.MatchConditions, all, s.FailurePolicy, p.Name)
	patches := all
	patches.HasPatchTypes = true
	compile := func(x cel.ExpressionAccessor) cel.MutatingEvaluator {
		return c.CompileMutatingEvaluator(x, patches, environment.StoredExpressions)
	}
	var mutators []patch.Patcher
	for _, m := range s.Mutations {
		switch {
		case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			mutators = append(mutators, patcher{patch.NewJSONPatcher(compile(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression})), c})
		case m.PatchType == admissionv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			mutators = append(mutators, patcher{patch.NewApplyConfigurationPatcher(compile(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression})), c})
		}
	}
	return mutating.PolicyEvaluator{Matcher: match, Mutators: mutators, CompositedCompiler: c}
}

// patcher gives each evaluation of a mutation an account.
type patcher struct {
	patch.Patcher
	compiler *cel.CompositedCompiler
}

// Patch implements patch.Patcher. The context that has the policy's variables must be the innermost one.
func (p patcher) Patch(ctx context.Context, r patch.Request, budget int64) (runtime.Object, error) {
	ctx, a := open(ctx)
	defer a.close()
	return p.Patcher.Patch(p.compiler.CreateContext(ctx), r, budget) //nolint:contextcheck // it adds the variables to ctx
}
