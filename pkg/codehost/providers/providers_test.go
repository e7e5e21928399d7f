// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/providers"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

func remote(url, token string) codehost.Remote {
	return codehost.Remote{URL: url, Token: token, Transport: http.DefaultTransport}
}

// kind is the provider's driver.
func kind(h codehost.Host) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", h), "*"), ".Host")
}

// TestFind: hosts are recognised by what they answer, and asked with the credential only if they want one.
func TestFind(t *testing.T) {
	enterprise := githubapi.New(t)
	if h, err := providers.Open(t.Context(), remote(enterprise.Location(), "token"), ""); err != nil || kind(h) != codehost.GitHub {
		t.Errorf("GitHub Enterprise: %v %v", kind(h), err)
	}
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/below/api/v1/version" && r.Header.Get("Authorization") == "token right" {
			fmt.Fprintf(w, `{"version":"1.26.0"}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer private.Close()
	if h, err := providers.Open(t.Context(), remote(private.URL+"/below/ada/shop.git", "right"), ""); err != nil || kind(h) != codehost.Gitea {
		t.Errorf("a private Gitea: %v %v", kind(h), err)
	}
	if _, err := providers.Open(t.Context(), remote(private.URL+"/below/ada/shop.git", "wrong"), ""); !errors.Is(err, codehost.ErrCredential) {
		t.Errorf("a private Gitea with a wrong token: %v", err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"another host": http.NotFound,
		"a web site":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "<html>welcome") },
		"another API":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"status":"ok"}`) },
	} {
		server := httptest.NewServer(answer)
		defer server.Close()
		if _, err := providers.Open(t.Context(), remote(server.URL+"/ada/shop", "token"), ""); !errors.Is(err, providers.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	if _, err := providers.Open(t.Context(), remote(broken.URL+"/ada/shop", "token"), ""); !errors.Is(err, codehost.ErrUnavailable) {
		t.Errorf("a broken host: %v", err)
	}
}

// TestNamed: nothing is sent where the address or the caller says whose it is.
func TestNamed(t *testing.T) {
	for _, c := range []struct{ url, provider, want string }{
		{"https://github.com/ada/shop.git", "", codehost.GitHub},
		{"https://shop.ghe.com/ada/shop", "", codehost.GitHub},
		{"https://git.example.com/ada/shop", codehost.GitHub, codehost.GitHub},
		{"https://git.example.com/ada/shop", codehost.Gitea, codehost.Gitea},
	} {
		r := codehost.Remote{URL: c.url, Token: "token", Transport: silent{t}}
		if h, err := providers.Open(t.Context(), r, c.provider); err != nil || kind(h) != c.want {
			t.Errorf("%s %s: %v %v", c.url, c.provider, kind(h), err)
		}
	}
	if _, err := providers.Open(t.Context(), codehost.Remote{URL: "https://git.example.com/ada/shop", Transport: silent{t}}, "gitlab"); !errors.Is(err, providers.ErrUnknown) {
		t.Errorf("an unknown provider: %v", err)
	}
}

// TestReal: a real Gitea is recognised.
func TestReal(t *testing.T) {
	f := forge.Start(t)
	h := kit.Must[codehost.Host](t)(providers.Open(t.Context(), remote(f.URL+"/ada/shop", "token"), ""))
	if kind(h) != codehost.Gitea {
		t.Errorf("%T", h)
	}
}

type silent struct{ t *testing.T }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.t.Errorf("%s %s was sent", r.Method, r.URL)
	return nil, errors.New("nothing is sent")
}
