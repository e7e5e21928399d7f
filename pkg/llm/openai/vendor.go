// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// Vendor is OpenAI and every server that implements its protocol.
var Vendor = llm.Vendor{
	Type:     v1alpha1.ProviderOpenAI,
	Protocol: llm.ProtocolOpenAI,
	Target: func(e llm.Endpoint, path string) (llm.Target, error) {
		return target(Config{APIKey: e.Key, BaseURL: e.Spec.BaseURL}, path)
	},
	New: func(e llm.Endpoint) (llm.Model, error) {
		return New(Config{APIKey: e.Key, BaseURL: e.Spec.BaseURL, Hosts: e.Hosts, Clock: e.Clock, Quirks: e.Quirks, Transport: e.Transport})
	},
}

// AzureVendor is Azure OpenAI, where a deployment determines the model.
var AzureVendor = llm.Vendor{
	Type:         v1alpha1.ProviderAzureOpenAI,
	NeedsBaseURL: true, NeedsAzure: true,
	Protocol: llm.ProtocolOpenAI,
	Target: func(e llm.Endpoint, path string) (llm.Target, error) {
		if e.Spec.Azure == nil {
			return llm.Target{}, errors.New("spec.azure is required")
		}
		return target(Config{
			APIKey: e.Key, BaseURL: e.Spec.BaseURL,
			Azure: &Azure{Deployment: e.Spec.Azure.DeploymentName, APIVersion: e.Spec.Azure.APIVersion},
		}, path)
	},
	DefaultModel: func(s *v1alpha1.ProviderSpec) string { return s.Azure.DeploymentName },
	New: func(e llm.Endpoint) (llm.Model, error) {
		if e.Spec.Azure == nil {
			return nil, errors.New("spec.azure is required")
		}
		return New(Config{
			APIKey: e.Key, BaseURL: e.Spec.BaseURL, Hosts: e.Hosts, Clock: e.Clock, Quirks: e.Quirks, Transport: e.Transport,
			Azure: &Azure{Deployment: e.Spec.Azure.DeploymentName, APIVersion: e.Spec.Azure.APIVersion},
		})
	},
}

// target returns the address of an operation. A deployment of Azure has chat completions only.
func target(c Config, path string) (llm.Target, error) {
	base, err := endpoint(c)
	if err != nil {
		return llm.Target{}, err
	}
	t := llm.Target{URL: base.JoinPath(path), Header: http.Header{}}
	switch {
	case c.Azure != nil && path != "chat/completions":
		return llm.Target{}, fmt.Errorf("a deployment of Azure OpenAI does not have %s", path)
	case c.Azure != nil:
		t.URL.RawQuery = url.Values{"api-version": {cmp.Or(c.Azure.APIVersion, defaultAzureAPIVersion)}}.Encode()
		t.Header.Set("Api-Key", c.APIKey)
	case c.APIKey != "":
		t.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	return t, nil
}
