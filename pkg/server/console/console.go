// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console serves the web console on the listeners of the API server.
package console

import (
	"net/http"
	"strings"

	"github.com/platform-ai/platform/pkg/console"
)

// Options configure a Handler.
type Options struct {
	// Off switches the console off: its paths say so.
	Off bool
}

// Handler serves the console.
type Handler struct {
	o      Options
	static *console.Static
}

// New makes a handler.
func New(o Options) (*Handler, error) {
	static, err := console.NewStatic()
	return &Handler{o: o, static: static}, err
}

// Wrap serves the console's paths before those of a listener.
func (h *Handler) Wrap(listener http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, console.Path), r.URL.Path+"/" == console.Path:
			h.serve(w, r)
		case r.URL.Path == "/" && navigates(r) && !h.o.Off:
			console.Protect(w.Header())
			http.Redirect(w, r, console.Path, http.StatusFound)
		default:
			listener.ServeHTTP(w, r)
		}
	})
}

// navigates reports whether a person opens a path in a browser without any credential. Clients of the API do not say so.
func navigates(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Authorization") == "" &&
		(r.TLS == nil || len(r.TLS.PeerCertificates) == 0)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	console.Protect(w.Header())
	switch {
	case h.o.Off:
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "the console is switched off on this server (--console=false)", http.StatusNotFound)
	case r.URL.Path+"/" == console.Path:
		http.Redirect(w, r, console.Path, http.StatusMovedPermanently)
	default:
		h.static.ServeHTTP(w, r)
	}
}
