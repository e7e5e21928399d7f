// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cors says which pages may use our HTTP endpoints from a browser. Only tokens
// that a page itself sends count: cookies are never read, so credentials of the browser are not allowed.
package cors

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

const (
	// EnvOrigins lists the origins whose pages are let in, separated by commas or spaces; unset is any.
	EnvOrigins = "PLATFORM_CORS_ALLOWED_ORIGINS"
	// EnvOriginsAlias is looked at where EnvOrigins is not set.
	EnvOriginsAlias = "ORKA_CORS_ALLOWED_ORIGINS"
)

// maxAge is how long a browser may remember a preflight, in seconds.
const maxAge = "600"

// Origins reads the origins that are let in from the environment.
func Origins(getenv func(string) string) []string {
	value := cmp.Or(getenv(EnvOrigins), getenv(EnvOriginsAlias))
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// Policy is what the pages of some origins may do.
type Policy struct {
	any                       bool
	origins                   []string
	methods, headers, exposed string
}

// New returns the policy that lets pages of origins, or any page where there is none or "*", use methods, send headers
// and read the exposed ones.
func New(origins, methods, headers, exposed []string) Policy {
	list := func(names []string) string { return strings.Join(names, ", ") }
	return Policy{
		any: len(origins) == 0 || slices.Contains(origins, "*"), origins: origins,
		methods: list(methods), headers: list(headers), exposed: list(exposed),
	}
}

// IsPreflight tells whether a browser asks if a page may send a request.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// Allow lets the page that sent a request read the answer, or says nothing where it may not. Every answer needs it.
func (p Policy) Allow(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if !p.any {
		h.Add("Vary", "Origin") // also on answers to others, for caches
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

// Preflight says what a page may send, if Allow has let it.
func (p Policy) Preflight(h http.Header) {
	if h.Get("Access-Control-Allow-Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Methods", p.methods)
	h.Set("Access-Control-Allow-Headers", p.headers)
	h.Set("Access-Control-Max-Age", maxAge)
}
