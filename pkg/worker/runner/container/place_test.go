// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"errors"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/plantest"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
)

// TestCasesOfPlans: a worker refuses the tasks that admission and the controller refuse, for the same reasons, and no others.
func TestCasesOfPlans(t *testing.T) {
	refused := 0
	for _, tc := range plantest.Cases() {
		if tc.Task.Spec.Type != v1alpha1.TaskTypeContainer {
			continue
		}
		r := runnertest.New(t, "", tc.Task.Spec)
		r.Task, r.HostCommands = tc.Task, true
		want := tc.Reason
		if tc.Unseen || want == v1alpha1.ReasonSecretNotFound || want == v1alpha1.ReasonSecretKeyNotFound ||
			want == v1alpha1.ReasonConfigMapNotFound || want == v1alpha1.ReasonConfigMapKeyNotFound {
			want = "" // the variables of a run exist when it has started
		}
		got := ""
		if r, ok := errors.AsType[*refusal.Error]((&run{r.Run}).place().Check(tc.Task)); ok {
			got = r.Reason
			refused++
		}
		if got != want {
			t.Errorf("%s: %q, want %q", tc.Name, got, want)
		}
	}
	if refused == 0 {
		t.Error("no case is refused")
	}
}

// TestNotAllowed: where the operator allowed no commands of the host, a worker runs none.
func TestNotAllowed(t *testing.T) {
	r := runnertest.New(t, "", v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}})
	_, err := Runner.Run(t.Context(), r.Run)
	if f, ok := errors.AsType[*runner.Error](err); !ok || f.Reason != v1alpha1.ReasonHostCommandsNotAllowed {
		t.Errorf("got %v", err)
	}
}
