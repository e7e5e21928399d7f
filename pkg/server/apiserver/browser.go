// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// withoutAmbient ignores the client certificate of a request that a page of another origin made. A browser sends the
// certificate by itself, whatever page asks it to, so it does not show that its owner wants the request. A token does,
// since a page must have it. Requests that kube-apiserver forwards carry the name of their user, and the certificate is
// kube-apiserver's own.
func withoutAmbient(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && fromPage(r) && r.Header.Get("X-Remote-User") == "" {
			state := *r.TLS
			state.PeerCertificates, state.VerifiedChains = nil, nil
			r = r.WithContext(r.Context()) // a copy
			r.TLS = &state
		}
		h.ServeHTTP(w, r)
	})
}

// fromPage reports whether a page made the request: browsers add Origin to each request but plain navigation and
// images, and Sec-Fetch-Site to all.
func fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") != "" || site == "cross-site" || site == "same-site"
}

// lenient resolves paths that the API server cannot take apart, such as /api/v1/proxy, as paths of no resource. They are
// answered with 404, or with 403 for callers who may not ask; the chain would answer 500.
type lenient struct {
	request.RequestInfoResolver
}

// NewRequestInfo describes a request.
func (l lenient) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	info, err := l.RequestInfoResolver.NewRequestInfo(r)
	if err != nil {
		return &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}, nil //nolint:nilerr // see above
	}
	return info, nil
}
