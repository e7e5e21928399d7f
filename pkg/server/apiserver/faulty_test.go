// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestFaulty(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"timeout":5}}`:                                          `spec.timeout: must be a duration such as 90s or 10m, not 5`,
		`{"spec":{"command":"true"}}`:                                     `spec.command: must be a list, not "true"`,
		`{"spec":{"command":["true",1]}}`:                                 `spec.command[1]: must be a string, not 1`,
		`{"spec":{"priority":"high"}}`:                                    `spec.priority: must be a whole number of at most 32 bits, not "high"`,
		`{"spec":{"suspend":"yes"}}`:                                      `spec.suspend: must be true or false, not "yes"`,
		`{"spec":{"resources":{"limits":{"memory":"lots"}}}}`:             `spec.resources.limits[memory]: must be a quantity such as 500m or 2Gi, not "lots"`,
		`{"spec":{"retryPolicy":{"initialDelay":{}}}}`:                    `spec.retryPolicy.initialDelay: must be a duration such as 90s or 10m, not {}`,
		`{"spec":{"agentRef":"coder"}}`:                                   `spec.agentRef: must be an object, not "coder"`,
		`{"metadata":{"labels":{"a":1}}}`:                                 `metadata.labels[a]: must be a string, not 1`,
		`{"metadata":{"creationTimestamp":"x"}}`:                          `metadata.creationTimestamp: must be a time such as 2026-01-31T12:00:00Z, not "x"`,
		`{"spec":{"env":[{"name":"A"},{"name":{"long":"` + pad + `"}}]}}`: `spec.env[1].name: must be a string`,
		`{"spec":{"timeout":"abc"}}`:                                      ``, // validation refuses it
		`not JSON`:                                                        ``,
		`[]`:                                                              ``,
	} {
		got := ""
		if err := faulty(reflect.TypeFor[*v1alpha1.Task](), []byte(text), ""); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

const pad = "0123456789012345678901234567890123456789012345678901234567890123456789"
