// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/connection"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// with returns an address with other parameters.
func (w *world) with(address string, change func(url.Values)) string {
	w.T.Helper()
	u := kit.Must[*url.URL](w.T)(url.Parse(address))
	q := u.Query()
	change(q)
	u.RawQuery = q.Encode()
	return u.String()
}

// Bob begins a consent, and has Ann's browser come back with it. Or he has Ann's code, and comes back with it himself.
func TestForeignCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.person("user-ann"), w.person("user-bob")
	hers, his := w.connect(ann, ""), w.connect(bob, "")
	code := w.parameter(w.provider.Consent(t, hers.AuthorizeURL), "code")
	mixed := w.with(w.provider.Consent(t, his.AuthorizeURL), func(q url.Values) { q.Set("code", code) })
	w.refused(mixed, "exchange_failed") // the proof of RFC 7636 is that of Ann's consent
	if w.provider.Refresh(code) != "" {
		t.Error("there are tokens for a code of another consent")
	}

	// Without the proof the provider takes the code. The tokens are parked, and the completion is in Ann's browser alone.
	w.apply("    pkce: false")
	hers, his = w.connect(ann, ""), w.connect(bob, "")
	code = w.parameter(w.provider.Consent(t, hers.AuthorizeURL), "code")
	mixed = w.with(w.provider.Consent(t, his.AuthorizeURL), func(q url.Values) { q.Set("code", code) })
	completion := w.parked(mixed)
	w.complete(ann, his.Connection.Name, completion).Problem(t, http.StatusNotFound)
	w.complete(ann, hers.Connection.Name, completion).Problem(t, http.StatusConflict, "another connection")
	w.complete(bob, his.Connection.Name, w.parameter(mixed, "state")).Problem(t, http.StatusBadRequest)
	for _, guess := range []string{"", ".", "A." + completion, completion[1:], strings.ToUpper(completion), completion + "=", strings.Repeat("a", 2<<10)} {
		if a := w.complete(bob, his.Connection.Name, guess); a.Code != http.StatusBadRequest {
			t.Errorf("completed with %.40q: %d %s", guess, a.Code, a.Body)
		}
	}
	if got := w.disconnect(bob, his.Connection.Name); len(got) > 0 || w.get(hers.Connection.Name).Status.GrantSequence != 0 {
		t.Errorf("revoked %v", got)
	}
	w.leaked(append(w.provider.Secrets(), completion))
}

// A code counts once, whatever the state is.
func TestCodeReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	begun := w.connect(ann, "")
	first := w.provider.Consent(t, begun.AuthorizeURL)
	w.complete(ann, begun.Connection.Name, w.parked(first)).Want(t, http.StatusOK)
	code := w.parameter(first, "code")
	again := w.with(w.provider.Consent(t, w.connect(ann, "").AuthorizeURL), func(q url.Values) { q.Set("code", code) })
	w.refused(again, "exchange_failed")
	if c := w.get(begun.Connection.Name); c.Status.GrantSequence != 1 || c.Status.State != "Ready" {
		t.Errorf("after a replay: %+v", c.Status)
	}
	if got := w.disconnect(ann, begun.Connection.Name); !slices.Equal(got, []string{w.provider.Refresh(code)}) {
		t.Errorf("revoked %v", got)
	}
}

// Wherever a request says that it was sent, the browser goes on to the base address, with the completion in the fragment and nowhere else.
func TestCallbackHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	headers := []map[string]string{
		{"Host": "evil.example"},
		{"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"},
		{"Forwarded": "host=evil.example;proto=http"},
		{"X-Original-URL": "//evil.example", "X-Rewrite-URL": "//evil.example"},
		{"X-Forwarded-Prefix": "//evil.example", "X-Forwarded-Port": "81"},
		{"Origin": "https://evil.example", "Referer": "https://evil.example/"},
		{"X-HTTP-Method-Override": "DELETE"},
	}
	for _, set := range headers {
		begun := w.connect(ann, "")
		address := w.provider.Consent(t, begun.AuthorizeURL)
		b := w.browser()
		req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, b.Base+w.local(address), http.NoBody))
		for name, value := range set {
			if req.Header.Set(name, value); name == "Host" {
				req.Host = value
			}
		}
		resp, err := b.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusMisdirectedRequest && set["Host"] != "" { // of HTTP/2: the certificate is not that of this host
			w.refusedHost(address)
			continue
		}
		location, completion, ok := strings.Cut(resp.Header.Get("Location"), "#completion=")
		if !ok || resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(location, base+"/settings/connectors?") || resp.ContentLength > 0 {
			t.Errorf("%v: %s %s", set, resp.Status, resp.Header.Get("Location"))
			continue
		}
		for name, values := range resp.Header {
			for _, v := range values {
				if name != "Location" && strings.Contains(v, completion) || strings.Contains(v, "evil") {
					t.Errorf("%v: header %s: %s", set, name, v)
				}
			}
		}
		if strings.Contains(location, completion) || len(resp.Cookies()) > 0 {
			t.Errorf("%v: %s %v", set, location, resp.Cookies())
		}
		w.complete(ann, begun.Connection.Name, completion).Want(t, http.StatusOK)
	}
}

// refusedHost has a browser come back to the listener without TLS under another host, which is refused, and leaves the consent as it was.
func (w *world) refusedHost(address string) {
	w.T.Helper()
	req := kit.Must[*http.Request](w.T)(http.NewRequestWithContext(w.T.Context(), http.MethodGet, w.RESTURL+w.local(address), http.NoBody))
	req.Host = "evil.example"
	resp, err := w.browser().HTTP.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 400 || resp.Header.Get("Location") != "" {
		w.T.Errorf("under another host: %s %s", resp.Status, resp.Header.Get("Location"))
	}
	w.parked(address)
}

// What comes back is what a provider sends, or counts for nothing; and a consent that waits goes on waiting.
func TestCallbackRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	begun := w.connect(ann, "")
	address := w.provider.Consent(t, begun.AuthorizeURL)
	path := w.local(address)
	b := w.browser()
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace} {
		if a := host.Send(t, b.HTTP, method, b.Base+path, ""); a.Code != http.StatusMethodNotAllowed || a.Header.Get("Allow") != http.MethodGet {
			t.Errorf("%s: %d %v", method, a.Code, a.Header)
		}
	}
	_, query, _ := strings.Cut(path, "?")
	for name, try := range map[string]struct {
		path string
		code int
	}{
		"no parameters":    {connection.CallbackPath, http.StatusSeeOther},
		"another path":     {connection.CallbackPath + "/?" + query, 0},
		"a path in pieces": {"/api/v1/./connections/callback?" + query, 0},
		"an escape":        {strings.Replace(path, "callback", "%63allback", 1), 0},
		"a semicolon":      {path + ";x=1", http.StatusBadRequest},
		"a wrong escape":   {path + "&x=%zz", http.StatusBadRequest},
	} {
		a := host.Send(t, b.HTTP, http.MethodGet, b.Base+try.path, "")
		if a.Code != try.code && (try.code != 0 || a.Code < 400) || strings.Contains(a.Header.Get("Location"), "completion") {
			t.Errorf("%s: %d %s", name, a.Code, a.Header.Get("Location"))
		}
	}
	// RFC 6749, section 3.1: parameters must not be there twice.
	for name, values := range kit.Must[url.Values](t)(url.ParseQuery(query)) {
		w.refused(address+"&"+name+"="+url.QueryEscape(values[0]), "invalid_state")
	}
	w.refused(address+"&x=1&x=1", "invalid_state")
	long := strings.Repeat("s", 100<<10)
	w.refused(w.with(address, func(q url.Values) { q.Set("state", q.Get("state")+long) }), "invalid_state")
	if n := w.provider.Requests("/token"); n != 0 {
		t.Errorf("%d codes were exchanged", n)
	}
	w.complete(ann, begun.Connection.Name, w.parked(address+"&extra="+long)).Want(t, http.StatusOK)

	// A code that is too long is the provider's to refuse.
	w.refused(w.with(w.provider.Consent(t, w.connect(ann, "").AuthorizeURL), func(q url.Values) { q.Set("code", long) }), "exchange_failed")

	// What a provider says about an error goes nowhere.
	markup := `"><script>alert(1)</script>` + "\r\nSet-Cookie: a=b"
	failed := w.with(w.provider.Consent(t, w.connect(ann, "").AuthorizeURL), func(q url.Values) {
		q.Del("code")
		for _, name := range []string{"error", "error_description", "error_uri", "extra"} {
			q.Set(name, markup)
		}
	})
	a := host.Send(t, b.HTTP, http.MethodGet, b.Base+w.local(failed), "")
	if a.Code != http.StatusSeeOther || a.Header.Get("Location") != base+"/settings/connectors?reason=provider_rejected&status=error" || a.Body != "" || len(a.Header["Set-Cookie"]) > 0 {
		t.Errorf("an error of the provider: %d %v %s", a.Code, a.Header, a.Body)
	}
	w.leaked([]string{"<script>", "alert(1)", oauthprovider.ClientSecret})
}
