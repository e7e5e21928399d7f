// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"errors"
	"testing"
)

// TestGuarantees shows that each check fails on a history that breaks its guarantee.
func TestGuarantees(t *testing.T) {
	a1 := record{"a", "k1", 1, 10}
	a2 := record{"a", "k2", 2, 12}
	b1 := record{"b", "k3", 1, 11}
	for name, tc := range map[string]struct {
		acknowledged, stored, watched []record
		want                          error
	}{
		"good":              {[]record{a1, a2, b1}, []record{a1, a2, b1}, []record{a1, b1, a2}, nil},
		"unacknowledged":    {[]record{a1}, []record{a1, a2, b1}, []record{a1, b1, a2}, nil},
		"lost":              {[]record{a1, a2}, []record{a1}, []record{a1}, errBrokeDurable},
		"twice":             {[]record{a1}, []record{a1, {"a", "k1", 2, 12}}, nil, errBrokeOnce},
		"hole":              {nil, []record{a1, {"a", "k2", 3, 12}}, nil, errBrokeDense},
		"renumbered":        {[]record{{"a", "k1", 2, 10}}, []record{a1}, nil, errBrokeStable},
		"watch lost":        {nil, []record{a1, a2}, []record{a1}, errBrokeResumable},
		"watch twice":       {nil, []record{a1}, []record{a1, a1}, errBrokeResumable},
		"watch disordered":  {nil, []record{a1, a2, b1}, []record{a1, a2, b1}, errBrokeResumable},
		"watch of nothing":  {nil, nil, []record{a1}, errBrokeResumable},
		"other revision":    {[]record{{"a", "k1", 1, 9}}, []record{a1}, nil, errBrokeStable},
		"watch other event": {nil, []record{a1}, []record{b1}, errBrokeResumable},
	} {
		err := checkStored(tc.acknowledged, tc.stored)
		if err == nil {
			err = checkWatched(tc.watched, tc.stored)
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}
