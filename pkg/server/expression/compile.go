// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// bounded is the environment of Kubernetes, whose programs charge what they use.
var bounded = sync.OnceValues(func() (*environment.EnvSet, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	all := bindings{}
	for name, f := range base.StoredExpressionsEnv().Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", name, err)
		}
		for _, o := range overloads {
			all[o.Operator] = o
		}
	}
	return base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		ProgramOptions:    []celgo.ProgramOption{celgo.CustomDecoratorV2(all.decorate), celgo.OptimizeRegex(constantFindAll)},
	})
})

// NewCompiler returns a compiler for the expressions of one policy.
func NewCompiler() (*cel.CompositedCompiler, error) {
	env, err := bounded()
	if err != nil {
		return nil, err
	}
	c, err := cel.NewCompositedCompiler(env)
	if err != nil {
		return nil, err
	}
	own := compiler{c.Compiler, env.StoredExpressionsEnv()}
	c.Compiler, c.ConditionCompiler, c.MutatingCompiler = own, own, own
	return c, nil
}

// compiler makes programs that charge an account.
type compiler struct {
	cel.Compiler
	env *celgo.Env
}

// CompileCELExpression implements cel.Compiler.
func (c compiler) CompileCELExpression(x cel.ExpressionAccessor, o cel.OptionalVariableDeclarations, mode environment.Type) cel.CompilationResult {
	if err := c.checkPatterns(x.GetExpression()); err != nil {
		return cel.CompilationResult{Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: err.Error()}, ExpressionAccessor: x}
	}
	r := c.Compiler.CompileCELExpression(x, o, mode)
	if r.Program != nil {
		r.Program = program{r.Program}
	}
	return r
}

// CompileCondition implements cel.ConditionCompiler.
func (c compiler) CompileCondition(all []cel.ExpressionAccessor, o cel.OptionalVariableDeclarations, mode environment.Type) cel.ConditionEvaluator {
	results := make([]cel.CompilationResult, len(all))
	for i, x := range all {
		if x != nil {
			results[i] = c.CompileCELExpression(x, o, mode)
		}
	}
	return cel.NewCondition(results)
}

// CompileMutatingEvaluator implements cel.MutatingCompiler.
func (c compiler) CompileMutatingEvaluator(x cel.ExpressionAccessor, o cel.OptionalVariableDeclarations, mode environment.Type) cel.MutatingEvaluator {
	return cel.NewMutatingEvaluator(c.CompileCELExpression(x, o, mode))
}

// checkPatterns refuses constant regular expressions that are large once they are compiled, before anything compiles them.
func (c compiler) checkPatterns(expression string) error {
	parsed, issues := c.env.Parse(expression)
	if issues.Err() != nil {
		return nil //nolint:nilerr // compiling reports it
	}
	var failed error
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		switch e.AsCall().FunctionName() {
		case "matches", "find", "findAll":
			for _, arg := range e.AsCall().Args() {
				if arg.Kind() != ast.LiteralKind {
					continue
				}
				if s, ok := arg.AsLiteral().(types.String); ok && failed == nil {
					_, failed = patternSize(string(s))
				}
			}
		}
	}))
	return failed
}

// program is a compiled expression that charges the account of its context.
type program struct{ celgo.Program }

// ContextEval implements celgo.Program.
func (p program) ContextEval(ctx context.Context, input any) (ref.Val, *celgo.EvalDetails, error) {
	vars, ok := input.(interpreter.Activation)
	if !ok {
		return nil, nil, fmt.Errorf("expressions of policies are evaluated with an activation, not with %T", input)
	}
	a, ok := ctx.Value(accountKey{}).(*account)
	if !ok {
		ctx, a = open(ctx)
		defer a.close()
	}
	return p.Program.ContextEval(ctx, interpreter.NewHierarchicalActivation(vars, holder{a}))
}
