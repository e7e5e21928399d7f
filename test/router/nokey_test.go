// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// keyElsewhere is the key of a Provider in another namespace of the same installation.
const keyElsewhere = "sk-key-of-another-team"

// internal matches what only developers know: packages, their types, and places in files.
var internal = regexp.MustCompile(`k8s\.io|github\.com|pkg/|\.go\b|\b[a-z]+\.[A-Z]\w+`)

// TestProviderWithoutKey: a Provider or its key that is missing in the namespace of the caller is the client's error (400), which
// the router passes on as the installation wrote it. The Provider and the key of another namespace are not used.
func TestProviderWithoutKey(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Hello."}}]}`)
	}))
	t.Cleanup(vendor.Close)
	in := standalone.Start(t)
	h := &issuer{Host: in.Host}
	whole, keyless, empty := h.talker(t, "whole"), h.talker(t, "keyless"), h.talker(t, "empty")
	h.provider(t, "whole", vendor.URL)
	h.key(t, "whole", keyElsewhere)
	h.provider(t, "keyless", vendor.URL)
	s := start(t, h, map[string]string{"whole": in.RESTURL, "keyless": in.RESTURL, "empty": in.RESTURL})
	s.secrets = append(s.secrets, keyElsewhere)

	const ask = `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"h"}],"stream":%v}`
	if got := s.call(t, "POST", "/openai/v1/chat/completions", fmt.Sprintf(ask, false), "Authorization", "Bearer "+whole, "X-Platform-Tools", "disabled"); got.code != http.StatusOK {
		t.Fatalf("a Provider with a key: %d %s", got.code, got.body)
	}
	for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages"} {
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(ask, stream)
			s.refusedAlike(t, in.RESTURL, path, body, keyless, `model: Secret "key" does not exist in namespace "keyless"`)
			s.refusedAlike(t, in.RESTURL, path, body, empty, `model: Provider "default" does not exist in namespace "empty"`)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the vendor got %d requests, and the first one had a key", n)
	}
}

// refusedAlike makes a request through the router and to the installation itself, with the server's tools and without. Both refuse
// it with the same error, in the envelope of the API.
func (s *shared) refusedAlike(t *testing.T, installation, path, body, token, reason string) {
	t.Helper()
	start := `{"error":{"message":`
	if strings.HasPrefix(path, "/anthropic") {
		start = `{"type":"error","error":{"type":"invalid_request_error"`
	}
	for _, tools := range []string{"disabled", "enabled"} {
		header := []string{"Authorization", "Bearer " + token, "X-Platform-Tools", tools}
		got, want := s.call(t, "POST", path, body, header...), (&shared{url: installation}).call(t, "POST", path, body, header...)
		what := fmt.Sprintf("%s %s, tools %s", path, body, tools)
		if got.code != http.StatusBadRequest || !strings.HasPrefix(got.body, start) || !strings.Contains(got.body, `"type":"invalid_request_error"`) ||
			got.header.Get("Content-Type") != "application/json" || !strings.Contains(strings.ReplaceAll(got.body, `\`, ""), reason) {
			t.Errorf("%s: %d %s, want %s", what, got.code, got.body, reason)
		}
		if got.code != want.code || got.body != want.body || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
			t.Errorf("%s: %d %s\nwithout the router: %d %s", what, got.code, got.body, want.code, want.body)
		}
		if found := internal.FindString(got.body); found != "" || strings.Contains(got.body, keyElsewhere) {
			t.Errorf("%s: it shows %q: %s", what, found, got.body)
		}
	}
}
