// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net"
	"net/http"
	"strings"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/util/cert"
)

// ownHost returns what refuses requests for other names than those of this machine, if the listener is on loopback. A page may have
// its own name lead to a loopback address, and would then be of the same origin as the listener. known, if not nil, reports
// other names of the listener.
func ownHost(l net.Listener, known func(name string) bool) func(http.Handler) http.Handler {
	if addr, ok := l.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return func(h http.Handler) http.Handler { return h }
	}
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := r.Host
			if host, _, err := net.SplitHostPort(name); err == nil {
				name = host
			}
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			if ofMachine(name) || known != nil && known(name) {
				h.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Connection", "close") // or the listener would wait for the body first
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusMisdirectedRequest)
			_, _ = io.WriteString(w, `{"error":{"code":421,"message":"this listener is for localhost; use that name or an address"}}`+"\n") // the client may be gone
		})
	}
}

// ofMachine reports whether a name is an address, or one that leads to this machine whatever a name server says.
func ofMachine(name string) bool {
	return net.ParseIP(strings.Trim(name, "[]")) != nil || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// certified returns a func that reports whether a name is one of the serving certificate, which may change.
func certified(s *genericapiserver.SecureServingInfo) func(name string) bool {
	return func(name string) bool {
		chain, _ := s.Cert.CurrentCertKeyContent()
		certs, err := cert.ParseCertsPEM(chain)
		return err == nil && certs[0].VerifyHostname(name) == nil
	}
}
