// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/llm"
)

// TestFailures: each reason why a turn ends without an answer has a code for streams and a status for JSON, and hides what the
// server does not know.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause, err error
		code       string
		status     int32
	}{
		"the session is gone":      {nil, fmt.Errorf("resume: %w", errLost), CodeSessionLost, http.StatusConflict},
		"the vendor is limited":    {nil, &llm.Error{Class: llm.ClassRateLimited, Message: "slow down"}, CodeRateLimited, http.StatusServiceUnavailable},
		"the vendor failed":        {nil, &llm.Error{Class: llm.ClassServer, Message: "down"}, CodeProvider, http.StatusBadGateway},
		"too long":                 {nil, &llm.Error{Class: llm.ClassContextTooLong}, CodeContextTooLong, http.StatusRequestEntityTooLarge},
		"too slow":                 {errTimeout, context.Canceled, CodeTimeout, http.StatusGatewayTimeout},
		"a cancel wins":            {errCancelled, errLost, CodeCancelled, 0},
		"something else":           {nil, errors.New("the password is x"), CodeInternal, http.StatusInternalServerError},
		"a client that has left":   {context.Canceled, context.Canceled, CodeCancelled, 0},
		"more than what is kept":   {errTooMuch, context.Canceled, CodeTooLong, 0},
		"rights that were revoked": {nil, &rightsError{errors.New("no")}, CodePermission, 0},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tc.cause != nil {
			cancel(tc.cause)
		}
		f := failure(ctx, tc.err)
		cancel(nil)
		if f.Code != tc.code || f.Message == "" || f.Message == tc.err.Error() && tc.code == CodeInternal {
			t.Errorf("%s: %s %q, want %s", name, f.Code, f.Message, tc.code)
		}
		var status apierrors.APIStatus
		if err := f.status(); !errors.As(err, &status) || tc.status != 0 && status.Status().Code != tc.status {
			t.Errorf("%s: %v, want %d", name, err, tc.status)
		}
	}
}
