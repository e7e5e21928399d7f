// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Vendor makes the models of one type of Provider. Its package exports it, and
// package vendors lists it.
type Vendor struct {
	Type v1alpha1.ProviderType
	// NeedsBaseURL is set where the vendor has no address of its own, so that
	// spec.baseURL is required.
	NeedsBaseURL bool
	// NeedsAzure is set where spec.azure is required. It is forbidden elsewhere.
	NeedsAzure bool
	// DefaultModel returns the model where nothing else names one, empty for none.
	// Nil is none.
	DefaultModel func(*v1alpha1.ProviderSpec) string
	// New makes a model of a Provider. It dials nothing. The error names the field
	// that is wrong.
	New func(Endpoint) (Model, error)
}

// Endpoint is a Provider with what is needed to use it.
type Endpoint struct {
	Spec *v1alpha1.ProviderSpec
	// Key is the API key.
	Key   string
	Clock clock.WithDelayedExecution
}
