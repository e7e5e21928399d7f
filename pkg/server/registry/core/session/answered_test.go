// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestConversation: answers follow their questions, and what was asked later is left out.
func TestConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored, want string
		last         int64
	}{
		{"u1 u2 u3 a1", "u1 a1 u2", 2},
		{"u1 u2 u3 a1 a2", "u1 a1 u2 a2 u3", 3},
		{"u1 a1 u2", "u1 a1 u2", 3},
		{"a0 u1 u2 a1", "a0 u1 a1 u2", 3}, // the question of the first is not kept
		{"u1 u2", "u1", 1},
		{"u1 u2 a1 a2", "u1", 1}, // an attempt that is repeated does not see its own answer
	} {
		var all []v1alpha1.SessionMessage
		for i, word := range strings.Fields(c.stored) {
			role := v1alpha1.RoleUser
			if word[0] == 'a' {
				role = v1alpha1.RoleAssistant
			}
			all = append(all, v1alpha1.SessionMessage{ID: fmt.Sprintf("gateway:%s:%s", word[1:], role), Role: role, Content: word, Order: int64(i) + 1})
		}
		var got []string
		for _, m := range conversation(all, c.last) {
			got = append(got, m.Content)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s up to %d: %s, not %s", c.stored, c.last, s, c.want)
		}
	}
}
