// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

// FuzzScan: an object is read as encoding/json reads it, member by member, and everything else is refused.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { } `, `{"a":1}`, "{ \"a\" : [ {\"b\":\"}]\\\"\\\\\"} , 1e2 ] ,\n\"\\u0061b\":null,\"\xff\":true,\"\":\"\\ud800\" }", `[]`, `{"a":1} {}`, `{"a":1}x`, `{"a"`,
		`{"a":-1.5e+3,"b":{"c":{}},"d":[[],[]]}`, `"x"`, `null`, ``, ` `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		names, values, ok := decoded(data)
		o, err := scan(data)
		if (err == nil) != ok {
			t.Fatalf("%q: %v, and encoding/json accepts it: %v", data, err, ok)
		}
		if !ok {
			return
		}
		if len(o.members) != len(names) {
			t.Fatalf("%q has %d members, not %d", data, len(names), len(o.members))
		}
		end := o.open
		for i, m := range o.members {
			if m.name != names[i] || !bytes.Equal(data[m.start:m.end], values[i]) || m.begin != end {
				t.Fatalf("%q: member %d is %q: %q, not %q: %q", data, i, names[i], values[i], m.name, data[m.start:m.end])
			}
			end = m.end
		}
	})
}

// decoded returns the members of an object; false for everything else.
func decoded(data []byte) (names []string, values []json.RawMessage, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, false
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, nil, false
		}
		names, values = append(names, name.(string)), append(values, value) //nolint:forcetypeassert // the decoder accepts no other token here
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, false
	}
	_, err := dec.Token()
	return names, values, err == io.EOF
}
