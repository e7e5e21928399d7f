// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/agentloop"
)

// Reasons of a Termination, for conditions.
const (
	ReasonCompleted              = "Completed"
	ReasonUsage                  = "WorkerMisconfigured"
	ReasonStopped                = "WorkerStopped"
	ReasonServerUnreachable      = "ServerUnreachable"
	ReasonTaskReplaced           = "TaskReplaced"
	ReasonReferenceInvalid       = "ReferenceInvalid"
	ReasonProviderUnsupported    = "ProviderUnsupported"
	ReasonToolInvalid            = "ToolInvalid"
	ReasonHostCommandsNotAllowed = "HostCommandsNotAllowed"
	ReasonSandboxUnavailable     = "SandboxUnavailable"
	ReasonRuntimeNotAvailable    = "RuntimeNotAvailable"
	ReasonImageNotUsed           = "ImageNotUsed"
	ReasonCommandFailed          = "CommandFailed"
	ReasonCommandNotRun          = "CommandNotRun"
	ReasonMaxIterations          = "MaxIterations"
	ReasonBlankAnswer            = "BlankAnswer"
	ReasonApprovalNotAsked       = "ApprovalNotAsked"
	ReasonResultNotSubmitted     = runspec.ReasonResultNotSubmitted
	ReasonInternal               = "InternalError"
)

// failure is why a run failed.
type failure struct {
	reason string
	// exit is the worker's exit code.
	exit int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(reason, format string, args ...any) error {
	return &failure{reason: reason, exit: runspec.ExitFailed, err: fmt.Errorf(format, args...)}
}

func unavailable(reason, format string, args ...any) error {
	return &failure{reason: reason, exit: runspec.ExitUnavailable, err: fmt.Errorf(format, args...)}
}

// modelFailures names each class of model errors in a condition, and says
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
		return ReasonStopped, runspec.ExitFailed
	default:
		return ReasonInternal, runspec.ExitFailed
	}
}

// classify turns any error of a run into a failure.
func classify(err error) *failure {
	var f *failure
	var model *llm.Error
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, agentloop.ErrMaxIterations):
		return &failure{ReasonMaxIterations, runspec.ExitFailed, err}
	case errors.Is(err, agentloop.ErrBlankAnswer):
		return &failure{ReasonBlankAnswer, runspec.ExitFailed, err}
	case errors.Is(err, agentloop.ErrApproval):
		return &failure{ReasonApprovalNotAsked, runspec.ExitUnavailable, err}
	case errors.As(err, &model):
		reason, exit := modelFailure(model.Class)
		if model.Class == llm.ClassCanceled {
			err = errors.New("the run was stopped")
		}
		return &failure{reason, exit, err}
	case errors.Is(err, errNotBegun):
		return &failure{runspec.ReasonNotBegun, runspec.ExitUnavailable, err}
	case errors.Is(err, errToken):
		return &failure{ReasonServerUnreachable, runspec.ExitUnavailable, err}
	case errors.Is(err, ErrUsage):
		return &failure{ReasonUsage, runspec.ExitUsage, err}
	case errors.As(err, &status) && !temporary(err):
		return &failure{ReasonReferenceInvalid, runspec.ExitFailed, err}
	case errors.As(err, &status):
		return &failure{ReasonServerUnreachable, runspec.ExitUnavailable, err}
	default:
		return &failure{ReasonInternal, runspec.ExitFailed, err}
	}
}

// cleanTermination is a Termination without secrets.
func cleanTermination(reason, message string, exit int, s *secrets) runspec.Termination {
	message, _ = redact.Text(s.scrub(message))
	return runspec.Termination{Reason: reason, Message: message, ExitCode: exit}
}

// maxTermination is the limit of the runspec, in bytes of JSON.
const maxTermination = 4096

// termination makes the worker's last words; the message is cleaned and cut
// until the document fits.
func termination(reason, message string, exit int, s *secrets) []byte {
	t := cleanTermination(reason, message, exit, s)
	message = t.Message
	for keep := 3000; ; keep /= 2 {
		if len(message) > keep {
			cut := keep
			for cut > 0 && !utf8.RuneStart(message[cut]) {
				cut--
			}
			message = message[:cut] + "…"
		}
		raw, err := json.Marshal(runspec.Termination{Reason: reason, Message: message, ExitCode: exit})
		// Quoting can make a text six times as long.
		if err == nil && len(raw) <= maxTermination || keep == 0 {
			return raw
		}
	}
}

// writeTermination replaces the file in one step.
func writeTermination(path string, raw []byte) error {
	if path == "" {
		return nil
	}
	// A pod's termination log is a mounted file, which cannot be replaced.
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return os.WriteFile(path, raw, 0o600)
	}
	if err := os.WriteFile(path+".tmp", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
