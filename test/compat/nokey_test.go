// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// otherKey is a value of a Secret that has no key of a Provider.
const otherKey = "sk-of-something-else-0123456789"

// internal matches what only developers know: packages, their types, and places in files.
var internal = regexp.MustCompile(`k8s\.io|github\.com|pkg/|\.go\b|\b[a-z]+\.[A-Z]\w+|\b(plan|models|compat|apierrors|v1alpha1)\b`)

// asks are requests for the Providers "openai" and "claude", by path, with STREAM for whether the answer is streamed.
func asks() map[string][]string {
	const messages = `"messages":[{"role":"user","content":"h"}],"stream":STREAM}`
	all := map[string][]string{
		"/openai/v1/responses":                {`{"model":"openai/m","store":false,"input":"h","stream":STREAM}`},
		"/anthropic/v1/messages/count_tokens": {`{"model":"claude/m","messages":[{"role":"user","content":"h"}]}`},
	}
	for _, provider := range []string{"openai", "claude"} {
		all["/openai/v1/chat/completions"] = append(all["/openai/v1/chat/completions"], `{"model":"`+provider+`/m",`+messages)
		all["/anthropic/v1/messages"] = append(all["/anthropic/v1/messages"], `{"model":"`+provider+`/m","max_tokens":9,`+messages)
	}
	return all
}

// TestProviderWithoutKey: a request to a Provider whose key is missing is the client's error (400), in the envelope of the API,
// before a stream begins. It names the Secret and shows no value of one, and the vendor gets no request.
func TestProviderWithoutKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	v := newVendor(t, says(http.StatusOK, jsonKind, chatAnswer))
	s.provider("team", "openai", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "m")
	token := s.Token(t, "team", "client", "chat")
	secrets := s.Kubernetes(t).CoreV1().Secrets("team")
	if got := s.post("/openai/v1/chat/completions", `{"model":"openai/m","messages":[{"role":"user","content":"h"}]}`, "Authorization", "Bearer "+token); got.Code != http.StatusOK {
		t.Fatalf("with the key: %d %s", got.Code, got.Body)
	}
	for _, c := range []struct {
		name   string
		data   map[string]string // of the Secret; nil if there is none
		reason string
	}{
		{"another field", map[string]string{"other": otherKey}, `Secret "key" of namespace "team" has no key "api-key"`},
		{"an empty key", map[string]string{"api-key": "", "other": otherKey}, `Secret "key" of namespace "team" has no key "api-key"`},
		{"no Secret", nil, `Secret "key" does not exist in namespace "team"`},
	} {
		if err := secrets.Delete(t.Context(), "key", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if c.data != nil {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: c.data}
			if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for path, bodies := range asks() {
			for _, body := range bodies {
				s.refusedWithoutKey(c.name, path, body, token, c.reason)
			}
		}
	}
	if _, n := v.last(); n != 1 {
		t.Errorf("the vendor got %d requests, and the first one had the key", n)
	}
}

// refusedWithoutKey makes a request, streamed and not, with the server's tools and without, and checks the error.
func (s *server) refusedWithoutKey(name, path, body, token, reason string) {
	s.t.Helper()
	for _, stream := range []string{"false", "true"} {
		for _, tools := range []string{"disabled", ""} {
			got := s.post(path, strings.Replace(body, "STREAM", stream, 1), "Authorization", "Bearer "+token, "X-Platform-Tools", tools)
			what := fmt.Sprintf("%s: %s %s, stream %s, tools %q", name, path, body, stream, tools)
			if kind := got.Header.Get("Content-Type"); got.Code != http.StatusBadRequest || kind != jsonKind {
				s.t.Errorf("%s: %d %s %s", what, got.Code, kind, got.Body)
				continue
			}
			var answer struct{ Error struct{ Message string } }
			if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || !strings.Contains(answer.Error.Message, reason) {
				s.t.Errorf("%s: %s, want %s", what, got.Body, reason)
			}
			if d := cmp.Diff(envelope(path, answer.Error.Message), decoded(s.t, got.Body)); d != "" {
				s.t.Errorf("%s: envelope (-want +got):\n%s", what, d)
			}
			if found := internal.FindString(got.Body); found != "" || strings.Contains(got.Body, otherKey) || strings.Contains(got.Body, vendorKey) {
				s.t.Errorf("%s: it shows %q: %s", what, found, got.Body)
			}
		}
	}
}

// envelope is the error of an API that says that the model of the request cannot be used.
func envelope(path, message string) map[string]any {
	if strings.HasPrefix(path, "/anthropic") {
		return map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": message}}
	}
	return map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message, "param": "model", "code": nil}}
}

func decoded(t testing.TB, body string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}
