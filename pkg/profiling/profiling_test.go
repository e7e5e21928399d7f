// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package profiling

import "testing"

func TestSet(t *testing.T) {
	for address, allowed := range map[string]bool{
		"": true, "127.0.0.1:6060": true, "127.0.0.2:0": true, "[::1]:6060": true,
		":6060": false, "0.0.0.0:6060": false, "[::]:6060": false, "10.0.0.1:6060": false,
		"localhost:6060": false, // a name may resolve to anything
		"127.0.0.1":      false, "6060": false,
	} {
		a := Address("before")
		err := a.Set(address)
		if (err == nil) != allowed {
			t.Errorf("%q: %v, allowed %v", address, err, allowed)
		}
		if want := map[bool]string{true: address, false: "before"}[allowed]; a.String() != want {
			t.Errorf("%q: the address is %q, want %q", address, a, want)
		}
	}
}
