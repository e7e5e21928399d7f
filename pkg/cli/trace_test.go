// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// TestTraceIsReadable draws the traces in testdata and compares them with the expected output next to them.
func TestTraceIsReadable(t *testing.T) {
	for _, name := range []string{"succeeded", "running", "empty", "forked"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile("testdata/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			trace := &v1alpha1.TaskTrace{}
			if err := yaml.UnmarshalStrict(b, trace); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			(&tracePrinter{terminal: &terminal{Streams: Streams{Width: 110}}, out: &out}).print(trace)
			golden := "testdata/" + name + ".txt"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTerminalIsNotSteered checks that an agent's text cannot move the cursor, colour a line or imitate another line.
func TestTerminalIsNotSteered(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m":       `\u001b[31mred\u001b[0m`,
		"one\r\ntwo\tthree":        "one two three",
		"evil\u202egnp.exe\u2028x": `evil\u202egnp.exe\u2028x`,
		"\u009b2J":                 `\u009b2J`,
		"plain ä ✓":                "plain ä ✓",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
