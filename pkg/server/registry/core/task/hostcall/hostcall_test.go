// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"testing"

	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// TestSchemas: the server checks the arguments of each tool that it carries out against what models are told.
func TestSchemas(t *testing.T) {
	n := 0
	for _, b := range builtin.In(builtin.Runs) {
		if _, ok := operation.Find(b.Name); !ok {
			continue
		}
		n++
		if _, err := schemas().Check(b.Name, `{"unknown":1}`); err == nil {
			t.Errorf("%s takes arguments that it does not have", b.Name)
		}
	}
	if n != 11 {
		t.Errorf("%d tools", n)
	}
}
