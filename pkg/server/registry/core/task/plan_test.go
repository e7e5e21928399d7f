// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"

	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

// TestCasesOfPlans checks that the server refuses what the plan refuses by the task alone, and accepts what can run.
func TestCasesOfPlans(t *testing.T) {
	for _, tc := range plantest.Cases() {
		errs := rules{}.validate(t.Context(), tc.Task)
		if tc.Reason == "" && len(errs) > 0 {
			t.Errorf("%s: %v", tc.Name, errs)
		}
		if tc.Written && (len(errs) != 1 || errs[0].Field != plan.OfTask(tc.Task)[0].Field) {
			t.Errorf("%s: %v", tc.Name, errs)
		}
	}
}
