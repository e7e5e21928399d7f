// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// The page to which the callback of a consent sends people is the console's view, on a server that has a console.
func TestConnectorsPage(t *testing.T) {
	t.Parallel()
	nobody := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	listener := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	ask := func(o Options, method, target string) *httptest.ResponseRecorder {
		t.Helper()
		o.Authenticate = nobody
		h, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.Wrap(listener, listener).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
		return w
	}
	const query = "?status=pending&connection=github-0123&namespace=team"
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		got := ask(Options{}, method, "/settings/connectors"+query)
		if got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/console/settings/connectors"+query {
			t.Errorf("%s: %d %v", method, got.Code, got.Header())
		}
		if got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", method, got.Header())
		}
	}
	for _, c := range []struct {
		o              Options
		method, target string
		want           int
	}{
		{Options{}, http.MethodPost, "/settings/connectors", http.StatusMethodNotAllowed},
		{Options{}, http.MethodGet, "/settings/connectors?a=%zz", http.StatusBadRequest},
		{Options{}, http.MethodGet, "/settings/connectors/", http.StatusTeapot},
		{Options{}, http.MethodGet, "/settings", http.StatusTeapot},
		{Options{Off: true}, http.MethodGet, "/settings/connectors" + query, http.StatusTeapot},
	} {
		if got := ask(c.o, c.method, c.target); got.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.target, got.Code, c.want)
		}
	}
}
