// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxPattern is the longest regular expression, in bytes.
	maxPattern = 16 << 10
	// maxInstructions bounds the compiled form, in which "(abc){1000}" is as large as a thousand copies.
	maxInstructions = 50_000
	// instructionBytes is what one of them needs, while it is compiled.
	instructionBytes = 256
	// matchBytes is what one match needs, while their list grows.
	matchBytes = 3 * elementBytes
)

// patternSize estimates how many instructions a regular expression has when it is compiled. The error says that there are
// too many. What does not parse has none.
func patternSize(p string) (int64, error) {
	if len(p) > maxPattern {
		return 0, fmt.Errorf("a regular expression has %d bytes; at most %d are allowed", len(p), maxPattern)
	}
	parsed, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return 0, nil //nolint:nilerr // the function itself reports it
	}
	n := instructions(parsed)
	if n > maxInstructions {
		return 0, fmt.Errorf("a regular expression needs more than %d instructions; repeat less of it, or less often", maxInstructions)
	}
	return n, nil
}

func instructions(r *syntax.Regexp) int64 {
	n := int64(1 + len(r.Rune))
	for _, sub := range r.Sub {
		n += instructions(sub)
	}
	if r.Op == syntax.OpRepeat {
		n *= int64(max(r.Max, r.Min, 1))
	}
	return min(n, maxInstructions+1)
}

// findAll makes a call of findAll(pattern, limit) that ends when the matches are too many for the account. re is nil if the
// pattern is not constant.
func findAll(re *regexp.Regexp) func(a *account, args []ref.Val) ref.Val {
	return func(a *account, args []ref.Val) ref.Val {
		s, isText := args[0].(types.String)
		p, isPattern := args[1].(types.String)
		if !isText || !isPattern {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		most := int64(-1)
		if len(args) > 2 {
			n, ok := args[2].(types.Int)
			if !ok {
				return types.MaybeNoSuchOverloadErr(args[2])
			}
			most = int64(n)
		}
		by := re
		if by == nil {
			pattern(a, args)
			var err error
			if by, err = regexp.Compile(string(p)); err != nil {
				return types.NewErr("Illegal regex: %v", err)
			}
		}
		bound := (MaxBytes-a.bytes)/matchBytes + 1
		found := by.FindAllString(string(s), int(min(uint64(most), uint64(bound)))) // -1, no limit, is the largest number
		a.charge(matchBytes * int64(len(found)))
		return types.NewStringList(types.DefaultTypeAdapter, found)
	}
}

// constantFindAll compiles a constant pattern once.
var constantFindAll = &interpreter.RegexOptimization{
	Function:   "findAll",
	RegexIndex: 1,
	Factory: func(c interpreter.InterpretableCall, p string) (interpreter.InterpretableCall, error) {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, err
		}
		return &call{InterpretableCall: c, run: findAll(re)}, nil
	},
}
