// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestOwned: the platform's labels and annotations cannot be given, and stay as they are stored. The annotation that turns the
// coordination tools off is the client's.
func TestOwned(t *testing.T) {
	const off = "platform.ai/disable-coordination-tool-injection"
	for _, tc := range []struct{ field, given, stored, want, err string }{
		{"annotations", `{"a":"b","` + off + `":"true"}`, ``, "a " + off, ""},
		{"annotations", `{"a":"b"}`, `{"` + off + `":"true","platform.ai/requested-by":"ann"}`, "a platform.ai/requested-by", ""},
		{"annotations", `{"platform.ai/requested-by":"bob"}`, `{"platform.ai/requested-by":"ann"}`, "", "reserved"},
		{"labels", `{"` + off + `":"true"}`, ``, "", "reserved"},
	} {
		got, err := owned(tc.field, json.RawMessage(tc.given), json.RawMessage(tc.stored))
		if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%+v: %s, %v", tc, names, err)
		}
	}
}
