// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestScreen: nothing that a server, a model or a program wrote reaches the screen as a command, in whatever way it is printed.
func TestScreen(t *testing.T) {
	const hostile = "red\x1b[31m \x1b]52;c;cm0=\x07 \u009b2J \x00 \u202e\u200b\U000e0061 10 %\r20 %"
	const shown = `red\u001b[31m \u001b]52;c;cm0=\u0007 \u009b2J \u0000 \u202e\u200b\udb40\udc61 10 %\u000d20 %`
	task := fmt.Sprintf(`{"kind":"Task","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"x","namespace":"default"},"spec":{},"status":{"phase":"Failed","message":%q}}`, "quoted")
	task = strings.Replace(task, "quoted", "red\\u001b[31m \u009b2J \\u202e\u200b", 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			_, _ = io.WriteString(w, hostile+"\x9b\r\n\ttab\n")
		case strings.HasSuffix(r.URL.Path, "/none"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, strings.ReplaceAll(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"red\u001b[31m U"}`, "U", "\u009b"))
		case strings.Contains(r.Header.Get("Accept"), "as=Table"):
			_, _ = io.WriteString(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name","type":"string"},{"name":"Message","type":"string"}],"rows":[{"cells":["x","red\u001b[31m `+"\u009b"+`2J\u0007"],"object":`+task+`}]}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, task)
		}
	}))
	t.Cleanup(s.Close)
	run := func(args ...string) string {
		var b strings.Builder
		Main(t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "-s", s.URL}, args...), Streams{In: strings.NewReader(""), Out: &b, Err: &b, Color: true, Width: 100})
		for _, r := range b.String() {
			if r < ' ' && r != '\n' && r != '\t' && r != '\r' && r != 0x1b || r >= 0x7f && r < 0xa0 {
				t.Errorf("%v printed %q", args, b.String())
			}
		}
		return b.String()
	}
	if got, want := run("task", "logs", "x"), shown+`\x9b`+"\r\n\ttab\n"; got != want {
		t.Errorf("log: %q, want %q", got, want)
	}
	for _, args := range [][]string{{"task", "list", "-o", "wide"}, {"task", "get", "x"}, {"task", "get", "none"}, {"task", "get", "x", "-o", "jsonpath={.status.message}"}, {"skill", "list"}} {
		if got := run(args...); !strings.Contains(got, `[31m \u009b`) || strings.Contains(got, "\x1b") {
			t.Errorf("%v: %q", args, got)
		}
	}
	for _, f := range []string{"json", "yaml"} {
		var got struct {
			Status struct{ Message string }
		}
		out := run("task", "get", "x", "-o", f)
		if err := yaml.Unmarshal([]byte(out), &got); err != nil || got.Status.Message != "red\x1b[31m \u009b2J \u202e\u200b" {
			t.Errorf("%s: %s (%v, %s)", f, out, err, strconv.QuoteToASCII(got.Status.Message))
		}
	}
}

// TestColours: the command's own colours reach the screen.
func TestColours(t *testing.T) {
	var b strings.Builder
	_, term := newCommand(Streams{In: strings.NewReader(""), Out: &b, Err: &b, Color: true}, "platform")
	note(term.Out, term.paint(red, "x\x1b[0m"))
	note(term.Err, term.paint(bold, "y"))
	if want := "\x1b[31mx\\u001b[0m\x1b[0m\n\x1b[1my\x1b[0m\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestNamesOfOthers: commands that other clients have are found, or say what takes their place.
func TestNamesOfOthers(t *testing.T) {
	for _, args := range [][]string{{"config", "set-server", "https://x"}, {"login", "--no-open"}} {
		var b strings.Builder
		if code := Main(t.Context(), "platform", args, Streams{In: strings.NewReader(""), Out: &b, Err: &b}); code != 1 || !strings.Contains(b.String(), "it uses the kubeconfig") {
			t.Errorf("%v: %d %s", args, code, &b)
		}
	}
	for _, args := range [][]string{{"memory", "proposal", "list", "--help"}, {"auth", "validate", "--help"}} {
		var b strings.Builder
		if code := Main(t.Context(), "platform", args, Streams{In: strings.NewReader(""), Out: &b, Err: &b}); code != 0 {
			t.Errorf("%v: %d %s", args, code, &b)
		}
	}
}
