// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console serves the web console on the listeners of the API server. A person exchanges a token for a session;
// each request of the session is then a request with this token, so it is authenticated and authorized as any other, and
// a token that is revoked is of no use in a session either. Open streams check their token again every half minute, and are cut
// then. A login sends the token in Authorization and has no body, so no byte of a body is read from an unknown caller.
//
// A session reaches what pkg/console.API names, on the plain listener, too. Sessions are in memory and end with the process. Their
// tokens are encrypted with a key that only the cookie gives. What the page offers to a user follows a SelfSubjectRulesReview,
// which a server in a cluster answers on its own port (server/aggregated).
//
//	console.go   the console in front of the listeners, and logins with a token
//	provider.go  logins at an OpenID provider
//	settings.go  where the browser of somebody who linked an account comes back to
//	seal.go      what a browser keeps of such a login
package console

import (
	"context"
	"crypto/cipher"
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sparse"
)

const (
	// DefaultIdle is how long a session lasts without a request.
	DefaultIdle = time.Hour
	// DefaultLife is how long a session lasts at most.
	DefaultLife = 12 * time.Hour
	// bearer begins the Authorization of a token.
	bearer = "Bearer "
)

// Options configure a Handler. Authenticate is required.
type Options struct {
	// Off switches the console off: its paths say so.
	Off bool
	// Idle and Life are how long a session lasts without a request, and at most. Default: DefaultIdle and DefaultLife.
	Idle, Life time.Duration
	// Clock decides what has expired. Default: the real clock.
	Clock clock.WithTicker
	// Authenticate finds the user of a request, and Audiences are those that tokens must name.
	Authenticate authenticator.Request
	Audiences    authenticator.Audiences
	// Login is how people get tokens of an OpenID provider; nil if they do not.
	Login *external.Login
	// Sparse receives the failures of logins. Default: a new sparse log on Clock.
	Sparse *sparse.Log
}

// Handler serves the console.
type Handler struct {
	o      Options
	pages  *console.Console
	sealer cipher.AEAD
}

// New makes a handler.
func New(o Options) (*Handler, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	if o.Life == 0 {
		o.Life = DefaultLife
	}
	if o.Sparse == nil {
		o.Sparse = sparse.New(o.Clock)
	}
	h := &Handler{o: o}
	var err error
	if h.sealer, err = newSealer(); err != nil {
		return nil, err
	}
	more := map[string]http.HandlerFunc{}
	if o.Login != nil {
		more["provider"], more["provider/callback"] = h.begin, h.finish
	}
	h.pages, err = console.New(console.Options{
		Sessions: console.SessionOptions{Idle: o.Idle, Life: o.Life, Clock: o.Clock},
		Way:      console.Way{Token: true, Provider: o.Login != nil}, Enter: h.enter, Good: h.good, More: more,
	})
	return h, err
}

// Wrap serves the console's paths before those of a listener. Requests that belong to a session are given to api, whatever
// else the listener serves.
func (h *Handler) Wrap(listener, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case console.Owns(r.URL.Path) && h.o.Off:
			console.Protect(w.Header())
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "the console is switched off on this server (--console=false)", http.StatusNotFound)
		case h.o.Off:
			listener.ServeHTTP(w, r)
		case (console.Owns(r.URL.Path) || r.URL.Path == connectorsPath) && wellformed.Check(r) != nil:
			console.Refuse(w, http.StatusBadRequest, wellformed.Check(r).Error())
		case console.Owns(r.URL.Path):
			h.pages.ServeHTTP(w, r)
		case r.URL.Path == connectorsPath:
			connectors(w, r)
		case r.URL.Path == "/" && navigates(r):
			console.Protect(w.Header())
			http.Redirect(w, r, console.Path, http.StatusFound)
		case !h.pages.Through(w, r, api, authorize):
			listener.ServeHTTP(w, r)
		}
	})
}

// navigates reports whether a person opens a path in a browser without any credential. Clients of the API do not say so.
func navigates(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Authorization") == "" &&
		(r.TLS == nil || len(r.TLS.PeerCertificates) == 0)
}

// authorize gives a request the token of its session. A client certificate, which a browser sends by itself, would come
// first, so it is left out.
func authorize(r *http.Request, token string) {
	r.Header.Set("Authorization", bearer+token)
	if r.TLS != nil {
		state := *r.TLS
		state.PeerCertificates, state.VerifiedChains = nil, nil
		r.TLS = &state
	}
}

// enter returns the user of a token.
func (h *Handler) enter(r *http.Request) (console.Entry, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
	if !ok || len(r.Header["Authorization"]) != 1 {
		return console.Entry{}, console.ErrRefused
	}
	return h.entry(r.Context(), token)
}

func (h *Handler) entry(ctx context.Context, token string) (console.Entry, error) {
	who := h.who(ctx, token)
	if who == nil {
		return console.Entry{}, console.ErrRefused
	}
	e := console.Entry{User: who.GetName(), Namespace: "default", Credential: token}
	if ns, _, err := serviceaccount.SplitUsername(e.User); err == nil {
		e.Namespace = ns
	}
	if id := external.From(who); id != nil {
		e.Namespace = id.Namespace
	}
	return e, nil
}

func (h *Handler) good(ctx context.Context, token string) bool { return h.who(ctx, token) != nil }

// who returns the user of a token; nil if it is not accepted.
func (h *Handler) who(ctx context.Context, token string) user.Info {
	if len(h.o.Audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, h.o.Audiences)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, console.Path+"session", nil)
	if err != nil {
		return nil
	}
	r.Header.Set("Authorization", bearer+token)
	r.TLS = &tls.ConnectionState{}
	resp, ok, err := h.o.Authenticate.AuthenticateRequest(r)
	if err != nil || !ok || resp == nil || resp.User.GetName() == user.Anonymous {
		return nil
	}
	return resp.User
}
