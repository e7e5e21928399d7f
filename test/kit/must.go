// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import "testing"

// Must returns a function that returns its first argument, and ends the test if there is an error.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
