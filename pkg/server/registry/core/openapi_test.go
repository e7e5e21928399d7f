// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/platform-ai/platform/pkg/generated/openapi"
)

func definitions() map[string]common.OpenAPIDefinition {
	return openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/definitions/" + path) })
}

// kubectl explain has a description of every field.
func TestEveryFieldIsDescribed(t *testing.T) {
	seen := 0
	for name, d := range definitions() {
		if !strings.HasPrefix(name, "ai.platform.core.") {
			continue
		}
		seen++
		if d.Schema.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for field, p := range d.Schema.Properties {
			text := p.Description
			// Embedded metadata has the description of its own type.
			if field == "kind" || field == "apiVersion" {
				continue
			}
			if word, _, _ := strings.Cut(text, " "); word != field {
				t.Errorf("%s.%s: the description must begin with the field's name: %q", name, field, text)
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d types", seen)
	}
}
