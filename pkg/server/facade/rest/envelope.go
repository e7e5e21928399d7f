// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restError is an error as a REST client sees it. If message is empty, the text of the status code is used.
type restError struct {
	code    int
	message string
	allow   string // the methods, with code 405
}

func (e restError) Error() string {
	if e.message == "" {
		return http.StatusText(e.code)
	}
	return e.message
}

// Refuse returns an error with an HTTP status code and a message for the client.
func Refuse(code int, format string, args ...any) error {
	return restError{code: code, message: fmt.Sprintf(format, args...)}
}

// IsNotFound reports whether there is nothing at the path of a native request.
func IsNotFound(err error) bool {
	p, ok := asError(err)
	return ok && p.code == http.StatusNotFound
}

func badRequest(format string, args ...any) error {
	return Refuse(http.StatusBadRequest, format, args...)
}

// asError reports whether err may be shown to a client.
func asError(err error) (restError, bool) { return errors.AsType[restError](err) }

// envelope is the body of every error.
type envelope struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// fail answers with an error. An error other than a restError is internal, and its text is not shown to the client.
func (f *Facade) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := asError(err)
	if !ok {
		f.o.Sparse.Error(r.Context(), err, "REST request failed")
		p = restError{code: http.StatusInternalServerError}
	}
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	for _, name := range []string{"Content-Length", "Content-Disposition", "Content-Encoding", "Etag", "Last-Modified"} {
		w.Header().Del(name)
	}
	Fail(w, p.code, p.Error())
}

// Fail writes the body of an error.
func Fail(w http.ResponseWriter, code int, message string) {
	var e envelope
	e.Error.Code, e.Error.Message = code, message
	reply(w, code, e)
}

// statusProblem turns an error answer of the chain, usually a Status, into the error that a REST client sees. No
// other code does this.
func statusProblem(code int, body []byte) restError {
	p := restError{code: code}
	var s metav1.Status
	switch {
	case json.Unmarshal(body, &s) == nil && s.Kind == "Status":
		p.message = s.Message
	case json.Valid(body):
	default:
		p.message = strings.TrimSpace(string(body))
	}
	switch {
	case code == http.StatusUnprocessableEntity && s.Reason == metav1.StatusReasonInvalid:
		p.code = http.StatusBadRequest // the REST API has one code for invalid requests
	case code == http.StatusInternalServerError:
		p.message = ""
	}
	return p
}

// reply writes a JSON body.
func reply(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // the body consists of strings, numbers and valid JSON
		code, data = http.StatusInternalServerError, []byte(`{"error":{"code":500,"message":"Internal Server Error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // the client may be gone, so there is nobody to report an error to
}
