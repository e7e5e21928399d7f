// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelfaults

import (
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
)

// ReadsWhole checks that a client reads an answer that is not a stream, that of the row wrong-content-type, if and only if its
// request accepts one. Its server must answer so twice.
func ReadsWhole(t *testing.T, c llm.Model, req llm.Request) {
	t.Helper()
	for _, whole := range []bool{true, false} {
		said := ""
		req.Whole = whole
		got, err := c.Generate(t.Context(), req, func(p llm.Part) { said += p.Text })
		switch {
		case whole && (err != nil || got.Text != FineText || said != got.Text || got.StopReason != llm.StopEnd || *got.Usage.InputTokens != 9 || *got.Usage.OutputTokens != 4):
			t.Errorf("%+v, %q, %v", got, said, err)
		case !whole && llm.ClassOf(err) != llm.ClassMalformed:
			t.Error(err)
		}
	}
}
