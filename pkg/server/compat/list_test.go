// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// told is an answer without its body.
type told struct {
	code   int
	header http.Header
	length int64
}

// asks sends a request without a body, through a real connection.
func (l *loop) asks(t *testing.T, method, path string) (told, string) {
	t.Helper()
	s := httptest.NewServer(l)
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "of-the-client")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return told{resp.StatusCode, resp.Header, resp.ContentLength}, string(body)
}

// A model that is listed can be read by its name, which may have slashes. HEAD says what GET does, without a body.
func TestModels(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opChat, v1alpha1.ProviderOpenAI)
	for path, want := range map[string]struct {
		code int
		says string
	}{
		"/openai/v1/models":              {200, `"data":[{"id":"default/m"`},
		"/openai/v1/models/m":            {200, `"id":"m","object":"model"`},
		"/openai/v1/models/default/m":    {200, `"id":"default/m","object":"model"`},
		"/openai/v1/models/default%2Fm":  {200, `"id":"default/m","object":"model"`},
		"/anthropic/v1/models/default/m": {200, `"type":"model","display_name":"default/m"`},
		"/openai/v1/models/default/x":    {404, `"param":"model","code":"model_not_found"`},
		"/anthropic/v1/models/x":         {404, `{"type":"error","error":{"type":"not_found_error"`},
		"/openai/v1/model":               {404, `unknown path`},
	} {
		got, body := l.asks(t, http.MethodGet, path)
		if got.code != want.code || !strings.Contains(body, want.says) {
			t.Errorf("%s: %d %s", path, got.code, body)
		}
		head, none := l.asks(t, http.MethodHead, path)
		if head.code != want.code || none != "" || want.code == http.StatusOK && head.length != int64(len(body)) {
			t.Errorf("HEAD %s: %d %d %q", path, head.code, head.length, none)
		}
	}
	if got, body := l.asks(t, http.MethodPost, "/openai/v1/models/m"); got.code != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v %s", got.code, got.header, body)
	}
}

// Tokens are counted by the vendor if it can, and estimated otherwise, which the answer says.
func TestCounts(t *testing.T) {
	t.Parallel()
	const long = `{"model":"m","system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"WORDS"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"DATA"}}]}]}`
	body := strings.NewReplacer("WORDS", strings.Repeat("word ", 4000), "DATA", strings.Repeat("A", 1<<20)).Replace(long)
	for name, tc := range map[string]struct {
		kind      v1alpha1.ProviderType
		answer    http.HandlerFunc
		code      int
		estimated bool
		asked     int
	}{
		"the vendor counts":        {v1alpha1.ProviderAnthropic, says(200, `{"input_tokens":7}`), 200, false, 1},
		"another protocol":         {v1alpha1.ProviderOpenAI, says(500, ``), 200, true, 0},
		"no such path":             {v1alpha1.ProviderAnthropic, sends(404, "text/plain", "404 page not found"), 200, true, 1},
		"no such path, in JSON":    {v1alpha1.ProviderAnthropic, says(404, `{"detail":"Not Found"}`), 200, true, 1},
		"no such method":           {v1alpha1.ProviderAnthropic, says(405, `{}`), 200, true, 1},
		"not implemented":          {v1alpha1.ProviderAnthropic, says(501, `{}`), 200, true, 1},
		"no such model":            {v1alpha1.ProviderAnthropic, says(404, `{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`), 404, false, 1},
		"a refusal":                {v1alpha1.ProviderAnthropic, says(400, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), 400, false, 1},
		"an answer that is no one": {v1alpha1.ProviderAnthropic, says(200, `{"ok":true}`), 502, false, 1},
	} {
		l := newLoop(t, opCount, tc.kind)
		l.answer = tc.answer
		answer, got := l.post(t, body)
		if answer.Code != tc.code || (answer.Header().Get(headerEstimated) == "true") != tc.estimated || len(got) != tc.asked {
			t.Errorf("%s: %d %v %s, after %d requests", name, answer.Code, answer.Header(), answer.Body, len(got))
		}
		var n struct {
			InputTokens int64 `json:"input_tokens"`
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &n); err != nil || tc.estimated && (n.InputTokens < 6000 || n.InputTokens > 8000) {
			t.Errorf("%s: %v, %d tokens", name, err, n.InputTokens)
		}
		if tc.asked == 1 && tc.code == http.StatusOK {
			if e := <-l.ended; tc.estimated && !e.Refused || !e.Free {
				t.Errorf("%s: the end says %+v", name, e)
			}
		}
	}
}
