// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestValidationOf: a reviewer gets run_validation if its monitor has an image and commands, and has not switched them off.
func TestValidationOf(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]v1alpha1.MonitorValidation{
		`{"commands":["make"],"image":"a@sha256:0"}`: {Image: "a@sha256:0", Commands: []string{"make"}, Mode: v1alpha1.MonitorValidationChanged},
		"": {Image: "a@sha256:0", Commands: []string{"make"}, Mode: v1alpha1.MonitorValidationOff},
	} {
		m := &v1alpha1.RepositoryMonitor{Spec: v1alpha1.RepositoryMonitorSpec{Validation: of}}
		if got, err := validationOf(m); err != nil || got != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	for _, of := range []v1alpha1.MonitorValidation{{Commands: []string{"make"}}, {Image: "a@sha256:0"}} {
		if got, err := validationOf(&v1alpha1.RepositoryMonitor{Spec: v1alpha1.RepositoryMonitorSpec{Validation: of}}); err != nil || got != "" {
			t.Errorf("%q %v", got, err)
		}
	}
}
