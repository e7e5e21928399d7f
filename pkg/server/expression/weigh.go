// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// What values cost, in bytes. An element of a list is an interface and what it points to.
const (
	elementBytes = 32
	entryBytes   = 96
	scalarBytes  = 24
	// entrySteps is how many values an entry of a map counts for, because finding it takes memory.
	entrySteps = 6
)

func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

func number(v ref.Val) int64 {
	n, _ := v.(types.Int)
	return int64(n)
}

// length returns the number of bytes of a string, and of elements of a list or map.
func length(v ref.Val) int64 {
	switch t := v.(type) {
	case types.String:
		return int64(len(t))
	case types.Bytes:
		return int64(len(t))
	case traits.Sizer:
		return number(t.Size())
	}
	return 0
}

func isList(v ref.Val) bool {
	_, ok := v.(traits.Lister)
	return ok
}

// nested reports whether comparing the value visits others.
func nested(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	}
	return false
}

// visit calls f for every value within v, and v. Lists that share their elements can have many more values than memory, so
// every value is a step.
func (a *account) visit(v ref.Val, f func(ref.Val)) {
	a.step(1)
	f(v)
	switch t := v.(type) {
	case *types.Optional:
		if t.HasValue() {
			a.visit(t.GetValue(), f)
		}
	case traits.Mapper:
		for it := t.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			a.step(entrySteps)
			a.visit(k, f)
			if e, ok := t.Find(k); ok {
				a.visit(e, f)
			}
		}
	case traits.Lister:
		for i := range number(t.Size()) {
			a.visit(t.Get(types.Int(i)), f)
		}
	}
}

// count returns the number of values within v.
func (a *account) count(v ref.Val) int64 {
	if !nested(v) {
		return 1
	}
	n := int64(0)
	a.visit(v, func(ref.Val) { n++ })
	return n
}

// chargeText charges the text of v, in which each list contains a copy of the text of its elements, and returns its length.
func (a *account) chargeText(v ref.Val) int64 {
	a.step(1)
	n := int64(scalarBytes)
	switch t := v.(type) {
	case types.String, types.Bytes:
		n += length(v)
	case *types.Optional:
		if t.HasValue() {
			n += a.chargeText(t.GetValue())
		}
	case traits.Mapper:
		for it := t.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			a.step(entrySteps)
			n += a.chargeText(k)
			if e, ok := t.Find(k); ok {
				n += a.chargeText(e)
			}
		}
	case traits.Lister:
		for i := range number(t.Size()) {
			n += a.chargeText(t.Get(types.Int(i)))
		}
	}
	a.charge(n)
	return n
}

// compare charges a comparison of two values.
func (a *account) compare(x, y ref.Val) {
	if nested(x) && nested(y) && length(x) == length(y) {
		a.count(x)
	}
}
