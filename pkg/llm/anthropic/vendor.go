// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// Vendor is Anthropic and every server that implements its Messages protocol.
var Vendor = llm.Vendor{
	Type: v1alpha1.ProviderAnthropic,
	New: func(e llm.Endpoint) (llm.Model, error) {
		return New(Config{APIKey: e.Key, BaseURL: e.Spec.BaseURL, Clock: e.Clock, Transport: e.Transport})
	},
}
