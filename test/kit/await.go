// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"testing"
	"time"
)

// Patience bounds every wait for what must happen. It is far above what anything takes on a busy machine, because it only has to
// end a test that hangs: what must not happen within a time is tested with testing/synctest, or with a clock that is passed in.
const Patience = 5 * time.Minute

// look is the pause between two looks at a state that cannot be watched.
const look = 5 * time.Millisecond

// Await looks at a state of another process or goroutine until ok holds. It is for states that cannot be watched; where there is
// an event, await that. What says what did not happen if the test ends here.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience) // also in clean-ups
	defer cancel()
	tick := time.NewTicker(look) // what ok looks at announces nothing
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s", what, Patience)
		}
	}
}
