// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"strings"
)

// Other endpoints beside the REST paths accept the same credentials, by the same rules.

// HasCredentials reports whether a request has credentials that the chain will check.
func HasCredentials(r *http.Request) bool { return credentials(r) }

// Authorize sets the credentials of a native request that is made of a client's request: a Bearer token wins over an
// x-api-key, and a request that a page made must carry a token.
func Authorize(r *http.Request) { authorize(r, fromPage(r)) }

// OwnNamespace returns the namespace of the ServiceAccount that a request's token names, or "". The token is not
// checked here.
func OwnNamespace(r *http.Request) string { return ownNamespace(r) }

// RequestID returns the client's ID of the request if it is safe to log, otherwise a new one.
func RequestID(r *http.Request) string { return requestID(r) }

// serviceAccountNamespace returns the namespace in the user name of a ServiceAccount, or "".
func serviceAccountNamespace(user string) string {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	ns, _, two := strings.Cut(rest, ":")
	if !ok || !two {
		return ""
	}
	return ns
}
