// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"errors"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// classify turns any error of a worker into a *runner.Error.
func classify(err error) *runner.Error {
	var f *runner.Error
	var status apierrors.APIStatus
	failed := func(reason string, exit int) *runner.Error {
		return &runner.Error{Reason: reason, Exit: exit, Err: err}
	}
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, errNotBegun):
		return failed(v1alpha1.ReasonNotBegun, runspec.ExitUnavailable)
	case errors.Is(err, client.ErrToken):
		return failed(v1alpha1.ReasonServerUnreachable, runspec.ExitUnavailable)
	case errors.Is(err, ErrUsage):
		return failed(v1alpha1.ReasonWorkerMisconfigured, runspec.ExitUsage)
	case errors.As(err, &status) && !client.Temporary(err):
		return failed(v1alpha1.ReasonReferenceInvalid, runspec.ExitFailed)
	case errors.As(err, &status):
		return failed(v1alpha1.ReasonServerUnreachable, runspec.ExitUnavailable)
	default:
		return failed(v1alpha1.ReasonInternalError, runspec.ExitFailed)
	}
}

// cleanTermination returns a Termination without secrets.
func cleanTermination(reason, message string, exit int, s *secrets) runspec.Termination {
	message, _ = s.seen.Text(message)
	return runspec.Termination{Reason: reason, Message: message, ExitCode: exit}
}

// maxTermination is the limit of runspec.Termination, in bytes of JSON.
const maxTermination = 4096

// termination returns a Termination as JSON. The message is cleaned of secrets, and cut until
// the document fits.
func termination(t runspec.Termination, s *secrets) []byte {
	message := cleanTermination(t.Reason, t.Message, t.ExitCode, s).Message
	for keep := 3000; ; keep /= 2 {
		if len(message) > keep {
			message = clip.Text(message, keep) + "…"
		}
		t.Message = message
		raw, err := json.Marshal(t)
		// Quoting can make a text six times as long.
		if err == nil && len(raw) <= maxTermination || keep == 0 {
			return raw
		}
	}
}

// writeTermination replaces the file atomically if possible.
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
