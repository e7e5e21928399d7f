// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// TestCharsets: an answer and an error are read in the charset that they are in, and a credential in them is removed all the same.
func TestCharsets(t *testing.T) {
	kind, body, status := "", "", http.StatusOK
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	wide := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			b.WriteByte(c)
			b.WriteByte(0)
		}
		return b.String()
	}
	c := newTool(t, v1alpha1.ToolHTTP{URL: e.URL, AuthSecretRef: secret()}, "")
	for _, tc := range []struct{ kind, body, want string }{
		{"application/json", "\ufeff" + `{"a":9876543219876543219}`, `"body":{"a":9876543219876543219}`},
		{"application/json", "\xff\xfe" + wide(`{"a":"`+credential+`"}`), `"body":{"a":"[REDACTED]"}`},
		{"application/json; charset=iso-8859-1", `{"a":"caf` + "\xe9" + `"}`, `"body":{"a":"café"}`},
		{"text/plain; charset=utf-16le", wide(credential + " x"), `"body":"[REDACTED] x"`},
		{"text/plain", "caf\xe9", `"body":"caf` + "\uFFFD" + `"`},
	} {
		kind, body, status = tc.kind, tc.body, http.StatusOK
		if r := c.Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, tc.want) {
			t.Errorf("%s: %q, want %q", kind, r.Text, tc.want)
		}
		status = http.StatusBadRequest
		if r := c.Call(t.Context(), "weather", "{}"); strings.Contains(r.Text, `\u0000`) || strings.Contains(r.Text, "\ufeff") || strings.Contains(r.Text, credential) {
			t.Errorf("%s, refused: %s", kind, r.Text)
		}
	}
	kind, body = "text/plain; charset=iso-8859-1", strings.Repeat("\xe9", maxErrorBody)
	r := c.Call(t.Context(), "weather", "{}")
	if !strings.Contains(r.Text, "é…") || !utf8.ValidString(r.Text) || strings.Contains(r.Text, "\uFFFD") {
		t.Errorf("cut: %.100s", r.Text)
	}
}

// TestBrokenOff: JSON that ends within a value has not arrived, also where the end of the connection is the only end of the answer.
func TestBrokenOff(t *testing.T) {
	kind, body := "", ""
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(out, "HTTP/1.0 200 OK\r\nContent-Type: "+kind+"\r\n\r\n"+body)
		_ = out.Flush()
		_ = conn.Close()
	})
	for _, tc := range []struct {
		kind, body string
		method     v1alpha1.ToolMethod
		want       tool.ErrorType
	}{
		{"application/json", `{"a":[1,`, v1alpha1.ToolPost, tool.TypeOutcomeUnknown},
		{"application/problem+json", `{"a":"x`, v1alpha1.ToolPut, tool.TypeOutcomeUnknown},
		{"application/json", `{"a":`, v1alpha1.ToolGet, tool.TypeUnavailable},
		{"application/json", `{"a":1}`, v1alpha1.ToolPost, ""},
		{"application/json", `<html>`, v1alpha1.ToolPost, ""},
		{"application/json", ``, v1alpha1.ToolPost, ""},
		{"text/plain", `{"a":`, v1alpha1.ToolPost, ""},
	} {
		kind, body = tc.kind, tc.body
		r := newTool(t, v1alpha1.ToolHTTP{URL: e.URL, Method: tc.method}, "").Call(t.Context(), "weather", "{}")
		if r.ErrorType != tc.want {
			t.Errorf("%s %s: %s", tc.method, tc.body, r.Text)
		}
	}
}
