// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// TestProgramsLeaveMethodsOut: no program can execute a template. A template calls methods by name, so the linker would keep
// every exported method of every type, and all that these call. What executes one is found with
// "go build -ldflags=-dumpdep ./cmd/NAME": each line says what the right side is linked for.
func TestProgramsLeaveMethodsOut(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("../../../cmd/*")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d programs: %v", len(sources), err)
	}
	for _, source := range sources {
		name := filepath.Base(source)
		program, err := os.ReadFile(kit.Bin(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(program, []byte("text/template.(*state).evalField")) { // programs without symbols have the names of functions, too
			t.Errorf("%s is linked with what executes templates", name)
		}
	}
}
