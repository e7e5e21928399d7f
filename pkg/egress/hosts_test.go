// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestHosts(t *testing.T) {
	const rule = "api.example.com, *.wild.example,http://plain.example vault.example:8200 192.0.2.1 [2001:db8::1]:8443 http://127.0.0.1:11434"
	for address, want := range map[string]bool{
		"https://api.example.com/v1":         true,
		"https://API.Example.COM:443/":       true,
		"https://api.example.com./":          true,
		"http://api.example.com/":            false, // not encrypted
		"http://api.example.com:443/":        false,
		"https://api.example.com:8443/":      false,
		"https://example.com/":               false,
		"https://evil-api.example.com/":      false,
		"https://api.example.com.evil.com/":  false,
		"https://x.api.example.com/":         false,
		"https://api.example.com@evil.com/":  false,
		"https://evil.com/?api.example.com":  false,
		"https://a.wild.example/":            true,
		"https://a.b.wild.example/":          true,
		"https://wild.example/":              false,
		"https://notwild.example/":           false,
		"https://.wild.example.evil.com/":    false,
		"http://plain.example/":              true,
		"https://plain.example/":             false,
		"https://vault.example:8200/":        true,
		"https://vault.example/":             false,
		"https://192.0.2.1/":                 true,
		"https://[::ffff:192.0.2.1]/":        true,
		"https://192.0.2.10/":                false,
		"https://[2001:db8:0::1]:8443/":      true,
		"https://[2001:db8::1]/":             false,
		"http://127.0.0.1:11434/v1":          true,
		"http://localhost:11434/v1":          false,
		"http://2130706433:11434/v1":         false,
		"ftp://api.example.com/":             false,
		"https:///nothing":                   false,
		"https://\u0430pi.example.com/login": false, // a Cyrillic letter
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		err = Hosts{Rule: rule, Set: true}.Check(u)
		if (err == nil) != want || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
		for _, open := range []Hosts{{}, {Rule: "*", Set: true}, {Rule: "a.example, *", Set: true}} {
			if err := open.Check(u); err != nil || open.CheckProgram() != nil {
				t.Errorf("%s with %+v: %v", address, open, err)
			}
		}
		if (Hosts{Set: true}).Check(u) == nil {
			t.Errorf("%s: a rule without entries permits it", address)
		}
	}
	if err := (Hosts{Rule: rule, Set: true}).CheckProgram(); !errors.Is(err, ErrRefused) {
		t.Errorf("a program gets the value: %v", err)
	}
}

// TestWrongHosts: a rule with a wrong entry permits nothing, not even by its other entries.
func TestWrongHosts(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "a.example"}
	for _, bad := range []string{
		"https://a.example/path", "ftp://a.example", "a.example:", "a.example:x", "a.example:123456", "*a.example", "a.*.example", "**", "*.", "*.192.0.2.1",
		"u@a.example", "a..example", "-a.example", "a.example?x", "2001:db8::1", "[2001:db8::1", "[a.example]", "https://", "\u0430.example", strings.Repeat("a", 64) + ".example",
	} {
		h := Hosts{Rule: "a.example," + bad, Set: true}
		if h.Validate() == nil || h.Check(u) == nil || h.CheckProgram() == nil {
			t.Errorf("%q: accepted: %v", bad, h.Validate())
		}
	}
	if err := (Hosts{Rule: strings.Repeat("x", 9000) + "!", Set: true}).Validate(); err == nil || len(err.Error()) > 600 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// TestHostsTransport: each hop of a redirect is checked.
func TestHostsTransport(t *testing.T) {
	reached := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	get := func(rule string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: Hosts{Rule: rule, Set: true}.Transport(http.DefaultTransport)}).Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	if err := get(first.URL + "," + other.URL); err != nil || reached != 1 {
		t.Errorf("%v, reached %d times", err, reached)
	}
	refused, ok := errors.AsType[*HostError](get(first.URL))
	if !ok || reached != 1 || refused.To != other.URL || refused.Rule != first.URL {
		t.Errorf("%v, reached %d times", refused, reached)
	}
}
