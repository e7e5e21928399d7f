// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package visible_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/visible"
)

// texts are texts of others, and what a person sees of them.
var texts = map[string]string{
	"":                               "",
	"plain ä 漢 ✓ 🙂\n\ttext\r\n":      "plain ä 漢 ✓ 🙂\n\ttext\r\n",
	"\x1b[2J\x1b]52;c;cm0=\x07":      `\u001b[2J\u001b]52;c;cm0=\u0007`,
	"\u009b31m \u0085 \x7f \x00":     `\u009b31m \u0085 \u007f \u0000`,
	"10 %\r20 %\r":                   `10 %\u000d20 %\u000d`,
	"safe\u202etxt.exe \u2066x":      `safe\u202etxt.exe \u2066x`,
	"rm\u200b -rf\u2060 \ufeff":      `rm\u200b -rf\u2060 \ufeff`,
	"tag \U000e0061\U000e007f":       `tag \udb40\udc61\udb40\udc7f`,
	"a\u200db я\u200dю 👩\u200d":      `a\u200db я\u200dю 👩\u200d`,
	"می\u200cخواهم 👩\u200d🔬 ❤\ufe0f": "می\u200cخواهم 👩\u200d🔬 ❤\ufe0f",
	"می\u200c\u200cخ":                `می\u200c\u200cخ`,
	"\u3164\u115f\u2800\u00ad\u2028": `\u3164\u115f\u2800\u00ad\u2028`,
	"\x9b31m \xff \xe2\x80":          `\x9b31m \xff \xe2\x80`,
}

func TestText(t *testing.T) {
	for in, want := range texts {
		if got := visible.Text(in); got != want {
			t.Errorf("%+q becomes %q, want %q", in, got, want)
		}
	}
	if got := visible.Line("a\r\nb\tc\nd\re\x1b"); got != `a b c d\u000de\u001b` {
		t.Errorf("a line: %q", got)
	}
}

// TestWriterCuts writes each text a byte at a time.
func TestWriterCuts(t *testing.T) {
	for in, want := range texts {
		var b strings.Builder
		w := visible.NewWriter(&b)
		for i := range len(in) {
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Flush(); err != nil || b.String() != want {
			t.Errorf("%+q becomes %q, want %q (%v)", in, b.String(), want, err)
		}
	}
}

// TestPaint: the program's colours pass, those of others do not, even if they were copied from a screen.
func TestPaint(t *testing.T) {
	var b strings.Builder
	w := visible.NewWriter(&b)
	for _, c := range w.Paint("31", "red \x1b[32m") + "\x1b[1m \x1b1m" {
		_, _ = w.Write([]byte(string(c)))
	}
	_ = w.Flush()
	if want := "\x1b[31mred \\u001b[32m\x1b[0m\\u001b[1m \\u001b1m"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestJSON: what is written of a document in JSON has the same value.
func TestJSON(t *testing.T) {
	for in := range texts {
		if !utf8.ValidString(in) {
			continue
		}
		encoded, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		shown := visible.Text(string(encoded))
		var back string
		if err := json.Unmarshal([]byte(shown), &back); err != nil || back != in {
			t.Errorf("%+q becomes %q, which is %+q (%v)", in, shown, back, err)
		}
	}
}

// TestData: a value in a format without escapes stays what it is, but for control characters.
func TestData(t *testing.T) {
	var b strings.Builder
	w := visible.NewWriter(&b)
	w.Data()
	_, _ = w.Write([]byte("a\u200b\U000e0061\x1b\u009b\n"))
	if want := "a\u200b\U000e0061" + `\u001b\u009b` + "\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä\n\t🙂\u200b":              "plain ä\n\t🙂\u200b",
		"\x1b[31mred\x1b[0m \u009b1;2mx":  "red x",
		"\x1b[2J\x1b]52;c;cm0=\x07\u009b": "[2J]52;c;cm0=",
		"one\r\ntwo\rthree\x00\x7f\xff":   "one\ntwo\nthree\xff",
	} {
		if got := visible.Plain(in); got != want {
			t.Errorf("%+q becomes %q, want %q", in, got, want)
		}
	}
}

// TestYAML: kubectl makes YAML of what the server answers.
func TestYAML(t *testing.T) {
	in := map[string]any{"a": "\u009b31m \u0085 \x7f \ufeff \x1b \u200b \U000e0061 ä", "n": 1.5}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := yaml.JSONToYAML(raw); err == nil {
		t.Error("YAML takes control characters: nothing is to be escaped")
	}
	y, err := yaml.JSONToYAML(visible.JSON(raw))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := yaml.Unmarshal(y, &out); err != nil || out["a"] != in["a"] {
		t.Errorf("%q becomes %q (%v)", in["a"], out["a"], err)
	}
}

func TestExact(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 ✓ 🙂":          "plain ä 漢 ✓ 🙂",
		"\x1b[2J":                `\u001b[2J`,
		"a\nb\tc":                `a\u000ab\u0009c`,
		"safe\u202etxt.exe":      `safe\u202etxt.exe`,
		"rm\u200b -rf\u00a0/":    `rm\u200b -rf\u00a0/`,
		"\u2066x\u2069":          `\u2066x\u2069`,
		"\u3164\u115f\u2800":     `\u3164\u115f\u2800`,
		"tag \U000e0061":         `tag \U000e0061`,
		"line\u2028end\u009b":    `line\u2028end\u009b`,
		"selector a\ufe0f\u034f": `selector a\ufe0f\u034f`,
	} {
		if got := visible.Exact(in); got != want {
			t.Errorf("%+q becomes %q, want %q", in, got, want)
		}
	}
}
