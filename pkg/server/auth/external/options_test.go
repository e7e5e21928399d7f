// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// TestExchangeIsRefused: a server that is to exchange transaction tokens for children and tools does not start, however it is told
// so, instead of running children without tokens of their own.
func TestExchangeIsRefused(t *testing.T) {
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
	if err := check("--context-token-tts-endpoint=https://tts.example"); err == nil || !strings.Contains(err.Error(), "--context-token-tts-endpoint: the exchange") {
		t.Error(err)
	}
	for _, name := range []string{"PLATFORM_CONTEXT_TOKEN_TTS_ENDPOINT", "PLATFORM_CONTEXT_TOKEN_CHILD_SCOPE", "PLATFORM_CONTEXT_TOKEN_SUBJECT_TOKEN_FILE"} {
		t.Setenv(name, "x")
		if err := check(); err == nil || !strings.Contains(err.Error(), "is not built yet") {
			t.Errorf("%s: %v", name, err)
		}
		t.Setenv(name, "")
	}
}
