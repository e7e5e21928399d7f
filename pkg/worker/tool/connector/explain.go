// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// types has the type of error for each kind of failure.
var types = map[v1alpha1.TaskConnectorFailureReason]tool.ErrorType{
	v1alpha1.ConnectorInvalidArguments: tool.TypeInvalidArguments,
	v1alpha1.ConnectorDenied:           tool.TypePermissionDenied,
	v1alpha1.ConnectorConsentRequired:  tool.TypePermissionDenied,
	v1alpha1.ConnectorNotFound:         tool.TypeNotFound,
	v1alpha1.ConnectorRefused:          tool.TypePermissionDenied,
	v1alpha1.ConnectorRateLimited:      tool.TypeUnavailable,
	v1alpha1.ConnectorUnavailable:      tool.TypeUnavailable,
	v1alpha1.ConnectorOutcomeUnknown:   tool.TypeOutcomeUnknown,
}

// Explain returns a failure for the model.
func Explain(f *v1alpha1.TaskConnectorFailure) *tool.Error {
	of, ok := types[f.Reason]
	if !ok {
		of = tool.TypeInternal
	}
	e := tool.Errorf(of, "%s", f.Message)
	switch f.Reason {
	case v1alpha1.ConnectorConsentRequired:
		return e.Suggest("do not repeat the call: say in your answer which account the person has to connect")
	case v1alpha1.ConnectorRateLimited, v1alpha1.ConnectorUnavailable:
		if f.RetryAfterSeconds > 0 {
			return e.Suggest("go on without it, or call it again after %d seconds", f.RetryAfterSeconds)
		}
	}
	return e
}
