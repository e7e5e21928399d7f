// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"os"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestTypes: each vendor is found by its type, which kubectl explain names.
func TestTypes(t *testing.T) {
	types := map[v1alpha1.ProviderType]bool{}
	for _, v := range list {
		if found, ok := Find(v.Type); !ok || found.Type != v.Type || types[v.Type] {
			t.Errorf("%s is not found, or there twice", v.Type)
		}
		types[v.Type] = true
	}
	const file = "../../apis/core/v1alpha1/provider_types.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "// type is the wire protocol: " + Types() + ".\n"; !strings.Contains(string(text), want) {
		t.Errorf("the description of ProviderSpec.type in %s should be %q", file, want)
	}
}
