// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// Vendor is Anthropic and every server that implements its Messages protocol.
var Vendor = llm.Vendor{
	Type:     v1alpha1.ProviderAnthropic,
	Protocol: llm.ProtocolAnthropic,
	Target: func(e llm.Endpoint, path string) (llm.Target, error) {
		base, err := baseURL(e.Spec.BaseURL)
		if err != nil {
			return llm.Target{}, err
		}
		return llm.Target{URL: base.JoinPath("v1", path), Header: header(e.Key)}, nil
	},
	New: func(e llm.Endpoint) (llm.Model, error) {
		return New(Config{APIKey: e.Key, BaseURL: e.Spec.BaseURL, Hosts: e.Hosts, Clock: e.Clock, Quirks: e.Quirks, Transport: e.Transport})
	},
}

// header returns what every request has. The key may be empty.
func header(key string) http.Header {
	h := http.Header{"Anthropic-Version": {version}}
	if key != "" {
		h.Set("X-Api-Key", key)
	}
	return h
}

// version of the protocol that is sent if a client names none.
const version = "2023-06-01"
