// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/test/kit"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]time.Duration{
		"":                              0,
		"12":                            12 * time.Second,
		"0.25":                          250 * time.Millisecond,
		"-3":                            0,
		"NaN":                           0,
		"1e300":                         24 * time.Hour,
		"soon":                          0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:00:05 GMT": 0,
	}
	for value, want := range tests {
		if got := wire.RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	if got := wire.RetryAfter(http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}, now); got != 1500*time.Millisecond {
		t.Errorf("got %v", got)
	}
}

// TestClientRefuses: a model is not asked at the address of a metadata service, nor where its key may not be sent.
func TestClientRefuses(t *testing.T) {
	hosts := egress.Hosts{Rule: "api.example.com", Set: true}
	for address, rule := range map[string]egress.Hosts{
		"http://169.254.169.254/v1/chat/completions": {}, "http://[fd00:ec2::254]/": {}, "http://127.0.0.1:1/": hosts, "https://api.example.com.evil.test/": hosts,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := wire.Client(kit.Patience, nil, rule).Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		if !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
