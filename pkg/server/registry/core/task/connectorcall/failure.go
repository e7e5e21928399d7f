// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorcall

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
)

// failure is a failure as an error.
type failure struct{ v1alpha1.TaskConnectorFailure }

// Error returns the message.
func (f *failure) Error() string { return f.Message }

func fails(reason v1alpha1.TaskConnectorFailureReason, format string, a ...any) *failure {
	return &failure{v1alpha1.TaskConnectorFailure{Reason: reason, Message: fmt.Sprintf(format, a...)}}
}

// consent is the failure of a call for which the person has to do something. It says how.
func consent(c *call, format string, a ...any) *failure {
	return fails(v1alpha1.ConnectorConsentRequired, "%s (platform connection connect %s -n %s, or Connectors in the console)", fmt.Sprintf(format, a...), c.provider.Name, c.task.Namespace)
}

// unusable is the failure of a call with a connection that cannot be used.
func unusable(c *call, err error) *failure {
	of, is := errors.AsType[*connector.UnusableError](err)
	if !is {
		return fails(v1alpha1.ConnectorUnavailable, "%v", err)
	}
	switch of.Reason {
	case "", v1alpha1.ReasonRefreshFailed, v1alpha1.ReasonProviderMissing, v1alpha1.ReasonProviderInvalid:
		return fails(v1alpha1.ConnectorUnavailable, "the account of %s cannot be used now: %s", display(c.provider), of.Message)
	}
	return consent(c, "the account of %s cannot be used: %s", display(c.provider), of.Message)
}

// display returns what people know a provider by.
func display(p *v1alpha1.ConnectorProvider) string { return cmp.Or(p.Spec.DisplayName, p.Name) }
