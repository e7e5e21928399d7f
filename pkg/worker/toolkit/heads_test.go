// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"sync"
	"testing"
)

// TestHeads: a call gets the head that the run has last seen of the pull request, however the repository was named.
func TestHeads(t *testing.T) {
	var h Heads
	expect := func(address string, number int64, want string) {
		t.Helper()
		if got := h.Of(address, number); got != want {
			t.Errorf("%q %d: %q, want %q", address, number, got, want)
		}
	}
	expect("", 1, "")
	h.Checked("", 1, "a")
	h.Checked("", 1, "") // an answer without a head
	expect("", 1, "a")
	expect("https://host/o/r", 1, "a")
	expect("", 2, "")
	h.Checked("https://host/o/r.git", 1, "b")
	h.Checked("https://host/o/other", 1, "c")
	expect("https://Host/o/r/", 1, "b")
	expect("https://host/o/other", 1, "c")
	expect("", 1, "c")
	h.Checked("", 1, "d")
	expect("https://host/o/r", 1, "b")
	expect("https://host/o/third", 1, "d")

	h.Read("", 3, "read")
	h.Checked("", 3, "pushed later")
	expect("", 3, "read")
	h.Read("", 3, "read again")
	expect("", 3, "read again")

	var calls sync.WaitGroup
	for n := range int64(8) {
		calls.Go(func() {
			h.Checked("", n, "e")
			_ = h.Of("", n)
		})
	}
	calls.Wait()
	expect("", 7, "e")
}
