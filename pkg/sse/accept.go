// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"net/http"
	"strings"
)

// Accepted reports whether a request names the media type of a stream in its Accept header. A request that accepts everything
// does not ask for a stream.
func Accepted(h http.Header) bool {
	for _, value := range h.Values("Accept") {
		for one := range strings.SplitSeq(value, ",") {
			one, _, _ = strings.Cut(one, ";")
			if strings.TrimSpace(one) == ContentType {
				return true
			}
		}
	}
	return false
}

// Begin sends the header of a stream.
func Begin(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
}
