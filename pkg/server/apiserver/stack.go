// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
)

// usualStack is how much stack the answer to an ordinary request needs, in bytes.
const usualStack = 16 << 10

// growStack makes the stack of a goroutine large enough for an ordinary request while few frames are on it. Otherwise it
// grows in several steps deep inside the handlers, and each step adjusts all frames: a tenth of the time of an append.
//
//go:noinline
func growStack() {
	var room [usualStack]byte
	touch(&room)
}

//go:noinline
func touch(room *[usualStack]byte) { room[len(room)-1] = 1 }

// onLargeStack serves with a stack that need not grow.
func onLargeStack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		growStack()
		next.ServeHTTP(w, r)
	})
}
