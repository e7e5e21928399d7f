// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/wellformed"
)

const (
	// attemptLife is how long a person may take at the provider.
	attemptLife = 10 * time.Minute
	// callback is where the provider sends the browser back.
	callback = console.Path + "provider/callback"
)

// attempt is a login at the provider. The browser keeps it in a cookie, sealed with a key of this process, so nobody can
// fill the memory of the server with attempts.
type attempt struct {
	external.Attempt
	Next    string
	Expires time.Time
}

// begin answers the page of the login with the address of the provider.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if r.Method != http.MethodPost || !console.FromPage(r) || origin == "" {
		console.Refuse(w, http.StatusForbidden, "only the console's own page may do this")
		return
	}
	a, location, err := h.o.Login.Begin(r.Context(), origin+callback)
	if err != nil {
		h.o.Sparse.Error(r.Context(), err, "A login at the OpenID provider could not begin")
		console.Refuse(w, http.StatusBadGateway, "the identity provider does not answer; try again later")
		return
	}
	next := r.Header.Get("X-Platform-Next")
	if !strings.HasPrefix(next, console.Path) {
		next = console.Path
	}
	text, err := json.Marshal(attempt{Attempt: *a, Next: next, Expires: h.o.Clock.Now().Add(attemptLife)})
	if err != nil {
		console.Refuse(w, http.StatusInternalServerError, "the login could not begin")
		return
	}
	http.SetCookie(w, console.LoginCookie(r, console.Encrypted(r), h.seal(text)))
	console.Answer(w, http.StatusOK, map[string]any{"location": location, "state": a.State})
}

// finish takes the browser that comes back from the provider to its console. The key of the session is in the fragment,
// with the state, without which the login's page takes no key from an address.
func (h *Handler) finish(w http.ResponseWriter, r *http.Request) {
	back := &url.URL{Path: console.Path + "login"}
	fail := func(why string) {
		back.Fragment = "error=" + why
		http.SetCookie(w, console.LoginCookie(r, console.Encrypted(r), ""))
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, back.String(), http.StatusSeeOther)
	}
	a := h.attempt(r)
	if r.Method != http.MethodGet || a == nil || wellformed.Query(r).Get("state") != a.State {
		fail("other")
		return
	}
	back.RawQuery = url.Values{"next": {a.Next}}.Encode()
	tokens, err := h.o.Login.Finish(r.Context(), &a.Attempt, wellformed.Query(r))
	if errors.Is(err, external.ErrBusy) {
		fail("full")
		return
	}
	if err != nil {
		h.o.Sparse.Error(r.Context(), err, "A login at the OpenID provider failed")
		fail("provider")
		return
	}
	secure := strings.HasPrefix(a.Redirect, "https://")
	for _, token := range tokens {
		entry, err := h.entry(r.Context(), token)
		if err != nil {
			continue
		}
		secrets, err := h.pages.Begin(entry)
		if err != nil {
			fail("full")
			return
		}
		http.SetCookie(w, console.LoginCookie(r, secure, ""))
		http.SetCookie(w, console.Cookie(r, secure, secrets.Cookie))
		back.Fragment = url.Values{"key": {secrets.Key}, "state": {a.State}}.Encode()
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, back.String(), http.StatusSeeOther)
		return
	}
	fail("refused")
}

// attempt returns the login that the browser began; nil if it began none, or too long ago.
func (h *Handler) attempt(r *http.Request) *attempt {
	text, err := h.open(console.LoginAttempt(r))
	var a attempt
	if err != nil || json.Unmarshal(text, &a) != nil || !h.o.Clock.Now().Before(a.Expires) {
		return nil
	}
	return &a
}
