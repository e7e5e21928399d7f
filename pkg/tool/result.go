// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/approval"
)

// ErrorType is the category of a failed call, for the model and for events.
type ErrorType string

// Error types.
const (
	TypeInvalidArguments ErrorType = "invalid_arguments"
	TypeNotFound         ErrorType = "not_found"
	TypeAlreadyExists    ErrorType = "already_exists"
	TypePermissionDenied ErrorType = "permission_denied"
	TypeInternal         ErrorType = "internal_error"
	TypeLimitReached     ErrorType = "limit_reached"
	TypeUnknownTool      ErrorType = "unknown_tool"
	// TypeUnavailable means that the service that the tool uses is not configured, is not
	// reachable or answered with a failure.
	TypeUnavailable ErrorType = "unavailable"
	// TypeTimeout means that the call took longer than allowed.
	TypeTimeout ErrorType = "timeout"
	// TypeCancelled means that the run was stopped during the call.
	TypeCancelled ErrorType = "cancelled"
	// TypeOutcomeUnknown means that the call was sent and no complete answer came, for whatever reason: it may have been carried out.
	TypeOutcomeUnknown ErrorType = approval.OutcomeUnknown
	// TypeApprovalDeclined, TypeApprovalExpired and TypeApprovalCancelled mean that the call
	// needed a person's approval, did not get it and was not made.
	TypeApprovalDeclined  ErrorType = "approval_declined"
	TypeApprovalExpired   ErrorType = "approval_expired"
	TypeApprovalCancelled ErrorType = "approval_cancelled"
	// TypeApprovalRequired means that a call had begun before it was known to need a person's approval, and was held back.
	TypeApprovalRequired ErrorType = "approval_required"
	// TypePolicyDenied means that a policy denied the call, which was not made.
	TypePolicyDenied ErrorType = "policy_denied"
	// TypeToolChanged means that the server of a remote tool no longer offers what was reviewed. The call was not made.
	TypeToolChanged ErrorType = "tool_changed"
)

// advice is what a model reads as the suggestion of an Error that has none of its own.
var advice = map[ErrorType]string{
	TypeInvalidArguments:  "correct the arguments and call it again",
	TypeNotFound:          "check the name, and look for what there is before you call it again",
	TypeAlreadyExists:     "use another name, or what is there already",
	TypePermissionDenied:  "do not repeat the call; go on without it, or say in your answer what was refused",
	TypeInternal:          "try another way",
	TypeLimitReached:      "ask for less, or go on with what you have",
	TypeUnknownTool:       "use one of the tools that you were given",
	TypeUnavailable:       "go on without it, or try again later",
	TypeTimeout:           "ask for less, or allow more time if there is an argument for it",
	TypeCancelled:         "the run is ending: do not call it again",
	TypeOutcomeUnknown:    "it may have happened: look at the present state before you call it again",
	TypeApprovalDeclined:  "do not make this call; try another way, or say in your answer what was declined",
	TypeApprovalExpired:   "go on without it, or say in your answer that nobody decided",
	TypeApprovalCancelled: "go on without it, or say in your answer what was not decided",
	TypeApprovalRequired:  "wait for the approval",
	TypePolicyDenied:      "do not repeat the call; try another way, or say in your answer what was denied",
	TypeToolChanged:       "go on without it; a person has to review the tool",
}

// Error is a failed call, written for the model: what went wrong and what to
// do about it. It must not hold credentials.
type Error struct {
	Type       ErrorType
	Message    string
	Suggestion string
}

// Error returns type and message.
func (e *Error) Error() string { return string(e.Type) + ": " + e.Message }

// Errorf returns an Error whose suggestion is that of its type.
func Errorf(t ErrorType, format string, args ...any) *Error {
	return &Error{Type: t, Message: fmt.Sprintf(format, args...)}
}

// InvalidArguments returns an Error for invalid arguments that the schema cannot detect.
func InvalidArguments(format string, args ...any) *Error {
	return Errorf(TypeInvalidArguments, format, args...)
}

// OutcomeUnknown returns an Error for a call that may have been carried out, because it was sent and no complete answer came. why is
// a clause, such as "the connection broke".
func OutcomeUnknown(name, why string) *Error {
	return Errorf(TypeOutcomeUnknown, "%s was called, and whether it was carried out is unknown: %s", name, why)
}

// Suggest adds advice for the model.
func (e *Error) Suggest(format string, args ...any) *Error {
	e.Suggestion = fmt.Sprintf(format, args...)
	return e
}

// Result is the result of a finished call.
type Result struct {
	// Text is the JSON text that the model reads: {"success":true,"data":…} or
	// {"success":false,"error":…,"errorType":…,"suggestion":…}.
	Text string
	// ErrorType is empty on success.
	ErrorType ErrorType
	// Program says how the program that a call ran has failed; empty if it succeeded or none ran. The call itself was
	// successful: the model reads what the program wrote.
	Program string
	// Child is the task that the call has created; zero if it created none.
	Child ChildTask
}

// ChildTask names a task that a call has created, for the events of the call.
type ChildTask struct {
	Name string
	// Agent is the name of the task's agent; empty if it has none.
	Agent string
}

// TaskMaker is data that a tool returns about a task that the call has created.
type TaskMaker interface {
	Child() ChildTask
}

// Program is data that a tool returns about a program that it ran.
type Program interface {
	// Failed says how the program failed; empty if it succeeded.
	Failed() string
}

// Failed reports whether the call failed.
func (r Result) Failed() bool { return r.ErrorType != "" }

// Failure returns the result of a call that failed.
func Failure(err error) Result {
	var e *Error
	if !errors.As(err, &e) {
		// The text of an unexpected error is not shown to the model.
		e = Errorf(TypeInternal, "the tool failed unexpectedly")
	}
	body := struct {
		Success    bool      `json:"success"`
		Error      string    `json:"error"`
		ErrorType  ErrorType `json:"errorType"`
		Suggestion string    `json:"suggestion"`
	}{Error: e.Message, ErrorType: e.Type, Suggestion: cmp.Or(e.Suggestion, advice[e.Type], advice[TypeInternal])}
	text, err := json.Marshal(body)
	if err != nil {
		// A struct of strings is always encodable.
		return Result{ErrorType: TypeInternal, Text: `{"success":false,"error":"the tool failed unexpectedly","errorType":"internal_error","suggestion":"try another way"}`}
	}
	return Result{Text: string(text), ErrorType: e.Type}
}

// success returns the result of a call that returned data.
func success(data any) Result {
	text, err := json.Marshal(struct {
		Success bool `json:"success"`
		Data    any  `json:"data"`
	}{true, data})
	if err != nil {
		return Failure(fmt.Errorf("encode result: %w", err))
	}
	r := Result{Text: string(text)}
	if p, ok := data.(Program); ok {
		r.Program = p.Failed()
	}
	if m, ok := data.(TaskMaker); ok {
		r.Child = m.Child()
	}
	return r
}

// RefusedError says why a run cannot have a tool. It is no refusal of the task (pkg/plan/refusal), because the attempt has begun: Retry
// decides about the next one. It keeps the cause, which callers look for.
type RefusedError struct {
	// Reason is one of the reasons of package v1alpha1.
	Reason string
	// Retry is set if another attempt of the task may get the tool.
	Retry bool
	Err   error
}

// Error returns the text of the cause.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *RefusedError) Unwrap() error { return r.Err }
