// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"slices"
	"strings"
)

const (
	// EnvCORSOrigins lists the origins whose pages may use the router, separated by commas; unset is any (document 1 §8).
	EnvCORSOrigins = "PLATFORM_CORS_ALLOWED_ORIGINS"
	// EnvCORSOriginsAlias is looked at where EnvCORSOrigins is not set.
	EnvCORSOriginsAlias = "ORKA_CORS_ALLOWED_ORIGINS"
)

// CORSOrigins reads the allowed origins from the environment.
func CORSOrigins(getenv func(string) string) []string {
	value := getenv(EnvCORSOrigins)
	if value == "" {
		value = getenv(EnvCORSOriginsAlias)
	}
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// corsMaxAge is how long a browser may remember a preflight, in seconds.
const corsMaxAge = "600"

// cors says which pages may use the router. Only tokens that a page itself sends count: cookies are never read, so
// credentials of the browser are not allowed.
type cors struct {
	any     bool
	origins []string
	headers string
}

func newCORS(origins []string) cors {
	return cors{
		any: len(origins) == 0 || slices.Contains(origins, "*"), origins: origins,
		headers: strings.Join(slices.Concat(passed(), []string{headerAuthorization, headerAPIKey, headerRequestID}, sdkHeaders()), ", "),
	}
}

// corsMethods are those of the endpoints.
func corsMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// sdkHeaders are metadata that the vendors' SDKs send from a browser. A page may send them; they are not forwarded.
func sdkHeaders() []string {
	return []string{
		"Anthropic-Dangerous-Direct-Browser-Access", "Idempotency-Key", "Openai-Beta", "Openai-Organization", "Openai-Project",
		"X-Stainless-Arch", "X-Stainless-Custom-Poll-Interval", "X-Stainless-Helper", "X-Stainless-Helper-Method",
		"X-Stainless-Lang", "X-Stainless-Os", "X-Stainless-Package-Version", "X-Stainless-Poll-Helper",
		"X-Stainless-Retry-Count", "X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Timeout",
	}
}

// isPreflight tells whether a browser asks if it may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// allow lets the page of an origin read an answer.
func (c cors) allow(h http.Header, origin string) {
	if !c.any {
		h.Add("Vary", "Origin")
	}
	if !c.allowed(origin) {
		return
	}
	if c.any {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Request-Id, Retry-After, X-Request-Id")
}

func (c cors) allowed(origin string) bool {
	return origin != "" && (c.any || slices.Contains(c.origins, origin))
}

// preflight says what a page may send, once allow has let it.
func (c cors) preflight(h http.Header) {
	if h.Get("Access-Control-Allow-Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(corsMethods(), ", "))
	h.Set("Access-Control-Allow-Headers", c.headers)
	h.Set("Access-Control-Max-Age", corsMaxAge)
}
