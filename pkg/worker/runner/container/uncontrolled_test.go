// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"errors"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/program"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// TestUncontrolled: a command that ran is not reported as one that did not.
func TestUncontrolled(t *testing.T) {
	for _, tc := range []struct {
		o      program.Outcome
		reason string
		text   string
	}{
		{program.Outcome{}, v1alpha1.ReasonCommandNotRun, "job: broken"},
		{program.Outcome{Began: true, ExitCode: 3}, v1alpha1.ReasonCommandFailed, "the command ran and ended with exit code 3, but not everything that it started could be ended: broken"},
	} {
		err, ok := errors.AsType[*runner.Error](uncontrolled("job", tc.o, errors.New("broken")))
		if !ok || err.Reason != tc.reason || err.Error() != tc.text {
			t.Errorf("%+v: %v", tc.o, err)
		}
	}
}
