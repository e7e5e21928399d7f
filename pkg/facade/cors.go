// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"slices"
)

// cors says which pages may use the facade (supplement 0.4). Only tokens that a page itself sends count: no cookie
// and no client certificate lets it act for its visitor.
type cors struct {
	any     bool
	origins []string
}

const (
	corsMethods = "GET, POST, PUT, DELETE, PATCH, OPTIONS"
	corsHeaders = "Origin, Content-Type, Accept, Authorization, X-API-Key, Txn-Token, Idempotency-Key, Last-Event-ID, X-Request-Id"
	corsExposed = "X-Request-Id, Content-Disposition, Retry-After"
	// corsMaxAge is how long a browser may remember a preflight, in seconds.
	corsMaxAge = "600"
)

func newCORS(origins []string) cors {
	return cors{any: len(origins) == 0 || slices.Contains(origins, "*"), origins: origins}
}

// answer sets the headers for a request that a page made, and answers a preflight, which it reports.
func (c cors) answer(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	h := w.Header()
	if !c.any {
		h.Add("Vary", "Origin")
	}
	if origin != "" && (c.any || slices.Contains(c.origins, origin)) {
		allowed := origin
		if c.any {
			allowed = "*"
		}
		h.Set("Access-Control-Allow-Origin", allowed)
		h.Set("Access-Control-Expose-Headers", corsExposed)
		if preflight {
			h.Set("Access-Control-Allow-Methods", corsMethods)
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", corsMaxAge)
		}
	}
	if preflight {
		w.WriteHeader(http.StatusNoContent)
	}
	return preflight
}
