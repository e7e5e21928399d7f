// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"testing"
)

// A schema without a type at its root gets one, and is otherwise as it was, to the last digit.
func TestTyped(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":      ``,
		`{}`:    `{"type":"object"}`,
		"\n{ }": `{"type":"object"}`,
		`{"properties":{"n":{"maximum":9007199254740993}}}`: `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`,
		`{"type":"object"}`:          `{"type":"object"}`,
		`{"type":["object","null"]}`: `{"type":["object","null"]}`,
		`true`:                       `true`,
		`{`:                          `{`,
	} {
		d := Definition{Parameters: json.RawMessage(given)}
		if got := string(d.Typed()); got != want || string(d.Parameters) != given {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
