// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// guard charges a call before it is made. Arguments of other types than the function takes cost nothing: the call fails.
type guard func(a *account, args []ref.Val)

// guards are the functions that can make values larger than their arguments, or visit many values. The receiver is the
// first argument. What is missing here is bounded by the limits of Kubernetes on the number of calls.
var guards = map[string]guard{
	operators.Add:    add,
	operators.In:     func(a *account, args []ref.Val) { search(a, []ref.Val{args[1], args[0]}) },
	"cel.@mapInsert": func(a *account, _ []ref.Val) { a.charge(entryBytes) },

	"replace":         replace,
	"split":           split,
	"join":            join,
	"format":          format,
	"lowerAscii":      copied,
	"upperAscii":      copied,
	"substring":       copied,
	"charAt":          copied,
	"strings.quote":   copied,
	"string":          copied,
	"bytes":           copied,
	"url":             copied,
	"quantity":        copied,
	"semver":          copied,
	"matches":         pattern,
	"find":            pattern,
	"indexOf":         search,
	"lastIndexOf":     search,
	"includes":        search,
	"lists.range":     func(a *account, args []ref.Val) { a.charge(max(0, min(number(args[0]), MaxBytes)) * elementBytes) },
	"flatten":         func(a *account, args []ref.Val) { a.charge(a.count(args[0]) * elementBytes) },
	"slice":           list,
	"reverse":         list,
	"sort":            list,
	"distinct":        func(a *account, args []ref.Val) { list(a, args); a.pairs(length(args[0]), a.count(args[0])) },
	"sum":             visited,
	"min":             visited,
	"max":             visited,
	"isSorted":        visited,
	"sets.contains":   sets,
	"sets.intersects": sets,
	"sets.equivalent": sets,

	"@sortByAssociatedKeys": list,
}

// maxList is how many elements a list has that others were added to. Such a list refers to its parts, so it needs no memory
// until it is used.
const maxList = MaxBytes / elementBytes

func add(a *account, args []ref.Val) {
	switch x := args[0].(type) {
	case types.String, types.Bytes:
		a.charge(length(x) + length(args[1]))
	case traits.Lister:
		n := length(args[1])
		if length(x)+n > maxList {
			a.charge(MaxBytes + 1)
		}
		a.charge(elementBytes * min(n, 4))
		if _, grows := args[0].(traits.MutableLister); grows {
			a.charge(elementBytes * n)
		}
	}
}

func copied(a *account, args []ref.Val) {
	switch args[0].(type) {
	case types.String, types.Bytes:
		a.charge(length(args[0]))
	}
}

func list(a *account, args []ref.Val)    { a.charge(length(args[0]) * elementBytes) }
func visited(a *account, args []ref.Val) { a.step(length(args[0])) }

func search(a *account, args []ref.Val) {
	switch args[0].(type) {
	case types.String:
		copied(a, args)
	case traits.Lister:
		a.pairs(length(args[0]), a.count(args[1]))
	}
}

func sets(a *account, args []ref.Val) { a.pairs(a.count(args[0]), a.count(args[1])) }

// occurrences is how often old is replaced, or separates, in s.
func occurrences(s, old string, args []ref.Val) int64 {
	n := int64(strings.Count(s, old)) // the number of characters and one, if old is empty
	if len(args) > 0 {
		if most, ok := args[0].(types.Int); ok && most >= 0 {
			return min(n, int64(most))
		}
	}
	return n
}

func replace(a *account, args []ref.Val) {
	s := text(args[0])
	n := occurrences(s, text(args[1]), args[3:])
	a.charge(int64(len(s)) + min(n, MaxBytes)*min(length(args[2]), MaxBytes))
}

func split(a *account, args []ref.Val) {
	a.charge(elementBytes * (1 + occurrences(text(args[0]), text(args[1]), args[2:])))
}

func join(a *account, args []ref.Val) {
	if !isList(args[0]) {
		return
	}
	separator := int64(0)
	if len(args) > 1 {
		separator = length(args[1])
	}
	a.charge(min(length(args[0]), MaxBytes) * min(separator, MaxBytes))
	a.chargeText(args[0])
}

// maxPrecision is the most digits after a decimal point that a format may ask for.
const maxPrecision = 1000

func format(a *account, args []ref.Val) {
	f := text(args[0])
	for i := 0; i < len(f); i++ {
		n := 0
		for ; i < len(f) && f[i] >= '0' && f[i] <= '9' && n <= maxPrecision; i++ {
			n = 10*n + int(f[i]-'0')
		}
		if n > maxPrecision {
			a.charge(MaxBytes + 1)
		}
		a.charge(int64(n))
	}
	a.charge(int64(len(f)))
	if len(args) > 1 {
		a.chargeText(args[1])
	}
}

func pattern(a *account, args []ref.Val) {
	if len(args) < 2 {
		return
	}
	if p, ok := args[1].(types.String); ok {
		size, err := patternSize(string(p))
		if err != nil {
			cancel(err.Error())
		}
		a.charge(size * instructionBytes)
	}
}
