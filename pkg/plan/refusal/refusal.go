// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal says why a task does not run. Admission, the controller and the worker decide it with the rules of package plan
// and of plan/command, and the controller with further ones of its own.
//
// Other errors are none of these. A runner.Error says how an attempt failed that had begun, and whether another one may succeed. A
// tool.RefusedError says why an attempt does not get a tool. The API errors of requests that the state of a task forbids are in
// server/registry/core/task/refusal.
package refusal

import "fmt"

// Error says why a task cannot run as it is written.
type Error struct {
	// Reason is one of the reasons in package v1alpha1 for tasks that are refused before they run.
	Reason string
	// Message is for people. It names the object and the rule, and never contains a value of a Secret.
	Message string
	// Field is the field of the task that is wrong, such as spec.prompt; empty if the cause is not a field of the
	// task.
	Field string
	// Missing is set if the cause is an object or a key that may still be created, so that the same task may run
	// later.
	Missing bool
	// Cancelled is set if the task is to end as cancelled and not as failed.
	Cancelled bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// New returns an Error for a task that cannot run.
func New(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Missing returns an Error for a task that may run later, when an object or a key exists.
func Missing(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...), Missing: true}
}

// Cancelled returns an Error for a task that is to end as cancelled.
func Cancelled(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...), Cancelled: true}
}
