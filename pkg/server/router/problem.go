// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"encoding/json"
	"net/http"
)

// problem is an error that is shown to the client.
type problem struct {
	code    int
	message string
	err     error // the cause, for the log only
}

func (p problem) Error() string {
	if p.err != nil {
		return p.message + ": " + cause(p.err).Error()
	}
	return p.message
}

func (p problem) Unwrap() error { return p.err }

// kind returns the error type, which is the same in both styles.
func (p problem) kind() string {
	switch p.code {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusBadRequest:
		return "invalid_request_error"
	}
	return "api_error"
}

type (
	chatCompletionsError struct {
		Error chatCompletionsDetail `json:"error"`
	}
	chatCompletionsDetail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	messagesError struct {
		Type  string         `json:"type"`
		Error messagesDetail `json:"error"`
	}
	messagesDetail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)

// writeProblem answers with an error in the format of a style. No other code writes errors.
func writeProblem(w http.ResponseWriter, s style, p problem) {
	var body any = chatCompletionsError{Error: chatCompletionsDetail{Message: p.message, Type: p.kind()}}
	if s == messages {
		body = messagesError{Type: "error", Error: messagesDetail{Type: p.kind(), Message: p.message}}
	}
	data, err := json.Marshal(body)
	if err != nil { // strings can always be marshalled
		data = nil
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.code)
	_, _ = w.Write(append(data, '\n')) // the client may be gone, so there is nobody to report an error to
}
