// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWebhookAddressRules(t *testing.T) {
	w := newWebhook([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	for address, ok := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1111]:443": true, "10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true,
		"127.0.0.1:80": false, "[::1]:80": false, "10.2.0.1:80": false, "172.16.0.1:80": false, "192.168.1.1:80": false,
		"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "[fd00:ec2::254]:80": false, "100.100.100.200:80": false,
		"0.0.0.0:80": false, "[::]:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false, "[::ffff:127.0.0.1]:80": false,
		"[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "168.63.129.16:80": false, "name:80": false,
	} {
		if err := w.check(address); (err == nil) != ok {
			t.Errorf("check(%s) = %v", address, err)
		}
	}
}

func TestWebhookPost(t *testing.T) {
	status := http.StatusNoContent
	var got map[string]any
	var header http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if r.URL.Path == "/elsewhere" {
			t.Error("redirect was followed")
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer srv.Close()
	body := webhookBody{TaskName: "t", TaskNamespace: "n", Phase: "Succeeded", Message: "done", Attempts: 2, ResultRef: webhookResult{Available: true}}

	closed := newWebhook(nil)
	if err := closed.post(t.Context(), srv.URL, body); !errors.Is(err, errWebhookAddress) || got != nil {
		t.Errorf("loopback was called: %v", err)
	}
	open := newWebhook([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if err := open.post(t.Context(), srv.URL, body); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"taskName": "t", "taskNamespace": "n", "phase": "Succeeded", "message": "done", "attempts": 2.0,
		"resultRef": map[string]any{"available": true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for k, v := range map[string]string{"User-Agent": webhookAgent, "X-Platform-Task": "t", "X-Platform-Namespace": "n", "Content-Type": "application/json"} {
		if header.Get(k) != v {
			t.Errorf("%s = %q, want %q", k, header.Get(k), v)
		}
	}
	for _, status = range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusNotFound, http.StatusInternalServerError} {
		if err := open.post(t.Context(), srv.URL, body); err == nil {
			t.Errorf("%d counts as delivered", status)
		}
	}
	srv.Close()
	err := open.post(t.Context(), srv.URL+"/?token=hush", body)
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("error = %v", err)
	}
	for _, u := range []string{"", "ftp://x/", "http://", "//x", "http://metadata.google.internal/", "http://[::1"} {
		if err := open.post(t.Context(), u, body); !errors.Is(err, errWebhookAddress) {
			t.Errorf("%q: %v", u, err)
		}
	}
}
