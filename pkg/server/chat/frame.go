// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/models"
)

// Types of frames, which are the event names of a stream.
const (
	FrameStatus     = "status"
	FrameMessage    = "message"
	FrameToolCall   = "tool_call"
	FrameToolResult = "tool_result"
	FrameError      = "error"
	FrameDone       = "done"
)

// Frame is one thing that a turn reports while it runs.
type Frame struct {
	Type string
	// Seq counts the frames of a turn from 1.
	Seq int64
	Envelope
}

// Envelope is the data of a frame. Which members it has depends on the type.
type Envelope struct {
	SessionID string `json:"sessionId,omitempty"`
	// Provider and Model are in the first frame.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// Content continues the text of the answer.
	Content string `json:"content,omitempty"`
	// Restart says that the model begins its answer again: the text since the last call of a tool is void.
	Restart  bool                   `json:"restart,omitempty"`
	ToolCall *v1alpha1.ChatToolCall `json:"toolCall,omitempty"`
	Error    *Failure               `json:"error,omitempty"`
	// Outcome is in the frame done.
	Outcome v1alpha1.ChatOutcome `json:"outcome,omitempty"`
	Usage   *v1alpha1.ChatUsage  `json:"usage,omitempty"`
}

// Failure says why a turn ended without an answer.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`

	refused error // the refusal of a limit of this server, an API error; nil for other failures
}

// Codes of failures.
const (
	CodeProvider       = "provider_error"
	CodeContextTooLong = "context_too_long"
	CodeRateLimited    = "rate_limited"
	CodeBudget         = "budget_exhausted"
	CodeTimeout        = "timeout"
	CodeSessionLost    = "session_lost"
	CodeCancelled      = "cancelled"
	CodeInternal       = "internal_error"
	// CodePermission is for a background turn whose caller has lost the right to ask models.
	CodePermission = "permission_denied"
	// CodeStorage means that the disk is full, or that the store failed.
	CodeStorage = "insufficient_storage"
	// CodeTooLong is for a background turn that wrote more than is kept.
	CodeTooLong = "output_too_long"
)

var (
	errTimeout   = errors.New("the turn took as long as this server allows")
	errCancelled = errors.New("the turn was cancelled")
	errLost      = errors.New("the session was deleted during the turn")
	errClient    = errors.New("the client is gone")
	errTooMuch   = fmt.Errorf("the turn wrote more than %d MiB", maxFrames>>20)
	// errStopping ends background turns with the server. The next server continues them.
	errStopping = errors.New("the server is stopping")
)

// rightsError is the refusal of a caller whose rights are not what they were when the turn began.
type rightsError struct{ err error }

// Error is the refusal.
func (e *rightsError) Error() string { return e.err.Error() }

// Unwrap returns the refusal.
func (e *rightsError) Unwrap() error { return e.err }

// failure classifies the error of a turn. ctx is that of the turn.
func failure(ctx context.Context, err error) *Failure {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errTimeout):
		return &Failure{Code: CodeTimeout, Message: errTimeout.Error()}
	case errors.Is(cause, errCancelled):
		return &Failure{Code: CodeCancelled, Message: errCancelled.Error()}
	case errors.Is(cause, errTooMuch):
		return &Failure{Code: CodeTooLong, Message: errTooMuch.Error() + ", which is the most that is kept"}
	case errors.Is(err, errLost):
		return &Failure{Code: CodeSessionLost, Message: errLost.Error()}
	}
	if s, ok := errors.AsType[*storageError](err); ok {
		return s.failure()
	}
	if s, ok := errors.AsType[*storageError](cause); ok {
		return s.failure()
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsBadRequest(status) {
		return &Failure{Code: CodeProvider, Message: status.ErrStatus.Message}
	}
	if r, ok := errors.AsType[*rightsError](err); ok {
		return &Failure{Code: CodePermission, Message: "the rights of the caller have changed: " + r.Error()}
	}
	if cause != nil {
		return &Failure{Code: CodeCancelled, Message: "the client or the server ended the turn"}
	}
	switch models.LimitReason(err) {
	case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonBudgetUnpriced:
		return limited(CodeBudget, err)
	case v1alpha1.ReasonRateLimited:
		return limited(CodeRateLimited, err)
	}
	if typed, ok := errors.AsType[*llm.Error](err); ok {
		switch typed.Class {
		case llm.ClassContextTooLong:
			return &Failure{Code: CodeContextTooLong, Message: "the conversation does not fit the model, not even half of it; begin a new session, or say it shorter"}
		case llm.ClassRateLimited:
			return &Failure{Code: CodeRateLimited, Message: typed.Error()}
		case llm.ClassAuth, llm.ClassQuota, llm.ClassInvalidRequest, llm.ClassServer, llm.ClassUnreachable, llm.ClassCutStream, llm.ClassMalformed, llm.ClassCanceled:
		}
		return &Failure{Code: CodeProvider, Message: typed.Error()}
	}
	return &Failure{Code: CodeInternal, Message: "the turn failed unexpectedly"}
}

// limited is the failure of a turn that a limit of this server ended.
func limited(code string, err error) *Failure {
	refused, _ := errors.AsType[*apierrors.StatusError](err)
	return &Failure{Code: code, Message: refused.Error(), refused: refused}
}

// status returns the failure as an API error.
func (f *Failure) status() error {
	if f.refused != nil {
		return f.refused
	}
	code, reason := int32(http.StatusInternalServerError), metav1.StatusReasonInternalError
	switch f.Code {
	case CodeProvider:
		code, reason = http.StatusBadGateway, "ProviderError"
	case CodeContextTooLong:
		code, reason = http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
	case CodeRateLimited:
		code, reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	case CodeTimeout:
		code, reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	case CodePermission:
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	case CodeStorage:
		code, reason = http.StatusInsufficientStorage, "InsufficientStorage"
	case CodeTooLong:
		code, reason = http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
	case CodeSessionLost, CodeCancelled:
		code, reason = http.StatusConflict, metav1.StatusReasonConflict
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: f.Message,
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "chats"},
	}}
}

// asJSON returns a text as JSON: unchanged if it is an object, otherwise as a string.
func asJSON(text string) *apiextensionsv1.JSON {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return &apiextensionsv1.JSON{Raw: []byte(text)}
	}
	raw, err := json.Marshal(text)
	if err != nil { // a string is always encodable
		return nil
	}
	return &apiextensionsv1.JSON{Raw: raw}
}
