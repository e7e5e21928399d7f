// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"errors"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/agentloop"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// failure gives the errors of the model and of the loop their reasons. Other
// errors stay as they are.
func failure(err error) error {
	var known *runner.Failure
	var model *llm.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, agentloop.ErrMaxIterations):
		return &runner.Failure{Reason: runner.ReasonMaxIterations, Exit: runspec.ExitFailed, Err: err}
	case errors.Is(err, agentloop.ErrBlankAnswer):
		return &runner.Failure{Reason: runner.ReasonBlankAnswer, Exit: runspec.ExitFailed, Err: err}
	case errors.Is(err, agentloop.ErrApproval):
		return &runner.Failure{Reason: runner.ReasonApprovalNotAsked, Exit: runspec.ExitUnavailable, Err: err}
	case errors.As(err, &model):
		reason, exit := modelFailure(model.Class)
		if model.Class == llm.ClassCanceled {
			err = errors.New("the run was stopped")
		}
		return &runner.Failure{Reason: reason, Exit: exit, Err: err}
	default:
		return err
	}
}

// modelFailure names each class of model errors in a condition, and says
// whether another attempt of the task may help.
func modelFailure(c llm.Class) (reason string, exit int) {
	switch c {
	case llm.ClassAuth:
		return "ModelAuthenticationFailed", runspec.ExitFailed
	case llm.ClassQuota:
		return "ModelQuotaExhausted", runspec.ExitFailed
	case llm.ClassContextTooLong:
		return "ModelContextTooLong", runspec.ExitFailed
	case llm.ClassInvalidRequest:
		return "ModelRequestInvalid", runspec.ExitFailed
	case llm.ClassRateLimited:
		return "ModelRateLimited", runspec.ExitUnavailable
	case llm.ClassServer:
		return "ModelServerError", runspec.ExitUnavailable
	case llm.ClassUnreachable:
		return "ModelUnreachable", runspec.ExitUnavailable
	case llm.ClassCutStream:
		return "ModelStreamCut", runspec.ExitUnavailable
	case llm.ClassMalformed:
		return "ModelResponseMalformed", runspec.ExitUnavailable
	case llm.ClassCanceled:
		return runner.ReasonStopped, runspec.ExitFailed
	default:
		return runner.ReasonInternal, runspec.ExitFailed
	}
}
