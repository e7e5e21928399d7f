// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/rand"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

const (
	headerAuthorization = "Authorization"
	headerAPIKey        = "X-Api-Key" //nolint:gosec // a name, not a key
	headerTxnToken      = "Txn-Token"
	headerRequestID     = "X-Request-Id"
	headerCacheControl  = "Cache-Control"

	// cacheControl is set on every answer, so that no cache gives one caller's answer to another.
	cacheControl = "private, no-store"
	// maxRequestID is the maximum length of a client's request ID, in bytes: the ID goes into logs.
	maxRequestID = 128
)

// passed returns the request headers that are forwarded to the installation, in addition to Authorization and the
// length of the body. All others are dropped: other credentials, cookies, impersonation, metadata of SDKs, and what
// proxies add.
func passed() []string {
	return []string{
		"Accept", "Accept-Encoding", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "Traceparent", "Tracestate",
		"User-Agent", "X-Orka-Tools", "X-Platform-Tools",
	}
}

// outgoing returns the header of the request to the installation.
func outgoing(in http.Header, token, id string) http.Header {
	out := http.Header{"User-Agent": {""}} // keeps the transport from adding its own
	hop := nominated(in)
	for _, name := range passed() {
		if values := in[name]; len(values) > 0 && !slices.Contains(hop, name) {
			out[name] = slices.Clone(values)
		}
	}
	out.Set(headerAuthorization, "Bearer "+token)
	out.Set(headerRequestID, id)
	return out
}

// withheld reports whether a header of an answer is not passed on: headers about one connection, headers that the
// router itself sets (cookies, CORS, caching), and headers that apply to the whole hostname, which the installations
// share.
func withheld(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Set-Cookie", "Set-Cookie2",
		"Age", headerCacheControl, "Cdn-Cache-Control", "Expires", "Pragma", "Surrogate-Control",
		"Alt-Svc", "Clear-Site-Data", "Expect-Ct", "Nel", "Public-Key-Pins", "Report-To", "Reporting-Endpoints",
		"Service-Worker-Allowed", "Strict-Transport-Security":
		return true
	}
	return strings.HasPrefix(name, "Access-Control-")
}

// answer adds the header of an installation's answer to the header for the client.
func answer(to, from http.Header) {
	hop := nominated(from)
	for name, values := range from {
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case withheld(name) || slices.Contains(hop, name):
		case name == "Vary": // in addition to the router's own
			to[name] = append(to[name], values...)
		default:
			to[name] = slices.Clone(values)
		}
	}
}

// nominated returns the headers that concern one connection because the Connection header lists them.
func nominated(h http.Header) []string {
	var names []string
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// requestID returns the client's ID of the request if it is safe to log, otherwise a new one.
func requestID(h http.Header) string {
	id := h.Get(headerRequestID)
	fit := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	if id != "" && len(id) <= maxRequestID && strings.TrimFunc(id, fit) == "" {
		return id
	}
	return rand.Text()
}
