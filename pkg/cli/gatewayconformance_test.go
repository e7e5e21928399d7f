// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/gateway/conformance"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// TestGatewayConformance: what is broken is named, with what to do, and fails the command; what could not be checked has a code of its own.
func TestGatewayConformance(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == protocol.PathHealth:
			_, _ = io.WriteString(w, `{"status":"ok"}`)
		case r.URL.Path == protocol.PathCapabilities:
			_, _ = io.WriteString(w, `{"protocolVersion":"platform.gateway.v1","adapterName":"forgetful","capabilities":{"outboundText":true}}`)
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	place := []string{"--account-id", "a", "--context-id", "c"}
	flags := with(place, "--token-file", file)
	check := func(args ...string) (code int, out, errs string) {
		var o, e strings.Builder
		code = Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "gateway", "conformance"}, args...), Streams{In: strings.NewReader(""), Out: &o, Err: &e})
		return code, o.String(), e.String()
	}
	code, out, errs := check(with(flags, s.URL)...)
	if code != 1 || !strings.Contains(out, "ok    H1 ") || !strings.Contains(out, "FAIL  H2 ") || !strings.Contains(out, "To do: ") || !strings.Contains(errs, "the adapter does not keep to platform.gateway.v1") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = check(with(flags, s.URL, "-o", "json")...)
	var report conformance.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || report.Conforms || report.Counts[conformance.Failed] == 0 || strings.Contains(out, "secret") {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no address":      {flags, "name the address of one adapter"},
		"not encrypted":   {with(flags, "http://adapter.example.com/"), "must begin with https://"},
		"no token":        {with(place, s.URL), "--token-file is required"},
		"empty token":     {with(place, s.URL, "--token-file", empty), "is empty"},
		"no conversation": {[]string{s.URL, "--token-file", file}, "--account-id and --context-id are required"},
		"token as a flag": {with(flags, s.URL, "--adapter-token", "x"), "unknown flag"},
	} {
		code, out, errs := check(tc.args...)
		if code != 2 || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("%s: exit code %d: %s%s; want %q", name, code, out, errs, tc.says)
		}
	}
	if code, _, errs := check(with(flags, s.URL, "--timeout", "1ns")...); code != 2 || !strings.Contains(errs, "not checked completely") {
		t.Errorf("too little time: exit code %d: %s", code, errs)
	}
}
