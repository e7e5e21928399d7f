// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
)

// TestRedirects follows a redirect of each kind, to the same host and to another one, which the operator allows.
func TestRedirects(t *testing.T) {
	other := newEndpoint(t, ok(`"there"`))
	var location string
	var code int
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			w.Header().Set("Location", location)
			w.WriteHeader(code)
			return
		}
		_, _ = w.Write([]byte(`"here"`))
	})
	header := v1alpha1.ToolHTTP{URL: e.URL + "/start", AuthSecretRef: secret(), Headers: map[string]string{"X-Team": "blue"}}
	inBody := v1alpha1.ToolHTTP{URL: e.URL + "/start", AuthSecretRef: secret(), AuthInject: v1alpha1.AuthInjectBody, AuthBodyKey: "k"}
	bearer := "Bearer " + credential
	tests := map[string]struct {
		http     v1alpha1.ToolHTTP
		code     int
		location string
		at       *endpoint
		want     string
	}{
		"303 at home":           {header, 303, "/end", e, fmt.Sprintf(`GET /end auth=%q x="blue" body=`, bearer)},
		"307 at home":           {header, 307, "/end", e, fmt.Sprintf(`POST /end auth=%q x="blue" body={"a":1}`, bearer)},
		"308 away, no token":    {header, 308, other.URL + "/x", other, `POST /x auth="" x="" body={"a":1}`},
		"302 away, body gone":   {inBody, 302, other.URL + "/y", other, `GET /y auth="" x="" body=`},
		"307 away with token":   {inBody, 307, other.URL + "/z", nil, ""},
		"to a file":             {header, 302, "file:///etc/passwd", nil, ""},
		"to the metadata":       {header, 302, "http://169.254.169.254/", nil, ""},
		"with a user":           {header, 302, "http://u:p@127.0.0.1/", nil, ""},
		"for ever":              {header, 302, "/start", nil, ""},
		"307 at home with body": {inBody, 307, "/end", e, `POST /end auth="" x="" body={"a":1,"k":"` + credential + `"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			location, code = tt.location, tt.code
			before := len(other.requests())
			r := newTool(t, tt.http, "", other.Listener.Addr().String()).Call(t.Context(), "weather", `{"a":1}`)
			if tt.at == nil {
				if !r.Failed() || len(other.requests()) != before || strings.Contains(r.Text, credential) {
					t.Errorf("got %s", r.Text)
				}
				return
			}
			all := tt.at.requests()
			if diff := cmp.Diff(tt.want, all[len(all)-1]); diff != "" || r.Failed() {
				t.Errorf("%s %s", diff, r.Text)
			}
		})
	}
}

// A credential is sent only to the hosts that its Secret names: not to the tool's own address if that is another one, and not to
// where that leads.
func TestHostsOfTheCredential(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write([]byte(`"here"`))
	})
	inHeader := v1alpha1.ToolHTTP{URL: e.URL + "/start", AuthSecretRef: secret()}
	inBody := v1alpha1.ToolHTTP{URL: e.URL + "/start", AuthSecretRef: secret(), AuthInject: v1alpha1.AuthInjectBody, AuthBodyKey: "k"}
	for rule, requests := range map[string]int{"api.example": 0, "http://" + e.Listener.Addr().String(): 2} {
		for name, h := range map[string]v1alpha1.ToolHTTP{"header": inHeader, "body": inBody} {
			before := len(e.requests())
			tl, err := New("weather", v1alpha1.ToolSpec{Description: "a tool", HTTP: &h}, Options{
				Credential: credential, Guard: egress.Guard{Allow: []string{e.Listener.Addr().String()}}, Hosts: egress.Hosts{Rule: rule, Set: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			c, err := tool.NewCatalogue(tl)
			if err != nil {
				t.Fatal(err)
			}
			r := c.Call(t.Context(), "weather", `{"a":1}`)
			if sent := len(e.requests()) - before; sent != requests || (requests == 0) != (r.ErrorType == tool.TypePermissionDenied) || strings.Contains(r.Text, credential) {
				t.Errorf("%s, in the %s: %d requests, %s %s", rule, name, sent, r.ErrorType, r.Text)
			}
		}
	}
}

// TestRedirectsInside: where an endpoint redirects to, the private network is closed, except what the operator allows there.
// The endpoint itself, which an operator has configured, is in that network.
func TestRedirectsInside(t *testing.T) {
	inside := newEndpoint(t, ok(`"a secret of the network"`))
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var location string
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(w, r, location, http.StatusTemporaryRedirect)
			return
		}
		_, _ = w.Write([]byte(`"here"`))
	})
	hop := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	allowed := hop.Listener.Addr().String()
	for name, to := range map[string]string{
		"loopback":                    inside.URL,
		"name of loopback":            "http://localhost:" + port,
		"mapped":                      "http://[::ffff:127.0.0.1]:" + port,
		"private":                     "http://10.0.0.1/",
		"link-local":                  "http://169.254.1.1/",
		"metadata":                    "http://169.254.169.254/latest",
		"after one that is allowed":   hop.URL + "/?to=" + inside.URL,
		"back home after leaving it":  hop.URL + "/?to=" + e.URL + "/end",
		"other port of the same host": "http://127.0.0.1:1/",
	} {
		t.Run(name, func(t *testing.T) {
			location = to
			before := len(inside.requests())
			r := newTool(t, v1alpha1.ToolHTTP{URL: e.URL + "/start"}, "", allowed).Call(t.Context(), "weather", `{}`)
			if r.ErrorType != tool.TypePermissionDenied || !strings.Contains(r.Text, "--web-fetch-allow") || len(inside.requests()) != before {
				t.Errorf("got %s", r.Text)
			}
		})
	}
	location = hop.URL + "/?to=" + inside.URL
	if r := newTool(t, v1alpha1.ToolHTTP{URL: e.URL + "/start"}, "", allowed, inside.Listener.Addr().String()).Call(t.Context(), "weather", `{}`); !strings.Contains(r.Text, "a secret") {
		t.Errorf("what the operator allows was refused: %s", r.Text)
	}
}
