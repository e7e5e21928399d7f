// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"testing"
)

// FuzzContent compares the scanner of members with the JSON decoder: it must find the members that an
// object has, and no input may make it fail.
func FuzzContent(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","n":1,"o":{"x":[1,"}"]},"t":"a\"b\\","e":""}`, ` { "a" : -1.5e3 , "b" : null } `, `{}`, `[]`, `{"a":"\\\""}`, `{"a"`, `{"a":}`, `{"a":1`, `"`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := membersOf(raw)
		c.id()
		c.child()
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil || len(want) > maxMembers {
			return
		}
		got := map[string]string{}
		for _, m := range c {
			var name string
			if err := json.Unmarshal([]byte(`"`+string(m.name)+`"`), &name); err != nil {
				t.Fatalf("name %q: %v", m.name, err)
			}
			got[name] = string(m.value)
		}
		if len(c) == maxMembers { // there may be more of the same names
			return
		}
		for name, value := range want {
			if got[name] != string(value) {
				t.Errorf("%q is %q, want %q", name, got[name], value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d members, want %d", len(got), len(want))
		}
	})
}
