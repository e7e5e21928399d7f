// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/harness/conformance"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

// referenceRuntime serves the reference runtime with TLS, and returns its address and the flags of the command for it.
func referenceRuntime(t *testing.T, broken ...string) (address string, flags []string) {
	t.Helper()
	dir := t.TempDir()
	token, key := strings.Repeat("token-", 6), strings.Repeat("key+/", 8)
	r, err := runtime.New(runtime.Options{Instance: "i-1", Token: token, Key: []byte(key), Dir: dir, MinLease: time.Second, Broken: broken})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(r)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for _, f := range []struct {
		flag, content string
	}{{"token-file", token + "\n"}, {"operation-key-file", key + "\n"}, {"certificate-authority", string(authority)}} {
		file := filepath.Join(dir, f.flag)
		if err := os.WriteFile(file, []byte(f.content), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--"+f.flag, file)
	}
	return s.URL, flags
}

func conform(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e strings.Builder
	code = Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "runtime", "conformance"}, args...), Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// with returns a command line of its own.
func with(flags []string, more ...string) []string { return slices.Concat(flags, more) }

// TestConformance: the command says over a real connection what the kit finds, and its exit code says whether that is good.
func TestConformance(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	address, flags := referenceRuntime(t)
	code, out, errs := conform(t, append(flags, address)...)
	if code != 0 || !strings.Contains(out, "ok    F5   After a higher epoch, changes of a lower one are refused.\n") || strings.Contains(out, "FAIL") ||
		!strings.Contains(out, "referenceruntime 1, instance i-1: ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestConformanceFails: what is broken is named, with what happened and what to do, as text and as JSON.
func TestConformanceFails(t *testing.T) {
	t.Parallel()
	address, flags := referenceRuntime(t, "stale-epoch")
	flags = append(flags, address, "--skip", "L*,X*,S*,P*")
	code, out, errs := conform(t, flags...)
	const want = "FAIL  F5   After a higher epoch, changes of a lower one are refused.\n           PUT /v2/drain of the lower epoch was accepted; it must be refused with StaleEpoch\n           To do: Keep the highest epoch"
	if code != 1 || !strings.Contains(out, want) || !strings.Contains(out, "skip  X1") || !strings.Contains(out, "----  F6") || !strings.Contains(errs, "does not conform to platform.harness.v2") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = conform(t, with(flags, "-o", "json")...)
	var report conformance.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || report.Conforms || report.Counts[conformance.Failed] != 1 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

// TestConformanceCannotRun: without a runtime that knows the token nothing is said about it, and secrets are not arguments.
func TestConformanceCannotRun(t *testing.T) {
	t.Parallel()
	address, flags := referenceRuntime(t)
	short := filepath.Join(t.TempDir(), "short")
	other := filepath.Join(t.TempDir(), "other")
	for file, content := range map[string]string{short: "too short", other: strings.Repeat("another token ", 3)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no address":           {flags, "name the address of one runtime"},
		"not encrypted":        {with(flags, "http://runtime.example.com/"), "must begin with https://"},
		"with a password":      {with(flags, "https://u:p@runtime.example.com/"), "must be the address of the runtime"},
		"no token":             {with(flags[2:], address), "--token-file is required"},
		"short token":          {with(flags, address, "--token-file", short), "has 9 bytes; the protocol requires at least 32"},
		"another token":        {with(flags, address, "--token-file", other), "does not accept the controller token"},
		"another authority":    {with(flags[:4], address), "cannot be reached"},
		"nobody":               {with(flags, "http://127.0.0.1:1/"), "cannot be reached"},
		"unknown check":        {with(flags, address, "--skip", "Z9"), `no check has a number like "Z9"`},
		"unknown flag":         {with(flags, address, "--operation-key", "x"), "unknown flag"},
		"no such file":         {with(flags, address, "--token-file", "/none"), "no such file"},
		"too little time":      {with(flags, address, "--timeout", "1ns"), "--timeout (1ns)"},
		"not an authority":     {with(flags, address, "--certificate-authority", short), "has no certificate"},
		"output of other form": {with(flags, address, "-o", "xml"), "xml"},
	} {
		code, out, errs := conform(t, tc.args...)
		if code != 2 || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("%s: exit code %d: %s%s; want %q", name, code, out, errs, tc.says)
		}
	}
}
