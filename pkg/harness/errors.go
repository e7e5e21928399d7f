// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
)

// Reason is the reason of a refusal.
type Reason string

// Reasons of refusals. docs/harness-v2.md says when each one occurs.
const (
	BadRequest          Reason = "BadRequest"
	DigestMismatch      Reason = "DigestMismatch"
	Unauthenticated     Reason = "Unauthenticated"
	CapabilityInvalid   Reason = "CapabilityInvalid"
	NotFound            Reason = "NotFound"
	MethodNotAllowed    Reason = "MethodNotAllowed"
	StaleEpoch          Reason = "StaleEpoch"
	WrongInstance       Reason = "WrongInstance"
	WrongGeneration     Reason = "WrongGeneration"
	OperationConflict   Reason = "OperationConflict"
	WrongProfile        Reason = "WrongProfile"
	SessionExists       Reason = "SessionExists"
	SessionFenced       Reason = "SessionFenced"
	Busy                Reason = "Busy"
	LeaseLost           Reason = "LeaseLost"
	LeaseSequence       Reason = "LeaseSequence"
	PermissionSettled   Reason = "PermissionSettled"
	PermissionChanged   Reason = "PermissionChanged"
	AlreadyBootstrapped Reason = "AlreadyBootstrapped"
	EventsGone          Reason = "EventsGone"
	TooLarge            Reason = "TooLarge"
	LimitReached        Reason = "LimitReached"
	NotSupported        Reason = v1alpha1.ReasonNotSupported
	Draining            Reason = "Draining"
	Unavailable         Reason = "Unavailable"
)

// codes has the status of each reason.
var codes = map[Reason]int{
	BadRequest: http.StatusBadRequest, DigestMismatch: http.StatusBadRequest, Unauthenticated: http.StatusUnauthorized,
	CapabilityInvalid: http.StatusForbidden, NotFound: http.StatusNotFound, MethodNotAllowed: http.StatusMethodNotAllowed,
	StaleEpoch: http.StatusConflict, WrongInstance: http.StatusConflict, WrongGeneration: http.StatusConflict,
	OperationConflict: http.StatusConflict, WrongProfile: http.StatusConflict, SessionExists: http.StatusConflict,
	SessionFenced: http.StatusConflict, Busy: http.StatusConflict, LeaseLost: http.StatusConflict, LeaseSequence: http.StatusConflict,
	PermissionSettled: http.StatusConflict, PermissionChanged: http.StatusConflict, AlreadyBootstrapped: http.StatusConflict,
	EventsGone: http.StatusGone, TooLarge: http.StatusRequestEntityTooLarge, LimitReached: http.StatusTooManyRequests,
	NotSupported: http.StatusNotImplemented, Draining: http.StatusServiceUnavailable, Unavailable: http.StatusServiceUnavailable,
}

// maxMessage is how long a message may be, in bytes.
const maxMessage = 1024

// Error is the refusal of a request, as a runtime sends it.
type Error struct {
	Code    int    `json:"code"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// ControllerEpoch is the highest one, with StaleEpoch.
	ControllerEpoch uint64 `json:"controllerEpoch,omitempty"`
	// Generation is that of the session, with WrongGeneration.
	Generation uint64 `json:"generation,omitempty"`
	// Instance is that of the runtime, with WrongInstance.
	Instance string `json:"instance,omitempty"`
	// FirstSeq is the first event that is kept, with EventsGone.
	FirstSeq uint64 `json:"firstSeq,omitempty"`
}

// Refuse returns a refusal.
func Refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Code: codes[reason], Reason: reason, Message: clip.Marked(fmt.Sprintf(format, args...), maxMessage)}
}

// Error returns the reason and the message.
func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

// Refused reports whether an error is a refusal for a reason.
func Refused(err error, reason Reason) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Reason == reason
}

// errorAnswer is the body of an answer that refuses.
type errorAnswer struct {
	Error *Error `json:"error"`
	Meta
}

// DecodeError returns the refusal that an answer with a status is, or an error that says why it is none.
func DecodeError(status int, raw []byte) (*Error, error) {
	var a errorAnswer
	if err := Decode(raw, &a); err != nil {
		return nil, wrong("the answer with status %d is not an error of the protocol: %w", status, err)
	}
	e := a.Error
	if e == nil {
		return nil, wrong("the answer with status %d has no error", status)
	}
	code, known := codes[e.Reason]
	switch {
	case !known:
		return nil, wrong("the answer with status %d has an unknown reason", status)
	case e.Code != status || code != status:
		return nil, wrong("the error %s has the code %d and came with status %d; it must be %d", e.Reason, e.Code, status, code)
	case len(e.Message) > maxMessage:
		return nil, wrong("the message of the error %s has more than %d bytes", e.Reason, maxMessage)
	}
	return e, e.checkMembers()
}

// checkMembers checks which of the members that belong to one reason are there.
func (e *Error) checkMembers() error {
	for _, m := range []struct {
		name   string
		of     Reason
		filled bool
	}{
		{"controllerEpoch", StaleEpoch, e.ControllerEpoch > 0},
		{"generation", WrongGeneration, e.Generation > 0},
		{"instance", WrongInstance, e.Instance != ""},
		{"firstSeq", EventsGone, e.FirstSeq > 0},
	} {
		if m.filled && e.Reason != m.of {
			return wrong("the error %s has the member %s", e.Reason, m.name)
		}
		if !m.filled && e.Reason == m.of && m.of != WrongGeneration { // a session that is gone has none
			return wrong("the error %s has no member %s", e.Reason, m.name)
		}
	}
	return nil
}
