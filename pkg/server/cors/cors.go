// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cors decides which web pages may use the platform's HTTP endpoints from a browser. Callers are
// authenticated only by tokens that a page sends itself. Cookies are never read, so browser credentials are not
// allowed.
package cors

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

const (
	// EnvOrigins lists the origins whose pages are allowed, separated by commas or spaces; unset allows any.
	EnvOrigins = "PLATFORM_CORS_ALLOWED_ORIGINS"
	// EnvOriginsAlias is read if EnvOrigins is not set.
	EnvOriginsAlias = "ORKA_CORS_ALLOWED_ORIGINS"
)

// maxAge is how long a browser may cache a preflight, in seconds.
const maxAge = "600"

// Origins reads the allowed origins from the environment.
func Origins(getenv func(string) string) []string {
	value := cmp.Or(getenv(EnvOrigins), getenv(EnvOriginsAlias))
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// Policy is what the pages of the allowed origins may do.
type Policy struct {
	any                       bool
	origins                   []string
	methods, headers, exposed string
}

// New returns the policy that lets the pages of the given origins use methods, send headers and read the exposed
// headers. If origins is empty or contains "*", any page may.
func New(origins, methods, headers, exposed []string) Policy {
	list := func(names []string) string { return strings.Join(names, ", ") }
	return Policy{
		any: len(origins) == 0 || slices.Contains(origins, "*"), origins: origins,
		methods: list(methods), headers: list(headers), exposed: list(exposed),
	}
}

// IsPreflight reports whether a browser asks whether a page may send a request.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// Allow sets the headers that let the page that sent a request read the answer, if its origin is allowed. Call it for
// every answer.
func (p Policy) Allow(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if !p.any {
		h.Add("Vary", "Origin") // for caches; also on answers to other origins
	}
	if origin == "" || !p.any && !slices.Contains(p.origins, origin) {
		return
	}
	if p.any {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", p.exposed)
}

// Preflight sets the headers that say what a page may send, if Allow has allowed its origin.
func (p Policy) Preflight(h http.Header) {
	if h.Get("Access-Control-Allow-Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Methods", p.methods)
	h.Set("Access-Control-Allow-Headers", p.headers)
	h.Set("Access-Control-Max-Age", maxAge)
}
