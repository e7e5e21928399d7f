// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package asking

import "testing"

// TestPlaces: it is the turn of a place when all places before it have been left, in whatever order that happens.
func TestPlaces(t *testing.T) {
	t.Parallel()
	a := &Approvals{}
	first, second, third := a.Place(), a.Place(), a.Place()
	<-first.before
	second.Leave()
	second.Leave()
	select {
	case <-third.before:
		t.Error("it is the turn of the third place before that of the first")
	default:
	}
	first.Leave()
	<-third.before
	third.Leave()
	<-a.Place().before
}
