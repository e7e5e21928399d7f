// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"

	"github.com/platform-ai/platform/pkg/runspec"
)

// Error says why a run failed. A run has begun, so an exit code says what becomes of the task, where a refusal (pkg/plan/refusal) says
// it of a task that has not.
type Error struct {
	// Reason is the reason for conditions.
	Reason string
	// Exit is the worker's exit code, which says whether another attempt may succeed.
	Exit int
	Err  error
}

// Error returns the text of the cause.
func (f *Error) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Error) Unwrap() error { return f.Err }

// Fail returns an Error for a run that would fail again.
func Fail(reason, format string, args ...any) error {
	return &Error{Reason: reason, Exit: runspec.ExitFailed, Err: fmt.Errorf(format, args...)}
}

// Unavailable returns an Error for a run of which another attempt may succeed.
func Unavailable(reason, format string, args ...any) error {
	return &Error{Reason: reason, Exit: runspec.ExitUnavailable, Err: fmt.Errorf(format, args...)}
}
