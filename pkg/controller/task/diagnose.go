// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

func succeeded(state executor.State) outcome {
	o := outcome{phase: v1alpha1.TaskSucceeded, message: "the task is complete"}
	if state.Termination != nil && state.Termination.Message != "" {
		o.message = state.Termination.Message
	}
	return o
}

// diagnose says what is known about a run that did not succeed.
func diagnose(state executor.State) outcome {
	o := outcome{reason: v1alpha1.ReasonWorkerFailed}
	said := ""
	if t := state.Termination; t != nil {
		if t.Reason != "" {
			o.reason = t.Reason
		}
		said = t.Message
	}
	switch {
	case state.NeverBegan && state.Cause == executor.CauseDeadline:
		o = outcome{reason: v1alpha1.ReasonStartTimedOut, message: "the timeout of the task passed before"}
	case state.Reason != "":
		o = outcome{reason: state.Reason, message: state.Message}
		if said != "" {
			o.message += "; the worker said: " + said
		}
	case state.Phase == executor.Lost:
		o = outcome{reason: v1alpha1.ReasonWorkerLost, message: state.Message}
	case said != "":
		o.message = said
	case state.Cause == executor.CauseStopped:
		o.message = "the worker was stopped"
	case state.Signal != "":
		o.reason = v1alpha1.ReasonWorkerKilled
		o.message = fmt.Sprintf("the worker was ended by a signal (%s) and left no report", state.Signal)
	default:
		o.message = fmt.Sprintf("the worker ended with exit code %d and left no report", state.ExitCode)
	}
	if state.Reason == "" && state.Phase == executor.Exited && said == "" && state.Message != "" {
		o.message += ": " + state.Message
	}
	return o
}
