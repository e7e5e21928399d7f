// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
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
		{"not built yet", append(slices.Clip(exchange), "--context-token-outbound-scope=a")},
		{"not built yet", append(slices.Clip(exchange), "--context-token-tool-token-ttl=1m")},
	} {
		if err := check(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{"OUTBOUND_SCOPE", "x", "not built yet"},
		{"TOOL_TOKEN_TTL", "1m", "not built yet"},
		{"TOOL_TOKEN_TTL", "x", "must be a duration"},
		{"TTS_TIMEOUT", "x", "must be a duration"},
		{"TTS_ENDPOINT", "x", "child-scope is needed"},
	} {
		name := "PLATFORM_CONTEXT_TOKEN_" + c.name
		t.Setenv(name, c.value)
		if err := check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		t.Setenv(name, "")
	}
}

// TestHalfConfigured: a server does not start with settings of a kind of token that it would not accept, because whoever made
// them relies on them.
func TestHalfConfigured(t *testing.T) {
	for _, arg := range []string{
		"context-token-authz-mode=enforce", "context-token-ca-file=ca.pem", "context-token-headers=Authorization:Bearer", "context-token-audience=a",
		"context-token-issuer=https://issuer.example", "context-token-jwks-url=https://issuer.example", "context-token-tasks-create-scopes=make",
		"oidc-audience=a", "oidc-ca-file=ca.pem", "oidc-allowed-subjects=x", "oidc-client-secret-file=x",
	} {
		var o external.Options
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(fs)
		name, _, _ := strings.Cut(arg, "=")
		want := "--context-token-profile=transaction-token is needed with --" + name
		if strings.HasPrefix(name, "oidc-") {
			want = "--oidc-issuer is needed"
		}
		if err := errors.Join(fs.Parse([]string{"--" + arg}), o.Check()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	var o external.Options
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	same := []string{"--context-token-authz-mode=off", "--context-token-headers=Txn-Token", "--context-token-tasks-create-scopes=platform:tasks:create"}
	if err := errors.Join(fs.Parse(same), o.Check()); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}
