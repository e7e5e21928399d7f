// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

// stackNeeded is how much of its stack a request uses at most, in bytes, beside rare cases.
const stackNeeded = 12 << 10

// growStack makes the stack of the goroutine as large as it will have to be. A stack grows by being copied, which is cheap while
// it holds few calls. Without this, each request copies the stack of the whole handler chain, more than once.
//
//go:noinline
func growStack() {
	var room [stackNeeded]byte
	touch(&room)
}

//go:noinline
func touch(room *[stackNeeded]byte) { room[0] = 1 }
