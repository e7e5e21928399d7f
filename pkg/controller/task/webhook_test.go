// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/egress"
)

func TestWebhookPost(t *testing.T) {
	status := http.StatusNoContent
	var got map[string]any
	var header http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if r.URL.Path == "/elsewhere" {
			t.Error("redirect was followed")
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer srv.Close()
	body := webhookBody{TaskName: "t", TaskNamespace: "n", Phase: "Succeeded", Message: "done", Attempts: 2, ResultRef: webhookResult{Available: true}}

	closed := newWebhook(nil)
	if err := closed.post(t.Context(), srv.URL, body); !errors.Is(err, egress.ErrRefused) || got != nil {
		t.Errorf("loopback was called: %v", err)
	}
	open := newWebhook([]string{strings.TrimPrefix(srv.URL, "http://")})
	if err := open.post(t.Context(), srv.URL, body); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"taskName": "t", "taskNamespace": "n", "phase": "Succeeded", "message": "done", "attempts": 2.0,
		"resultRef": map[string]any{"available": true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for k, v := range map[string]string{"User-Agent": webhookAgent, "X-Platform-Task": "t", "X-Platform-Namespace": "n", "Content-Type": "application/json"} {
		if header.Get(k) != v {
			t.Errorf("%s = %q, want %q", k, header.Get(k), v)
		}
	}
	for _, status = range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusNotFound, http.StatusInternalServerError} {
		if err := open.post(t.Context(), srv.URL, body); err == nil {
			t.Errorf("%d counts as delivered", status)
		}
	}
	srv.Close()
	err := open.post(t.Context(), srv.URL+"/?token=hush", body)
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("error = %v", err)
	}
	for _, u := range []string{"", "ftp://x/", "http://", "//x", "http://[::1", "http://:80/"} {
		if err := open.post(t.Context(), u, body); !errors.Is(err, errWebhookURL) {
			t.Errorf("%q: %v", u, err)
		}
	}
}
