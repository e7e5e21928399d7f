// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// HeaderKey carries the key of a session. A page of another origin cannot send it without being asked for permission,
	// which no server of the console gives.
	HeaderKey = "X-Platform-Console"
	// cookieName begins the names of cookies. Cookies of all ports of a host are kept together, so the port is part of the
	// name.
	cookieName = "platform-console"
	// loginCookieName begins the names of cookies of a login at an identity provider.
	loginCookieName = "platform-login"
	// hostPrefix makes browsers accept a cookie only from a host itself, over TLS, for all paths.
	hostPrefix = "__Host-"
)

// SameOrigin reports whether the console's own page made a request. Without either header, no recent browser made it, and the
// key of the session decides alone.
func SameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origins, has := r.Header["Origin"]
	if !has {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

// FromPage reports whether a script of the console's own page made a request. A page of another origin cannot set the
// header.
func FromPage(r *http.Request) bool { return SameOrigin(r) && r.Header.Get(HeaderKey) != "" }

// Encrypted reports whether the browser reaches the server over TLS, perhaps through a proxy: then its page says so.
func Encrypted(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// names returns the names that a cookie may have, with and without TLS.
func names(r *http.Request, name string) []string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	return []string{hostPrefix + name, name}
}

// Cookie returns the cookie of a session for the browser that made a request, over TLS or not. An empty value removes it.
func Cookie(r *http.Request, secure bool, value string) *http.Cookie {
	return cookie(r, cookieName, secure, value, http.SameSiteStrictMode)
}

// LoginCookie returns a cookie with which a browser comes back from an identity provider. That is a page of another site, so
// the cookie is sent with what such pages open.
func LoginCookie(r *http.Request, secure bool, value string) *http.Cookie {
	return cookie(r, loginCookieName, secure, value, http.SameSiteLaxMode)
}

// LoginAttempt returns the value of the LoginCookie that a request has, or "".
func LoginAttempt(r *http.Request) string {
	for _, name := range names(r, loginCookieName) {
		if found := r.CookiesNamed(name); len(found) == 1 {
			return found[0].Value
		}
	}
	return ""
}

func cookie(r *http.Request, name string, secure bool, value string, site http.SameSite) *http.Cookie {
	c := &http.Cookie{Name: names(r, name)[1], Value: value, Path: "/", HttpOnly: true, SameSite: site} //nolint:gosec // see below
	if secure {
		c.Name, c.Secure = names(r, name)[0], true
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// Presented returns what a request presents of a session; ok is false if it presents none, or another credential, which
// then counts alone.
func Presented(r *http.Request) (secrets Secrets, ok bool) {
	for _, other := range []string{"Authorization", "X-Api-Key", "Txn-Token"} {
		if r.Header.Get(other) != "" {
			return Secrets{}, false
		}
	}
	secrets.Key = r.Header.Get(HeaderKey)
	for _, name := range names(r, cookieName) {
		found := r.CookiesNamed(name)
		if len(found) > 1 { // somebody else set one of them
			return Secrets{}, false
		}
		if len(found) == 1 && secrets.Cookie == "" {
			secrets.Cookie = found[0].Value
		}
	}
	return secrets, secrets.Key != "" && secrets.Cookie != ""
}

// Strip removes what belongs to the console from the header of a request for the API. Other cookies, which the API does not
// read either, go as well.
func Strip(h http.Header) {
	h.Del(HeaderKey)
	h.Del("Cookie")
}

// API reports whether a path is one of those that the page uses.
func API(path string) bool {
	return strings.HasPrefix(path, "/apis/") || strings.HasPrefix(path, "/api/v1/") ||
		slices.Contains([]string{"/version", "/apis", "/openapi/v3"}, path)
}

// Answer sends JSON.
func Answer(w http.ResponseWriter, code int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // texts and numbers, and the client may have left
}

// Refuse sends an error, in the form of the REST API.
func Refuse(w http.ResponseWriter, code int, message string) {
	Answer(w, code, map[string]any{"error": map[string]any{"code": code, "message": message}})
}
