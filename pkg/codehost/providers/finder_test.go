// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/providers"
)

// TestFinder: a host is asked what it is once in ten minutes, and each time as long as it does not say.
func TestFinder(t *testing.T) {
	var asked atomic.Int32
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case broken.Load():
			w.WriteHeader(http.StatusBadGateway)
		case strings.HasSuffix(r.URL.Path, "/api/v1/version"):
			_, _ = w.Write([]byte(`{"version":"1.26.0"}`))
		}
	}))
	defer server.Close()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1767323045, 0))
	f := providers.NewFinder(clock)
	open := func(path string, want int32) {
		t.Helper()
		before := asked.Load()
		h, err := f.Open(t.Context(), remote(server.URL+path, ""), "")
		if broken.Load() != errors.Is(err, codehost.ErrUnavailable) || err == nil && kind(h) != codehost.Gitea {
			t.Errorf("%v %v", h, err)
		}
		if got := asked.Load() - before; got != want {
			t.Errorf("%s: asked %d times, want %d", path, got, want)
		}
	}
	broken.Store(true)
	open("/ada/shop", 2)
	broken.Store(false)
	open("/ada/shop", 1)
	open("/ada/shop", 0)
	open("/noor/other", 0)
	open("/below/ada/shop", 1)
	clock.SetTime(clock.Now().Add(10*time.Minute + time.Second))
	open("/ada/shop", 1)

	// What it remembers has an end.
	for i := range 1000 {
		open(fmt.Sprintf("/%d/ada/shop", i), 1)
	}
	open("/999/ada/shop", 0)
	open("/ada/shop", 1)

	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if h, err := f.Open(t.Context(), remote(fmt.Sprintf("%s/c%d/ada/shop", server.URL, i%4), ""), ""); err != nil || kind(h) != codehost.Gitea {
				t.Errorf("%v %v", h, err)
			}
		})
	}
	all.Wait()
	if h, err := f.Open(t.Context(), codehost.Remote{URL: "https://github.com/ada/shop", Transport: silent{t}}, ""); err != nil || kind(h) != codehost.GitHub {
		t.Errorf("%v %v", h, err)
	}
}

// TestToken: a token from a file works, and one that cannot be sent is a wrong one, wherever it is used first.
func TestToken(t *testing.T) {
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/version" && r.Header.Get("Authorization") == "token right" {
			_, _ = w.Write([]byte(`{"version":"1.26.0"}`))
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer private.Close()
	if h, err := providers.Open(t.Context(), remote(private.URL+"/ada/shop", "right\n"), ""); err != nil || kind(h) != codehost.Gitea {
		t.Errorf("%v %v", h, err)
	}
	for _, provider := range []string{"", codehost.GitHub, codehost.Gitea} {
		_, err := providers.Open(t.Context(), codehost.Remote{URL: private.URL + "/ada/shop", Token: "ri\nght", Transport: silent{t}}, provider)
		if !errors.Is(err, codehost.ErrCredential) || errors.Is(err, codehost.ErrUnavailable) || strings.Contains(err.Error(), "ght") {
			t.Errorf("%q: %v", provider, err)
		}
	}
}
