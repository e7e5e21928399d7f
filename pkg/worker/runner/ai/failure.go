// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"errors"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// failure adds reasons to the errors of the model and of the loop. It returns other errors
// unchanged.
func failure(err error) error {
	var known *runner.Error
	var model *llm.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, agentloop.ErrRepeated):
		return &runner.Error{Reason: v1alpha1.ReasonToolCallsRepeated, Exit: runspec.ExitFailed, Err: err}
	case errors.Is(err, agentloop.ErrMaxIterations):
		return &runner.Error{Reason: v1alpha1.ReasonMaxIterations, Exit: runspec.ExitFailed, Err: err}
	case errors.Is(err, agentloop.ErrBlankAnswer):
		return &runner.Error{Reason: v1alpha1.ReasonBlankAnswer, Exit: runspec.ExitFailed, Err: err}
	case errors.Is(err, agentloop.ErrApproval):
		return &runner.Error{Reason: v1alpha1.ReasonApprovalNotAsked, Exit: runspec.ExitUnavailable, Err: err}
	case errors.As(err, &model):
		reason, exit := modelFailure(model.Class)
		if model.Class == llm.ClassCanceled {
			err = errors.New("the run was stopped")
		}
		return &runner.Error{Reason: reason, Exit: exit, Err: err}
	default:
		return err
	}
}

// modelFailure returns the reason for each class of model errors, and the exit code, which says
// whether another attempt of the task may succeed.
func modelFailure(c llm.Class) (reason string, exit int) {
	switch c {
	case llm.ClassAuth:
		return v1alpha1.ReasonModelAuthenticationFailed, runspec.ExitFailed
	case llm.ClassQuota:
		return v1alpha1.ReasonModelQuotaExhausted, runspec.ExitFailed
	case llm.ClassContextTooLong:
		return v1alpha1.ReasonModelContextTooLong, runspec.ExitFailed
	case llm.ClassInvalidRequest:
		return v1alpha1.ReasonModelRequestInvalid, runspec.ExitFailed
	case llm.ClassRateLimited:
		return v1alpha1.ReasonModelRateLimited, runspec.ExitUnavailable
	case llm.ClassServer:
		return v1alpha1.ReasonModelServerError, runspec.ExitUnavailable
	case llm.ClassUnreachable:
		return v1alpha1.ReasonModelUnreachable, runspec.ExitUnavailable
	case llm.ClassCutStream:
		return v1alpha1.ReasonModelStreamCut, runspec.ExitUnavailable
	case llm.ClassMalformed:
		return v1alpha1.ReasonModelResponseMalformed, runspec.ExitUnavailable
	case llm.ClassCanceled:
		return v1alpha1.ReasonWorkerStopped, runspec.ExitFailed
	default:
		return v1alpha1.ReasonInternalError, runspec.ExitFailed
	}
}
