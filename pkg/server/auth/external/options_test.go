// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// TestExchange: a server does not start with settings of the exchange of transaction tokens that are incomplete or not built,
// however it is given them.
func TestExchange(t *testing.T) {
	check := func(args ...string) error {
		var o external.Options
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return o.Check()
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	profile := []string{"--context-token-profile=transaction-token", "--context-token-issuer=https://issuer.example", "--context-token-audience=a"}
	with := func(more ...string) []string { return slices.Concat(profile, more) }
	exchange := with("--context-token-tts-endpoint=https://tts.example/token", "--context-token-child-scope=a b")
	if err := check(exchange...); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--context-token-profile=transaction-token is needed", exchange[3:]},
		{"--context-token-child-scope is needed", exchange[:4]},
		{"--context-token-tts-endpoint is needed", with("--context-token-child-scope=a")},
		{"must be an https address", with("--context-token-tts-endpoint=http://tts.example", "--context-token-child-scope=a")},
		{"serviceAccount is not built", append(slices.Clip(exchange), "--context-token-tts-token-source=serviceAccount")},
		{"must be incoming or none", append(slices.Clip(exchange), "--context-token-tts-token-source=x")},
		{"must be between 0 and", append(slices.Clip(exchange), "--context-token-tts-timeout=2m")},
		{"must be at least 1s", append(slices.Clip(exchange), "--context-token-child-token-ttl=1ms")},
	} {
		if err := check(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
	for name, want := range map[string]string{
		"PLATFORM_CONTEXT_TOKEN_OUTBOUND_SCOPE": "not built yet", "PLATFORM_CONTEXT_TOKEN_TOOL_TOKEN_TTL": "not built yet",
		"PLATFORM_CONTEXT_TOKEN_TTS_TIMEOUT": "must be a duration", "PLATFORM_CONTEXT_TOKEN_TTS_ENDPOINT": "child-scope is needed",
	} {
		t.Setenv(name, "x")
		if err := check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		t.Setenv(name, "")
	}
}
