// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

const (
	headerRequestID = "X-Request-Id"
	headerAPIKey    = "X-Api-Key" //nolint:gosec // a name, not a key
	// maxRequestID is the maximum length of a client's request ID, in bytes: the ID goes into logs and the audit log.
	maxRequestID = 128
)

// authorization returns the Authorization of a request, and whether the request has one, valid or not. An x-api-key
// counts only without an Authorization header, so that an invalid header does not fall through to another identity.
func authorization(r *http.Request) (value string, has bool) {
	if _, has := r.Header["Authorization"]; has {
		return r.Header.Get("Authorization"), true
	}
	key := r.Header.Get(headerAPIKey)
	return "Bearer " + key, key != ""
}

// authorize sets the credentials of a native request. A browser sends a client certificate with the requests of any
// page, so a request that a page made must carry a token. A header that occurs several times stays so, and the chain
// refuses it.
func authorize(r *http.Request, page bool) {
	if _, has := r.Header["Authorization"]; !has {
		for _, key := range r.Header.Values(headerAPIKey) {
			r.Header.Add("Authorization", "Bearer "+key)
		}
	}
	r.Header.Del(headerAPIKey)
	if page {
		r.TLS = nil
	}
}

// bearer returns the token of a request as the chain reads it, and whether the request has one, valid or not.
func bearer(r *http.Request) (token string, has bool) {
	value, has := authorization(r)
	parts := strings.SplitN(strings.TrimSpace(value), " ", 3)
	if len(parts) < 2 || !strings.EqualFold(parts[0], "bearer") {
		return "", has
	}
	return parts[1], has
}

// credentials reports whether a request has credentials that the chain will check. Without them, a chain that lets
// anybody read health and discovery would accept an anonymous caller, which REST does not allow.
func credentials(r *http.Request) bool {
	if token, has := bearer(r); has {
		return token != ""
	}
	return !fromPage(r) && r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// presents reports whether a request has credentials, of this host or external ones.
func (f *Facade) presents(r *http.Request) bool {
	kind, _ := f.external(r)
	return kind != "" || credentials(r)
}

// fromPage reports whether a page in a browser made a request.
func fromPage(r *http.Request) bool { return r.Header.Get("Origin") != "" }

// ownNamespace returns the namespace of the ServiceAccount that a request's token names, or "". It is used only as
// the default namespace; the chain checks the token's signature before it answers.
func ownNamespace(r *http.Request) string {
	token, _ := bearer(r)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return serviceAccountNamespace(claims.Subject)
}

// AccountNamespace returns the namespace in the user name of a ServiceAccount, both as JSON; nil for any other name.
// It is for use as Field.As.
func AccountNamespace(user json.RawMessage) json.RawMessage {
	var name string
	if json.Unmarshal(user, &name) != nil {
		return nil
	}
	ns := serviceAccountNamespace(name)
	if ns == "" {
		return nil
	}
	return json.RawMessage(strconv.Quote(ns))
}

// requestID returns the client's ID of the request if it is safe to log, otherwise a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(headerRequestID)
	fit := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	if id != "" && len(id) <= maxRequestID && strings.TrimFunc(id, fit) == "" {
		return id
	}
	return rand.Text()
}
