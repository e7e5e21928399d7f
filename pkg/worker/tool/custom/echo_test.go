// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
)

// TestEchoedCredential: an endpoint that repeats the credential does not show it to the model, however it writes it.
func TestEchoedCredential(t *testing.T) {
	const odd = `k/0"1&2<3\4é`
	answer, status := "", http.StatusOK
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})
	spec := v1alpha1.ToolSpec{Description: "a tool", HTTP: &v1alpha1.ToolHTTP{URL: e.URL, AuthSecretRef: secret(), AuthInject: v1alpha1.AuthInjectBody, AuthBodyKey: "key"}}
	tl, err := New("weather", spec, Options{Credential: odd, Guard: egress.Guard{}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tool.NewCatalogue(tl)
	if err != nil {
		t.Fatal(err)
	}
	for _, written := range []string{
		`{"you":"k\/0\"1\u00262\u003c3\\4\u00e9","n":12345678901234567}`, `{"you":"k/0\"1&2<3\\4é"}`, `{"body":"{\"key\":\"k\\/0\\\"1\\u00262<3\\\\4é\"}"}`, `{"k\/0\"1&2<3\\4é":1}`,
		`key=k%2F0%221%262%3C3%5C4%C3%A9`, "text: " + odd, "ay8wIjEmMjwzXDTDqQ==",
	} {
		for _, status = range []int{http.StatusOK, http.StatusBadRequest} {
			answer = written
			if r := c.Call(t.Context(), "weather", "{}"); !strings.Contains(r.Text, "[REDACTED]") || strings.Contains(r.Text, "0026") || strings.Contains(r.Text, "4é") || strings.Contains(r.Text, "4%C3") {
				t.Errorf("%d %s: %s", status, written, r.Text)
			}
		}
	}
}

// TestFixedQuery: what the address of a Tool sets is not replaced by an argument, and stays as it is written.
func TestFixedQuery(t *testing.T) {
	e := newEndpoint(t, ok("{}"))
	for address, want := range map[string]string{
		"/w?tenant=a&z=1&b=%2f+x": "GET /w?tenant=a&z=1&b=%2f+x&city=Bonn",
		"/w?tenant":               "GET /w?tenant&city=Bonn",
		"/w?ten%61nt=a":           "GET /w?ten%61nt=a&city=Bonn",
		"/w?tenant=%zz":           "GET /w?tenant=%zz&city=Bonn",
		"/w?a=1;tenant=a":         "GET /w?a=1;tenant=a&city=Bonn",
		"/w":                      "GET /w?city=Bonn&tenant=b&tenant=c",
	} {
		newTool(t, v1alpha1.ToolHTTP{URL: e.URL + address, Method: v1alpha1.ToolGet}, "").Call(t.Context(), "weather", `{"tenant":["b","c"],"city":"Bonn"}`)
		all := e.requests()
		if got, _, _ := strings.Cut(all[len(all)-1], " auth="); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}
