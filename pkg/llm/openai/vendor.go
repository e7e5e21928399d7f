// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// Vendor is OpenAI and every server that implements its protocol.
var Vendor = llm.Vendor{
	Type: v1alpha1.ProviderOpenAI,
	New: func(e llm.Endpoint) (llm.Model, error) {
		return New(Config{APIKey: e.Key, BaseURL: e.Spec.BaseURL, Clock: e.Clock, Transport: e.Transport})
	},
}

// AzureVendor is Azure OpenAI, where a deployment determines the model.
var AzureVendor = llm.Vendor{
	Type:         v1alpha1.ProviderAzureOpenAI,
	NeedsBaseURL: true, NeedsAzure: true,
	DefaultModel: func(s *v1alpha1.ProviderSpec) string { return s.Azure.DeploymentName },
	New: func(e llm.Endpoint) (llm.Model, error) {
		if e.Spec.Azure == nil {
			return nil, errors.New("spec.azure is required")
		}
		return New(Config{
			APIKey: e.Key, BaseURL: e.Spec.BaseURL, Clock: e.Clock, Transport: e.Transport,
			Azure: &Azure{Deployment: e.Spec.Azure.DeploymentName, APIVersion: e.Spec.Azure.APIVersion},
		})
	},
}
