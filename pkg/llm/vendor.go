// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Vendor makes the models of one type of Provider. Each vendor's package exports one, and
// package vendors lists them.
type Vendor struct {
	Type v1alpha1.ProviderType
	// NeedsBaseURL is set if the vendor has no default address, so that spec.baseURL is required.
	NeedsBaseURL bool
	// NeedsAzure is set if spec.azure is required. For other vendors it is forbidden.
	NeedsAzure bool
	// DefaultModel returns the model to use if nothing else names one; empty if there is none. Nil
	// means that there is none.
	DefaultModel func(*v1alpha1.ProviderSpec) string
	// New makes a model of a Provider. It does not open a connection. The error names the field
	// that is wrong.
	New func(Endpoint) (Model, error)
}

// Endpoint is a Provider with everything that is needed to use it.
type Endpoint struct {
	Spec *v1alpha1.ProviderSpec
	// Key is the API key.
	Key   string
	Clock clock.WithDelayedExecution
	// Transport sends the requests; nil means a transport of the model's own, without a proxy.
	Transport http.RoundTripper
}
