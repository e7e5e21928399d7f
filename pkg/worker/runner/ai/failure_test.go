// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"errors"
	"fmt"
	"testing"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

func TestFailure(t *testing.T) {
	model := func(c llm.Class) error { return &llm.Error{Class: c, Message: "m"} }
	for err, want := range map[error]struct {
		reason string
		exit   int
	}{
		model(llm.ClassAuth):        {"ModelAuthenticationFailed", runspec.ExitFailed},
		model(llm.ClassRateLimited): {"ModelRateLimited", runspec.ExitUnavailable},
		model(llm.ClassServer):      {"ModelServerError", runspec.ExitUnavailable},
		model(llm.ClassCutStream):   {"ModelStreamCut", runspec.ExitUnavailable},
		model(llm.ClassCanceled):    {v1alpha1.ReasonWorkerStopped, runspec.ExitFailed},
		fmt.Errorf("%w; no summary: %w", agentloop.ErrMaxIterations, model(llm.ClassServer)): {v1alpha1.ReasonMaxIterations, runspec.ExitFailed},
		agentloop.ErrBlankAnswer:             {v1alpha1.ReasonBlankAnswer, runspec.ExitFailed},
		runner.Unavailable("Reason", "mine"): {"Reason", runspec.ExitUnavailable},
	} {
		var f *runner.Error
		if !errors.As(failure(fmt.Errorf("wrapped: %w", err)), &f) || f.Reason != want.reason || f.Exit != want.exit {
			t.Errorf("%v: got %+v", err, f)
		}
	}
	if other := errors.New("other"); failure(other) != other || failure(nil) != nil { //nolint:errorlint // the same one
		t.Error("an error of another kind was changed")
	}
}
