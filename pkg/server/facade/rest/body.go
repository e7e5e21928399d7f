// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/server/intake"
)

// admit opens the request's body if its caller is known and the row accepts a body of that length. The chain checks
// the caller again; this check only keeps bodies of unknown callers out of memory.
func (c *call) admit() error {
	user := ""
	if check := c.f.o.Authenticate; check != nil {
		if user = check(c.request(native{method: c.r.Method, path: "/"})); user == "" {
			return restError{code: http.StatusUnauthorized}
		}
	}
	if c.r.ContentLength > c.limit {
		return c.asREST(intake.TooLarge(c.limit))
	}
	admit := intake.AdmitObject
	switch {
	case c.row.Body.Raw:
		admit = intake.Admit
	case c.row.Body.AnyValues:
		admit = intake.AdmitJSON
	}
	done, err := admit(c.r.Context(), user, c.limit)
	if err != nil {
		return c.asREST(err)
	}
	c.done = done
	return nil
}

// asREST turns an API error into a REST error, with its Retry-After.
func (c *call) asREST(err error) error {
	s, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	status := s.ErrStatus
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	return restError{code: int(status.Code), message: status.Message}
}

// body reads the request's body. Errors name the limit.
func (c *call) body() ([]byte, error) {
	if err := c.admit(); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.limit))
	if err == nil {
		return data, nil
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		err = intake.TooLarge(c.limit)
	}
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return nil, c.asREST(err)
	}
	return nil, badRequest("the body could not be read: %v", err)
}

// object reads a JSON object, whatever its Content-Type, because tools for manual requests send one as a form. more
// is called with its keys. If optional is set, an empty body is an empty object.
func (c *call) object(optional bool, more check) (map[string]json.RawMessage, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	if optional && len(bytes.TrimSpace(data)) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	if err := scan(data, more); err != nil {
		return nil, err
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(data, &o); err != nil || o == nil {
		return nil, badRequest("the body must be a JSON object")
	}
	return o, nil
}
