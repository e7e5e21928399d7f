// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
)

// TestHostsOfTheCredential: a credential is sent only to the hosts that its Secret names: not to the server of the Tool if that is
// another one, and, when that starts to redirect during the run, to nobody else.
func TestHostsOfTheCredential(t *testing.T) {
	h := handler(docs(citySchema), false)
	elsewhere, seenElsewhere := listen(t, h)
	var away string
	url, seen := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case away != "":
			http.Redirect(w, r, away, http.StatusTemporaryRedirect)
		case r.URL.Path != "/mcp/":
			http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	s := spec(url, citySchema)
	s.HTTP = &v1alpha1.ToolHTTP{AuthSecretRef: &v1alpha1.KeyReference{Name: "s", Key: "k"}}
	options := Options{Credential: credential, Guard: egress.Guard{Allow: append(allowed(url).Allow, allowed(elsewhere).Allow...)}}

	options.Hosts = egress.Hosts{Rule: "api.example", Set: true}
	_, err := Open(t.Context(), "weather", s, options)
	if reason(err) != v1alpha1.ReasonToolInvalid || !strings.Contains(err.Error(), "spec.http.authSecretRef") || strings.Contains(err.Error(), credential) {
		t.Errorf("another host: %v", err)
	}
	if n := len(seen()); n != 0 {
		t.Fatalf("another host: %d requests were sent", n)
	}

	options.Hosts = egress.Hosts{Rule: url, Set: true}
	tl, err := Open(t.Context(), "weather", s, options)
	if err != nil {
		t.Fatalf("the host of the rule: %v", err)
	}
	for _, r := range seen() {
		if r.authorization != "Bearer "+credential {
			t.Errorf("the host of the rule: %+v", r)
		}
	}
	away = elsewhere
	if _, err := tl.Call(t.Context(), []byte(`{"city":"Bonn"}`)); err == nil || !strings.Contains(err.Error(), "redirects to another host") || strings.Contains(err.Error(), credential) {
		t.Errorf("redirected: %v", err)
	}
	if all := seenElsewhere(); len(all) != 0 {
		t.Errorf("redirected: the other host was sent %+v", all)
	}
}
