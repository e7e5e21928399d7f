// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
	"net/url"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
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
	// Protocol is the API that the vendor's servers speak.
	Protocol Protocol
	// Target returns where a request of that API goes. The path is relative to the API's version, such as
	// chat/completions or messages. An error means that the vendor does not have the path.
	Target func(e Endpoint, path string) (Target, error)
	// New makes a model of a Provider. It does not open a connection. The error names the field
	// that is wrong.
	New func(Endpoint) (Model, error)
}

// Protocol is an API of which several vendors have servers.
type Protocol string

// Protocols.
const (
	// ProtocolOpenAI has chat completions and responses.
	ProtocolOpenAI Protocol = "openai"
	// ProtocolAnthropic has messages.
	ProtocolAnthropic Protocol = "anthropic"
)

// Target is the address of one operation of a Provider, with the header that authenticates requests there.
type Target struct {
	URL    *url.URL
	Header http.Header
}

// Endpoint is a Provider with everything that is needed to use it.
type Endpoint struct {
	Spec *v1alpha1.ProviderSpec
	// Key is the API key.
	Key string
	// Hosts is where the key may be sent. New makes models that send no request elsewhere.
	Hosts egress.Hosts
	Clock clock.WithDelayedExecution
	// Quirks is what is known about the server; nil if nothing is. Vendors that learn nothing ignore it.
	Quirks *Quirks
	// Transport sends the requests; nil means a transport of the model's own, without a proxy.
	Transport http.RoundTripper
}
