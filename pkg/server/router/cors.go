// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/server/cors"
)

// newCORS allows pages of the origins to send what the vendors' SDKs send.
func newCORS(origins []string) cors.Policy {
	headers := slices.Concat(passed(), []string{headerAuthorization, headerAPIKey, headerRequestID}, sdkHeaders())
	return cors.New(origins, corsMethods(), headers, []string{"Request-Id", "Retry-After", headerRequestID})
}

// corsMethods returns the methods of the endpoints.
func corsMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// sdkHeaders returns headers with metadata that the vendors' SDKs send from a browser. A page may send them, but they
// are not forwarded.
func sdkHeaders() []string {
	return []string{
		"Anthropic-Dangerous-Direct-Browser-Access", "Idempotency-Key", "Openai-Beta", "Openai-Organization", "Openai-Project",
		"X-Stainless-Arch", "X-Stainless-Custom-Poll-Interval", "X-Stainless-Helper", "X-Stainless-Helper-Method",
		"X-Stainless-Lang", "X-Stainless-Os", "X-Stainless-Package-Version", "X-Stainless-Poll-Helper",
		"X-Stainless-Retry-Count", "X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Timeout",
	}
}
