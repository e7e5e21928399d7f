// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorcall

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/connection"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/tool/custom"
)

// answer is what came of a request.
type answer struct {
	// result is what the tool returned, as JSON; nil if it failed.
	result []byte
	// status is that of the provider's answer; 0 if there was none.
	status int
	failed *failure
	// unsent is set if nothing has left that could have changed something.
	unsent bool
}

// reasons has the kind of failure for each type of error of a tool.
var reasons = map[tool.ErrorType]v1alpha1.TaskConnectorFailureReason{
	tool.TypeInvalidArguments: v1alpha1.ConnectorInvalidArguments,
	tool.TypePermissionDenied: v1alpha1.ConnectorDenied,
	tool.TypeNotFound:         v1alpha1.ConnectorNotFound,
	tool.TypeAlreadyExists:    v1alpha1.ConnectorRefused,
	tool.TypeLimitReached:     v1alpha1.ConnectorRefused,
	tool.TypeOutcomeUnknown:   v1alpha1.ConnectorOutcomeUnknown,
}

// send makes the request of a call, with the token of the account.
func (s *Calls) send(ctx context.Context, c *call, token connection.Token) answer {
	h := c.tool.HTTP
	spec := v1alpha1.ToolSpec{
		Description: c.tool.Description, Parameters: c.tool.Parameters,
		HTTP: &v1alpha1.ToolHTTP{URL: h.URL, Method: h.Method, Headers: h.Headers, Timeout: h.Timeout},
	}
	made, err := custom.New(c.tool.Name, spec, custom.Options{
		Credential: token.Access.Reveal(), Linked: &custom.Linked{Transport: s.o.Transport, Writes: c.writes()},
	})
	if err != nil {
		return answer{unsent: true, failed: fails(v1alpha1.ConnectorDenied, "the definition of %s cannot be used: %v", c.tool.Name, err)}
	}
	var got custom.Answer
	result, err := made.Call(custom.WithAnswer(ctx, &got), c.arguments)
	if err == nil {
		raw, err := json.Marshal(result)
		if err != nil {
			return answer{status: got.Status, failed: fails(v1alpha1.ConnectorOutcomeUnknown, "the answer of %s cannot be shown", c.tool.Name)}
		}
		return answer{result: raw, status: got.Status}
	}
	return c.explain(err, got)
}

// explain says what the error of a call means.
func (c *call) explain(err error, got custom.Answer) answer {
	of, is := errors.AsType[*tool.Error](err)
	if !is {
		of = tool.Errorf(tool.TypeUnavailable, "%s could not be called", c.tool.Name)
	}
	reason, known := reasons[of.Type]
	if !known {
		reason = v1alpha1.ConnectorUnavailable
	}
	switch {
	case got.Status == http.StatusTooManyRequests:
		reason = v1alpha1.ConnectorRateLimited
	case got.Status == http.StatusUnauthorized:
		of.Message += "; the provider does not accept the account any longer: the person has to connect it again"
		reason = v1alpha1.ConnectorConsentRequired
	case got.Status != 0 && c.writes() && mayHaveActed(got.Status):
		reason = v1alpha1.ConnectorOutcomeUnknown
	}
	f := fails(reason, "%s", of.Message)
	f.Status = int32(got.Status)
	if seconds, err := strconv.ParseInt(got.RetryAfter, 10, 32); err == nil && seconds > 0 {
		f.RetryAfterSeconds = seconds
	}
	return answer{status: got.Status, failed: f, unsent: got.Status == 0 && reason != v1alpha1.ConnectorOutcomeUnknown}
}

// mayHaveActed reports whether a provider that answered a request with a status may have carried it out: with success, of which the rest
// was not understood, or by something before or behind it that failed or gave up waiting.
func mayHaveActed(status int) bool {
	switch status {
	case http.StatusRequestTimeout:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status < http.StatusMultipleChoices || status >= http.StatusInternalServerError
}
