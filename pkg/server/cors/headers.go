// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cors

// VendorHeaders returns the headers that pages may send to the vendors' APIs, here and at the router: credentials, those that
// the platform reads or passes on, and metadata that the vendors' SDKs send from a browser.
func VendorHeaders() []string {
	return []string{
		"Accept", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "Anthropic-Version", "Authorization", "Content-Type",
		"Idempotency-Key", "Openai-Beta", "Openai-Organization", "Openai-Project", "Traceparent", "Tracestate", "User-Agent",
		"X-Api-Key", "X-Orka-Tools", "X-Platform-Tools", "X-Request-Id", "X-Stainless-Arch", "X-Stainless-Custom-Poll-Interval",
		"X-Stainless-Helper", "X-Stainless-Helper-Method", "X-Stainless-Lang", "X-Stainless-Os", "X-Stainless-Package-Version",
		"X-Stainless-Poll-Helper", "X-Stainless-Retry-Count", "X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Timeout",
	}
}
