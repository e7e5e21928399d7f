// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestProbe asks a real server that behaves like those that users point Providers at.
func TestProbe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key")
		switch {
		case strings.HasPrefix(r.URL.Path, "/busy/"):
			w.WriteHeader(http.StatusTooManyRequests)
		case strings.HasPrefix(r.URL.Path, "/away/"):
			http.Redirect(w, r, "/v1/models", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/page/"):
			_, _ = w.Write([]byte("<html>hello</html>"))
		case r.URL.Path != "/v1/models":
			http.NotFound(w, r)
		case key != "right":
			http.Error(w, "wrong key "+key, http.StatusUnauthorized)
		default:
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"small"},{"id":"large"}]}`))
		}
	}))
	defer s.Close()
	openai := v1alpha1.ProviderOpenAI
	for name, tc := range map[string]struct {
		kind           v1alpha1.ProviderType
		base, key      string
		model          string
		found, problem string
	}{
		"fine":             {openai, s.URL + "/v1", "right", "small", "the endpoint accepts the API key and lists 2 models", ""},
		"anthropic":        {v1alpha1.ProviderAnthropic, s.URL, "right", "large", "the endpoint accepts the API key and lists 2 models", ""},
		"unknown model":    {openai, s.URL + "/v1", "right", "huge", `the endpoint accepts the API key and lists 2 models; spec.defaultModel "huge" is not among them`, ""},
		"wrong key":        {openai, s.URL + "/v1", "wrong", "", "", "spec.secretRef: the endpoint refuses the API key (status 401)"},
		"no version":       {openai, s.URL, "right", "", "", "spec.baseURL: " + s.URL + "/models was answered with status 404; most servers of this type expect a base URL that ends in /v1"},
		"other path":       {openai, s.URL + "/x/v1", "right", "", "", "spec.baseURL: " + s.URL + "/x/v1/models was answered with status 404"},
		"no list":          {openai, s.URL + "/page/v1", "right", "", "", "spec.baseURL: " + s.URL + "/page/v1/models was answered with something else than a list of models"},
		"redirect":         {openai, s.URL + "/away/v1", "right", "", "", "spec.baseURL: " + s.URL + "/away/v1/models was answered with status 302"},
		"asks to wait":     {openai, s.URL + "/busy/v1", "right", "", "the endpoint was reached, and asks to wait (status 429)", ""},
		"metadata service": {openai, "http://169.254.169.254/v1", "right", "", "", "spec.baseURL: 169.254.169.254 cannot be reached: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := newProbes(time.Now).request(t.Context(), &v1alpha1.ProviderSpec{Type: tc.kind, BaseURL: tc.base, DefaultModel: tc.model}, tc.key)
			if got.found != tc.found || !strings.HasPrefix(got.problem, tc.problem) || (got.problem == "") != (tc.problem == "") {
				t.Errorf("found %q, problem %q", got.found, got.problem)
			}
		})
	}
}

// TestProbesAreRare: a Provider that is looked at again and again is asked once, until its spec or its Secret change or time
// passes.
func TestProbesAreRare(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"data":[]}`))
	}))
	defer s.Close()
	now := time.Unix(1000, 0)
	probes := newProbes(func() time.Time { return now })
	p := &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, BaseURL: s.URL + "/v1"}}
	for i, change := range []func(){
		func() {}, func() { p.Generation++ }, func() { now = now.Add(recheckReady) },
	} {
		change()
		for range 3 {
			probes.ask(t.Context(), p, "k", "1")
		}
		if asked != i+1 {
			t.Errorf("after change %d the endpoint was asked %d times", i, asked)
		}
	}
	if probes.ask(t.Context(), p, "k", "2"); asked != 4 {
		t.Errorf("a new key is not tried")
	}
}
