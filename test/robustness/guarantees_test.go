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

func TestGuaranteesOfStreams(t *testing.T) {
	// In the session: a/1, b/1, a/2.
	stored := []record{{"a", "k1", 1, 10}, {"a", "k2", 2, 12}, {"b", "k3", 1, 11}}
	good := []row{{1, "a", 1, "x"}, {2, "b", 1, "y"}, {3, "a", 2, "z"}}
	for name, tc := range map[string]struct {
		streamed, timeline []row
		want               error
	}{
		"good":          {good, good, nil},
		"lost":          {good[:2], good, errBrokeStreamed},
		"twice":         {append(good[:1:1], good...), good, errBrokeStreamed},
		"behind":        {append(good[:3:3], good[2]), good, errBrokeStreamed},
		"disordered":    {[]row{good[0], good[2], good[1]}, good, errBrokeStreamed},
		"other text":    {[]row{{1, "a", 1, "y"}, good[1], good[2]}, good, errBrokeStreamed},
		"not stored":    {nil, []row{{1, "c", 1, "x"}}, errBrokeOrder},
		"timeline lost": {good[:2], good[:2], errBrokeOrder},
		"cursor hole":   {nil, []row{good[0], {3, "b", 1, "y"}}, errBrokeOrder},
		"order":         {nil, []row{{1, "b", 1, "y"}, {2, "a", 1, "x"}, good[2]}, errBrokeOrder},
		"repeated":      {nil, []row{good[0], {2, "a", 1, "x"}}, errBrokeOrder},
	} {
		err := checkTimeline(tc.timeline, stored)
		if err == nil {
			err = checkStreamed(tc.streamed, tc.timeline)
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}
