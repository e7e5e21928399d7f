// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import "net/http"

const (
	// policy lets the page run its own scripts and styles and talk to its own origin, and nothing else. Images may be data,
	// because small ones are part of the style. Texts that agents wrote cannot become scripts (Trusted Types).
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	// apiPolicy is for answers of the API: a browser that shows one as a page runs and loads nothing.
	apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
)

// Protect sets the headers that every answer to a page has.
func Protect(h http.Header) { protect(h, policy) }

// ProtectAPI sets the headers of an answer of the API to the page.
func ProtectAPI(h http.Header) {
	protect(h, apiPolicy)
	h.Set("Cache-Control", "no-store")
}

func protect(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}
