// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// call is a call that is charged before it is made.
type call struct {
	interpreter.InterpretableCall
	run func(a *account, args []ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.Args()))
	for i, arg := range c.Args() {
		if args[i] = arg.Exec(frame); types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	return types.LabelErrNode(c.ID(), c.run(accountIn(frame), args))
}

// Eval implements interpreter.Interpretable.
func (c *call) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// literal is a list or map that is made of values that are computed.
type literal struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (l *literal) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	accountIn(frame).charge(int64(len(l.InitVals())) * elementBytes)
	return l.InterpretableConstructor.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (l *literal) Eval(vars interpreter.Activation) ref.Val { return l.Exec(interpreter.AsFrame(vars)) }

// bindings are the implementations of functions, by the ids of overloads and by the names of functions.
type bindings map[string]*functions.Overload

// decorate charges the calls and literals of a program.
func (b bindings) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch x := i.(type) {
	case interpreter.InterpretableConstructor:
		for _, v := range x.InitVals() {
			if _, constant := v.(interpreter.InterpretableConst); !constant {
				return &literal{x}, nil
			}
		}
	case interpreter.InterpretableCall:
		if x.Function() == "findAll" {
			return &call{InterpretableCall: x, run: findAll(nil)}, nil
		}
		if equal := equality[x.Function()]; equal != nil {
			return &call{InterpretableCall: x, run: func(a *account, args []ref.Val) ref.Val {
				a.compare(args[0], args[1])
				return equal(args[0], args[1])
			}}, nil
		}
		check := guards[x.Function()]
		if check == nil || checkedAlready(x) {
			return i, nil
		}
		impl := b[x.OverloadID()]
		if impl == nil {
			impl = b[x.Function()]
		}
		if impl == nil {
			return i, nil
		}
		return &call{InterpretableCall: x, run: func(a *account, args []ref.Val) ref.Val {
			check(a, args)
			return invoke(impl, x, args)
		}}, nil
	}
	return i, nil
}

// equality are the comparisons, which the interpreter has built in.
var equality = map[string]functions.BinaryOp{
	operators.Equals:    types.Equal,
	operators.NotEquals: func(x, y ref.Val) ref.Val { return types.Bool(types.Equal(x, y) != types.True) },
}

// checkedAlready reports whether the second argument is a constant that bounds the call: a pattern was checked when the
// policy was compiled, and a list is as long as its text.
func checkedAlready(c interpreter.InterpretableCall) bool {
	switch c.Function() {
	case "matches", "find", operators.In:
		args := c.Args()
		if len(args) < 2 {
			return true
		}
		_, constant := args[1].(interpreter.InterpretableConst)
		return constant
	}
	return false
}

// invoke calls a function as the interpreter does.
func invoke(f *functions.Overload, c interpreter.InterpretableCall, args []ref.Val) ref.Val {
	first := args[0]
	if f.OperandTrait == 0 || first.Type().HasTrait(f.OperandTrait) {
		switch {
		case len(args) == 1 && f.Unary != nil:
			return f.Unary(first)
		case len(args) == 2 && f.Binary != nil:
			return f.Binary(first, args[1])
		case f.Function != nil:
			return f.Function(args...)
		}
	}
	if first.Type().HasTrait(traits.ReceiverType) {
		return first.(traits.Receiver).Receive(c.Function(), c.OverloadID(), args[1:])
	}
	return types.NewErr("no such overload: %s", c.Function())
}

// accountName is the variable of the account. Expressions cannot write it.
const accountName = "@account"

// holder adds the account to the variables of an expression.
type holder struct{ account *account }

// ResolveName implements interpreter.Activation.
func (h holder) ResolveName(name string) (any, bool) {
	if name == accountName {
		return h.account, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (holder) Parent() interpreter.Activation { return nil }

// accountIn returns the account of an evaluation. What is evaluated when a program is made has one of its own.
func accountIn(frame *interpreter.ExecutionFrame) *account {
	if v, ok := frame.ResolveName(accountName); ok {
		if a, ok := v.(*account); ok {
			return a
		}
	}
	return &account{bytes: 0, isLarge: true}
}
