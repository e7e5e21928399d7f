// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	tests := map[kind][]string{
		kindPublic: {"1.1.1.1", "8.8.8.8", "2606:4700::1111", "64:ff9b::101:101", "::ffff:8.8.8.8"},
		kindPrivate: {
			"127.0.0.1", "127.9.9.9", "::1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd12::1",
			"::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::7f00:1", "2002:a00:1::", "::7f00:1",
		},
		kindForbidden: {
			"0.0.0.0", "::", "169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1",
			"::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "fd00:ec2::254", "168.63.129.16", "198.18.0.1", "2001:db8::1",
		},
	}
	for want, addresses := range tests {
		for _, s := range addresses {
			if got := classify(netip.MustParseAddr(s)); got != want {
				t.Errorf("%s: got %d, want %d", s, got, want)
			}
			if got := Public(netip.MustParseAddr(s)); got != (want == kindPublic) {
				t.Errorf("%s: public %t", s, got)
			}
		}
	}
}

func TestParseAllow(t *testing.T) {
	got, err := ParseAllow(" LocalHost:80, [::1]:443 ,")
	if err != nil || strings.Join(got, " ") != "localhost:80 [::1]:443" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"localhost", ":80", "host:", "http://host:80"} {
		if _, err := ParseAllow(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestDial checks the guard on real connections, names and redirects included.
func TestDial(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	}))
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	get := func(g Guard, url string) error {
		tr := g.Transport()
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: tr}).Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	named := "http://localhost:" + port
	allowed := Guard{Allow: []string{"127.0.0.1:" + port}}
	tests := map[string]struct {
		guard   Guard
		url     string
		refused bool
	}{
		"loopback":                      {Guard{}, srv.URL, true},
		"name of loopback":              {Guard{}, named, true},
		"decimal form":                  {Guard{}, "http://2130706433:" + port, true},
		"mapped form":                   {Guard{}, "http://[::ffff:127.0.0.1]:" + port, true},
		"metadata":                      {Guard{Private: true}, "http://169.254.169.254/latest", true},
		"private permitted":             {Guard{Private: true}, srv.URL, false},
		"allowed":                       {allowed, srv.URL, false},
		"allowed is by name and port":   {allowed, named, true},
		"not the server itself":         {Guard{Private: true, NotSelf: true}, srv.URL, true},
		"not by name either":            {Guard{Private: true, NotSelf: true}, named, true},
		"not if it is allowed":          {Guard{Allow: allowed.Allow, NotSelf: true}, srv.URL, true},
		"redirect from allowed to else": {allowed, srv.URL + "?to=" + named, true},
		"redirect to metadata":          {Guard{Private: true}, srv.URL + "?to=http://169.254.169.254/", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := get(tt.guard, tt.url)
			switch {
			case !tt.refused && err != nil, tt.refused && err == nil:
				t.Errorf("got %v", err)
			// Some resolvers do not know the decimal form at all.
			case tt.refused && name != "decimal form" && !errors.Is(err, ErrRefused):
				t.Errorf("got %v", err)
			}
		})
	}
}
