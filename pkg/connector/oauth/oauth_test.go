// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// What is sent, and must be in no error.
const (
	theCode     = "code-QmxhY2tiaXJk"
	theVerifier = "verifier-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
	theToken    = "ghr_1B4a2e77838347a7E420ce178F2E7c6912E16_lmnopqrst_9246c34E1ccbF66C46812d16D5B1A9Dc"
	theSecret   = "s3cret/+ of=the:client%"
	theRedirect = "https://platform.example.com/callback"
)

// quoted is everything secret, as it was sent and in other spellings.
func quoted() []string {
	basic := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape("client:1") + ":" + url.QueryEscape(theSecret)))
	all := []string{basic}
	for _, s := range []string{theCode, theVerifier, theToken, theSecret} {
		all = append(all, s, url.QueryEscape(s), s[:8], s[len(s)-8:])
	}
	return all
}

// remote is a provider over TLS that counts requests and answers with a handler, or an operation of the client that asks it.
type remote struct {
	*httptest.Server
	requests atomic.Int64
	answer   func(w http.ResponseWriter, r *http.Request)
}

func newRemote(t *testing.T, http2 bool) *remote {
	t.Helper()
	p := &remote{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		p.answer(w, r)
	}))
	p.EnableHTTP2 = http2
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *remote) endpoint() Endpoint {
	return Endpoint{TokenURL: p.URL + "/token?tenant=a", RevocationURL: p.URL + "/revoke", ClientID: "client:1", ClientSecret: SecretOf(theSecret)}
}

func (p *remote) client() *Client {
	return New(Options{Transport: p.Client().Transport, Clock: clocktesting.NewFakePassiveClock(now)})
}

// do does an operation, and checks that it led to a number of requests and that its error has nothing secret.
func (p *remote) do(t *testing.T, c *Client, op operation, requests int64) (*Grant, *Error) {
	t.Helper()
	before := p.requests.Load()
	var g *Grant
	var err error
	switch op {
	case exchange:
		g, err = c.Exchange(t.Context(), p.endpoint(), theCode, theRedirect, theVerifier)
	case refresh:
		g, err = c.Refresh(t.Context(), p.endpoint(), theToken)
	case revocation:
		err = c.Revoke(t.Context(), p.endpoint(), theToken, "refresh_token")
	}
	if n := p.requests.Load() - before; n != requests {
		t.Errorf("%s: %d requests, want %d", op, n, requests)
	}
	if err == nil {
		return g, nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || g != nil {
		t.Fatalf("%s: %T, %v", op, err, g)
	}
	hasNoSecret(t, e)
	return nil, e
}

func hasNoSecret(t *testing.T, e *Error) {
	t.Helper()
	text := fmt.Sprintf("%v %+v %#v %q %s", e, e, e, e, e.Code)
	for _, s := range quoted() {
		if strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
			t.Errorf("%q is in the error %s", s, text)
		}
	}
	if e.Message == "" || strings.Contains(e.Message, "\n") {
		t.Errorf("%q", e.Message)
	}
}

// row is an answer that gives no tokens, and what it means.
type row struct {
	name   string
	status int
	header http.Header
	body   string // SECRET stands for everything that was sent
	// refresh and exchange are the classes; that of the latter is the same if it is empty.
	refresh, exchange Class
	code              string
	wait              time.Duration
}

func coded(status int, code string, refresh, exchange Class) row {
	body := fmt.Sprintf(`{"error":%q,"error_description":"SECRET","error_uri":"https://example.com/SECRET"}`, code)
	return row{name: fmt.Sprint(status, " ", code), status: status, body: body, refresh: refresh, exchange: exchange, code: code}
}

func failures() []row {
	html, asForm := http.Header{"Content-Type": {"text/html"}}, http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}
	after := func(v string) http.Header { return http.Header{"Retry-After": {v}} }
	rows := []row{
		// The provider, or something before it, is busy or broken.
		{name: "429, seconds", status: 429, header: after("17"), body: "SECRET", refresh: Transient, wait: 17 * time.Second},
		{name: "429, date", status: 429, header: after(now.Add(time.Minute).Format(http.TimeFormat)), refresh: Transient, wait: time.Minute},
		{name: "429, date that is over", status: 429, header: after(now.Add(-time.Minute).Format(http.TimeFormat)), refresh: Transient},
		{name: "429, no number", status: 429, header: after("soon"), refresh: Transient},
		{name: "429, below zero", status: 429, header: after("-5"), refresh: Transient},
		{name: "503, a long time", status: 503, header: after("99999999"), refresh: Transient, wait: maxWait},
		{name: "503, more than fits", status: 503, header: after("9999999999999999999999"), refresh: Transient},
		{name: "500 HTML", status: 500, header: html, body: "<html>SECRET", refresh: Transient},
		{name: "502", status: 502, refresh: Transient},
		{name: "408", status: 408, refresh: Transient},
		{name: "425", status: 425, refresh: Transient},
		{name: "403 HTML of a firewall", status: 403, header: html, body: "<html>SECRET", refresh: Transient},
		{name: "403 JSON of a firewall", status: 403, body: `{"message":"SECRET"}`, refresh: Transient},
		{name: "407", status: 407, refresh: Transient},
		{name: "200 HTML of a portal", status: 200, header: html, body: "<html>SECRET", refresh: Transient},
		{name: "200 nothing", status: 200, refresh: Transient},
		{name: "204", status: 204, refresh: Transient},
		{name: "200 null", status: 200, body: "null", refresh: Transient},
		{name: "200 list", status: 200, body: `[{"access_token":"a"}]`, refresh: Transient},
		{name: "200 cut JSON", status: 200, body: `{"access_token":"a"`, refresh: Transient},
		{name: "200 two values", status: 200, body: `{"access_token":"a"}{}`, refresh: Transient},
		{name: "200 without access_token", status: 200, body: `{"token_type":"bearer","refresh_token":"SECRET"}`, refresh: Transient},
		{name: "200 with another name", status: 200, body: `{"Access_Token":"a"}`, refresh: Transient},
		{name: "200 with a number for a token", status: 200, body: `{"access_token":1}`, refresh: Transient},
		{name: "200 with an empty token", status: 200, body: `{"access_token":""}`, refresh: Transient},
		{name: "200 of more than 256 KiB", status: 200, body: `{"access_token":"a","x":"` + strings.Repeat("a", maxAnswer) + `"}`, refresh: Transient},
		{name: "200 of more than 256 KiB with spaces", status: 200, body: `{"access_token":"a"}` + strings.Repeat(" ", maxAnswer), refresh: Transient},
		{name: "200 form of something else", status: 200, header: asForm, body: "a=b", refresh: Transient},
		{name: "200 malformed form", status: 200, header: asForm, body: "access_token=%zz", refresh: Transient},
		{name: "200 JSON of another type of text", status: 200, header: http.Header{"Content-Type": {"text/xml"}}, body: "access_token=a", refresh: Transient},
		// Somebody has to correct something.
		{name: "301", status: 301, refresh: Misconfigured},
		{name: "304", status: 304, refresh: Misconfigured},
		{name: "401 HTML", status: 401, header: html, body: "SECRET", refresh: Misconfigured},
		{name: "404", status: 404, refresh: Misconfigured},
		{name: "405", status: 405, refresh: Misconfigured},
		{name: "410", status: 410, refresh: Misconfigured},
		{name: "200 DPoP", status: 200, body: `{"access_token":"a","token_type":"DPoP"}`, refresh: Misconfigured},
		{name: "200 token of a workspace", status: 200, body: `{"ok":true,"access_token":"xoxb","token_type":"bot"}`, refresh: Misconfigured},
		{name: "200 token with a line", status: 200, body: `{"access_token":"a\nSet-Cookie: b"}`, refresh: Misconfigured},
		{name: "200 token with a space", status: 200, body: `{"access_token":"a b"}`, refresh: Misconfigured},
		{name: "200 long token", status: 200, body: `{"access_token":"` + strings.Repeat("a", maxToken+1) + `"}`, refresh: Misconfigured},
		{name: "200 bad refresh token", status: 200, body: `{"access_token":"a","refresh_token":"\u00fc"}`, refresh: Misconfigured},
		// The request was refused.
		{name: "400 without a code", status: 400, body: `{"message":"SECRET"}`, refresh: Rejected},
		{name: "400 HTML", status: 400, header: html, body: "SECRET", refresh: Rejected},
		{name: "400 with an object for a code", status: 400, body: `{"error":{"message":"SECRET"}}`, refresh: Rejected},
		{name: "400 of more than 256 KiB", status: 400, body: `{"error":"invalid_grant","x":"` + strings.Repeat("a", maxAnswer) + `"}`, refresh: Rejected},
		{name: "413", status: 413, refresh: Rejected},
		{name: "418", status: 418, refresh: Rejected},
		{name: "Slack without a code", status: 200, body: `{"ok":false}`, refresh: Rejected},
		{name: "Slack with a token beside", status: 200, body: `{"ok":false,"error":"invalid_code","authed_user":{"access_token":"xoxp"}}`, refresh: Rejected, code: "invalid_code"},
		// A code that is no secret in a request of the person may still quote one.
		{name: "a code that is a token", status: 400, body: fmt.Sprintf(`{"error":%q}`, theToken[:60]), refresh: Rejected},
		{name: "a code with a part of a token", status: 400, body: `{"error":"bad_lmnopqrs"}`, refresh: Rejected}, // also of the verifier
		{name: "a code in capitals", status: 400, body: `{"error":"INVALID_GRANT"}`, refresh: Rejected},
		{name: "a code with the code", status: 400, body: fmt.Sprintf(`{"error":%q}`, theCode), refresh: Rejected},
		{name: "a sentence for a code", status: 400, body: `{"error":"SECRET"}`, refresh: Rejected},
		{name: "a long code", status: 400, body: `{"error":"` + strings.Repeat("a", 65) + `"}`, refresh: Rejected},
		// GitHub answers errors with 200, and with forms.
		{name: "form, invalid_grant", status: 200, header: asForm, body: "error=bad_refresh_token&error_description=SECRET", refresh: Revoked, exchange: Rejected, code: "bad_refresh_token"},
		{name: "text, bad_verification_code", status: 200, header: http.Header{"Content-Type": {"text/plain"}}, body: "error=bad_verification_code", refresh: Rejected, code: "bad_verification_code"},
		// What passes does not revoke, whatever the body says.
		coded(429, "invalid_grant", Transient, ""), coded(500, "invalid_grant", Transient, ""), coded(503, "invalid_client", Transient, ""),
		// Codes that are not known count as little as none.
		coded(400, "org_required", Rejected, ""), coded(401, "invalid_token", Misconfigured, ""), coded(403, "forbidden", Transient, ""), coded(200, "access_denied", Rejected, ""),
		coded(403, "invalid_grant", Revoked, Rejected), coded(401, "invalid_grant", Revoked, Rejected),
	}
	for _, status := range []int{200, 400, 401} {
		rows = append(rows,
			coded(status, "invalid_grant", Revoked, Rejected), coded(status, "invalid_request", Rejected, ""), coded(status, "invalid_client", Misconfigured, ""),
			coded(status, "unauthorized_client", Misconfigured, ""), coded(status, "unsupported_grant_type", Misconfigured, ""), coded(status, "invalid_scope", Misconfigured, ""),
			coded(status, "server_error", Transient, ""), coded(status, "temporarily_unavailable", Transient, ""), coded(status, "slow_down", Transient, ""),
			coded(status, "unsupported_token_type", Misconfigured, ""), coded(status, "invalid_target", Misconfigured, ""),
			coded(status, "bad_refresh_token", Revoked, Rejected), coded(status, "bad_verification_code", Rejected, ""),
			coded(status, "incorrect_client_credentials", Misconfigured, ""), coded(status, "redirect_uri_mismatch", Misconfigured, ""), coded(status, "application_suspended", Misconfigured, ""),
			coded(status, "invalid_refresh_token", Revoked, Rejected), coded(status, "token_revoked", Revoked, Rejected), coded(status, "account_inactive", Revoked, Rejected),
			coded(status, "invalid_code", Rejected, ""), coded(status, "code_already_used", Rejected, ""), coded(status, "bad_client_secret", Misconfigured, ""),
			coded(status, "invalid_client_id", Misconfigured, ""), coded(status, "bad_redirect_uri", Misconfigured, ""), coded(status, "invalid_grant_type", Misconfigured, ""),
			coded(status, "ratelimited", Transient, ""), coded(status, "rate_limited", Transient, ""), coded(status, "internal_error", Transient, ""),
			coded(status, "fatal_error", Transient, ""), coded(status, "service_unavailable", Transient, ""), coded(status, "request_timeout", Transient, ""),
		)
	}
	return rows
}

// write answers as a row says.
func (r row) write(w http.ResponseWriter, request *http.Request) {
	sent, _ := io.ReadAll(request.Body)
	for name := range r.header {
		w.Header().Set(name, r.header.Get(name))
	}
	if r.header.Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	echo := fmt.Sprint(request.Header.Get("Authorization"), " ", strings.ReplaceAll(string(sent), `"`, ""), " ", theSecret)
	if strings.HasPrefix(r.body, "error=") {
		echo = url.QueryEscape(echo)
	}
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, strings.ReplaceAll(r.body, "SECRET", echo))
}

// TestFailures: each answer means what the table says, after one request, and only a refresh revokes.
func TestFailures(t *testing.T) {
	p := newRemote(t, false)
	c := p.client()
	all := failures()
	seen := map[string]bool{}
	for _, r := range all {
		seen[r.code] = true
		t.Run(r.name, func(t *testing.T) {
			p.answer = r.write
			for op, class := range map[operation]Class{refresh: r.refresh, exchange: cmp.Or(r.exchange, r.refresh)} {
				_, err := p.do(t, c, op, 1)
				if err == nil || err.Class != class || err.Status != r.status || err.Code != r.code || err.RetryAfter != r.wait {
					t.Errorf("%s: %+v, want %s", op, err, class)
				}
				if err != nil && !strings.Contains(err.Message, string(op)+" failed: ") {
					t.Error(err)
				}
			}
		})
	}
	for code := range codes {
		if !seen[code] {
			t.Errorf("%s is in no row", code)
		}
	}
}

// TestGrants: what answers give, in the forms that providers have.
func TestGrants(t *testing.T) {
	p := newRemote(t, false)
	c := p.client()
	in := now.Add
	var none time.Time
	for _, r := range []struct {
		name, body     string
		access, again  string // again is the refresh token; empty means that of before
		scopes         string
		stated         bool
		expires, alone time.Time // alone is for an exchange, without a refresh token
	}{
		{"all", `{"access_token":"a","token_type":"Bearer","refresh_token":"b","expires_in":3600,"scope":"x y"}`, "a", "b", "x y", true, in(time.Hour), in(time.Hour)},
		{"least", `{"access_token":"a"}`, "a", "", "", false, none, none},
		{"type in small letters", `{"access_token":"a","token_type":"bearer"}`, "a", "", "", false, none, none},
		{"null", `{"access_token":"a","token_type":null,"refresh_token":null,"expires_in":null,"scope":null,"error":null}`, "a", "", "", false, none, none},
		{"empty texts", `{"access_token":"a","token_type":"","refresh_token":"","expires_in":"","error":""}`, "a", "", "", false, none, none},
		{"the same refresh token", `{"access_token":"a","refresh_token":"` + theToken + `"}`, "a", theToken, "", false, none, none},
		{"narrower", `{"access_token":"a","scope":"x"}`, "a", "", "x", true, none, none},
		{"commas", `{"access_token":"a","scope":"y,x, z"}`, "a", "", "x y z", true, none, none},
		{"list", `{"access_token":"a","scope":["y","x"]}`, "a", "", "x y", true, none, none},
		{"no scope", `{"access_token":"a","scope":""}`, "a", "", "", true, none, none},
		{"a scope of another type", `{"access_token":"a","scope":{"x":true}}`, "a", "", "", true, none, none},
		{"text of seconds", `{"access_token":"a","expires_in":"3600"}`, "a", "", "", false, in(time.Hour), in(time.Hour)},
		{"fraction of seconds", `{"access_token":"a","expires_in":3599.9}`, "a", "", "", false, in(3599 * time.Second), in(3599 * time.Second)},
		{"zero seconds", `{"access_token":"a","expires_in":0}`, "a", "", "", false, now, none},
		{"zero as text", `{"access_token":"a","expires_in":"0"}`, "a", "", "", false, now, none},
		{"below zero", `{"access_token":"a","expires_in":-5}`, "a", "", "", false, now, none},
		{"far below zero", `{"access_token":"a","expires_in":-1e400}`, "a", "", "", false, now, none},
		{"a long time", `{"access_token":"a","expires_in":9223372036854775807}`, "a", "", "", false, in(v1alpha1.Longest), in(v1alpha1.Longest)},
		{"a longer time", `{"access_token":"a","expires_in":1e400}`, "a", "", "", false, in(v1alpha1.Longest), in(v1alpha1.Longest)},
		{"words for seconds", `{"access_token":"a","expires_in":"never"}`, "a", "", "", false, none, none},
		{"no number", `{"access_token":"a","expires_in":"NaN"}`, "a", "", "", false, none, none},
		{"a list for seconds", `{"access_token":"a","expires_in":[1]}`, "a", "", "", false, none, none},
		{"form", "access_token=a&refresh_token=b&scope=x%2Cy&token_type=bearer&expires_in=60", "a", "b", "x y", true, in(time.Minute), in(time.Minute)},
		{"Slack, a person beside an app", `{"ok":true,"access_token":"xoxb","token_type":"bot","scope":"commands","refresh_token":"bot","authed_user":{"id":"U1","scope":"chat:write","access_token":"xoxp","token_type":"user","refresh_token":"b","expires_in":43200}}`, "xoxp", "b", "chat:write", true, in(12 * time.Hour), in(12 * time.Hour)},
		{"Slack, a person alone", `{"ok":true,"authed_user":{"id":"U1","scope":"chat:write","access_token":"xoxp","token_type":"user"},"team":{"id":"T1"}}`, "xoxp", "", "chat:write", true, none, none},
		{"Slack, refresh", `{"ok":true,"access_token":"xoxe","refresh_token":"b","expires_in":43200,"authed_user":{"id":"U1"}}`, "xoxe", "b", "", false, in(12 * time.Hour), in(12 * time.Hour)},
		{"space around", "\n {\"access_token\":\"a\"}\r\n", "a", "", "", false, none, none},
	} {
		t.Run(r.name, func(t *testing.T) {
			p.answer = func(w http.ResponseWriter, _ *http.Request) {
				if strings.HasPrefix(r.body, "access_token=") {
					w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
				}
				_, _ = io.WriteString(w, r.body)
			}
			for op, expires := range map[operation]time.Time{refresh: r.expires, exchange: r.alone} {
				before := ""
				if op == refresh {
					before = theToken
				}
				g, err := p.do(t, c, op, 1)
				if err != nil {
					t.Fatal(err)
				}
				if g.AccessToken.Reveal() != r.access || g.RefreshToken.Reveal() != cmp.Or(r.again, before) || g.TokenType != "Bearer" || g.ScopesStated != r.stated ||
					strings.Join(g.Scopes, " ") != r.scopes || !g.Expires.Equal(expires) {
					t.Errorf("%s: %+v, tokens %s, %s", op, g, g.AccessToken.Reveal(), g.RefreshToken.Reveal())
				}
			}
		})
	}
}

// TestRequests: the requests are those of RFC 6749 and RFC 7009, with the client's secret in one place.
func TestRequests(t *testing.T) {
	p := newRemote(t, false)
	for _, r := range []struct {
		op   operation
		path string
		want url.Values
	}{
		{exchange, "/token?tenant=a", url.Values{"grant_type": {"authorization_code"}, "code": {theCode}, "redirect_uri": {theRedirect}, "code_verifier": {theVerifier}}},
		{refresh, "/token?tenant=a", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {theToken}}},
		{revocation, "/revoke", url.Values{"token": {theToken}, "token_type_hint": {"refresh_token"}}},
	} {
		for _, authentication := range []v1alpha1.ConnectorClientAuthentication{"", v1alpha1.ClientSecretBasic, v1alpha1.ClientSecretPost} {
			want, basic := url.Values{}, ""
			maps.Copy(want, r.want)
			if authentication == v1alpha1.ClientSecretPost {
				want["client_id"], want["client_secret"] = []string{"client:1"}, []string{theSecret}
			} else {
				basic = "client%3A1:s3cret%2F%2B+of%3Dthe%3Aclient%25"
			}
			p.answer = func(w http.ResponseWriter, got *http.Request) {
				id, secret, ok := got.BasicAuth()
				sent := ""
				if ok {
					sent = id + ":" + secret
				}
				raw, _ := io.ReadAll(got.Body)
				h := got.Header
				if got.Method != http.MethodPost || got.URL.RequestURI() != r.path || string(raw) != want.Encode() || sent != basic || got.ContentLength != int64(len(raw)) || !got.Close ||
					h.Get("Accept") != "application/json" || h.Get("Content-Type") != "application/x-www-form-urlencoded" || h.Get("User-Agent") != "platform" || h.Get("Idempotency-Key") != "" {
					t.Errorf("%s %s: %s %s %s, %q, %v", r.op, authentication, got.Method, got.URL, raw, sent, h)
				}
				_, _ = io.WriteString(w, `{"access_token":"a"}`)
			}
			e := p.endpoint()
			e.Authentication = authentication
			var err error
			switch c := p.client(); r.op {
			case exchange:
				_, err = c.Exchange(t.Context(), e, theCode, theRedirect, theVerifier)
			case refresh:
				_, err = c.Refresh(t.Context(), e, theToken)
			case revocation:
				err = c.Revoke(t.Context(), e, theToken, "refresh_token")
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	p.answer = func(w http.ResponseWriter, got *http.Request) {
		if raw, _ := io.ReadAll(got.Body); strings.Contains(string(raw), "code_verifier") || strings.Contains(string(raw), "hint") {
			t.Errorf("%s", raw)
		}
		_, _ = io.WriteString(w, `{"access_token":"a"}`)
	}
	if _, err := p.client().Exchange(t.Context(), p.endpoint(), theCode, theRedirect, ""); err != nil {
		t.Error(err)
	}
	if err := p.client().Revoke(t.Context(), p.endpoint(), theToken, ""); err != nil {
		t.Error(err)
	}
}

// TestRevoke: a token that is not valid any longer is revoked; a revocation never revokes a grant here.
func TestRevoke(t *testing.T) {
	p := newRemote(t, false)
	c := p.client()
	for _, r := range []struct {
		status int
		body   string
		want   Class // empty: revoked
	}{
		{200, "", ""},
		{204, "", ""},
		{200, `{"ok":true,"revoked":true}`, ""},
		{200, "<html>", ""},
		{400, `{"error":"invalid_grant"}`, ""},
		{200, `{"ok":false,"error":"token_revoked"}`, ""},
		{200, `{"ok":false,"error":"fatal_error"}`, Transient},
		{200, `{"ok":false}`, Rejected},
		{400, `{"error":"unsupported_token_type"}`, Misconfigured},
		{401, `{"error":"invalid_client"}`, Misconfigured},
		{404, "", Misconfigured},
		{302, "", Misconfigured},
		{400, "", Rejected},
		{400, `{"error":"invalid_request"}`, Rejected},
		{503, `{"error":"invalid_grant"}`, Transient},
		{429, "", Transient},
		{403, "<html>", Transient},
	} {
		p.answer = row{status: r.status, body: r.body}.write
		if _, err := p.do(t, c, revocation, 1); (err == nil) != (r.want == "") || err != nil && err.Class != r.want {
			t.Errorf("%d %s: %+v, want %s", r.status, r.body, err, r.want)
		}
	}
}

// TestRedirects: none is followed, and nothing is sent to where it leads.
func TestRedirects(t *testing.T) {
	p, other := newRemote(t, false), newRemote(t, false)
	other.answer = row{status: 200, body: `{"access_token":"a"}`}.write
	c := p.client()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL + "/token", "/token", "http://169.254.169.254/", "//" + other.Listener.Addr().String(), ":%"} {
			p.answer = row{status: status, header: http.Header{"Location": {to}}, body: `{"access_token":"a"}`}.write
			for _, op := range []operation{exchange, refresh, revocation} {
				if _, err := p.do(t, c, op, 1); err == nil || err.Class != Misconfigured || err.Status != status {
					t.Errorf("%d to %s: %+v", status, to, err)
				}
			}
		}
	}
	if n := other.requests.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// TestBrokenConnections: a request that may have arrived is not repeated, and its outcome is unknown.
func TestBrokenConnections(t *testing.T) {
	hijacked := func(write string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			sent, _ := io.ReadAll(r.Body)
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, strings.ReplaceAll(write, "SECRET", string(sent)))
			_ = conn.Close()
		}
	}
	for name, r := range map[string]struct {
		http2  bool
		answer func(http.ResponseWriter, *http.Request)
		class  Class
	}{
		"closed at once":        {false, hijacked(""), Unknown},
		"no HTTP":               {false, hijacked("SECRET\r\n\r\n"), Unknown},
		"malformed header":      {false, hijacked("HTTP/1.1 200 OK\r\nSECRET\r\n\r\n"), Unknown},
		"half an answer":        {false, hijacked("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"access_token\":\"a\"}"), Unknown},
		"half a refusal":        {false, hijacked("HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n{\"error\":\"invalid_grant\"}"), Rejected},
		"half of a busy answer": {false, hijacked("HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\n"), Transient},
		"HTTP/2, no answer":     {true, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unknown},
		"HTTP/2, half an answer": {true, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, Unknown},
		"HTTP/2, a whole answer":    {true, row{status: 400, body: `{"error":"invalid_request"}`}.write, Rejected},
		"HTTP/1.1, a whole refusal": {false, row{status: 400, body: `{"error":"invalid_request"}`}.write, Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			p := newRemote(t, r.http2)
			c := p.client()
			for _, op := range []operation{exchange, refresh, revocation} {
				// A connection that was used before is what a transport repeats requests on.
				p.answer = row{status: 200, body: `{"access_token":"a"}`}.write
				if _, err := p.do(t, c, op, 1); err != nil {
					t.Fatal(err)
				}
				p.answer = r.answer
				if _, err := p.do(t, c, op, 1); err == nil || err.Class != r.class {
					t.Errorf("%s: %+v, want %s", op, err, r.class)
				}
			}
		})
	}
}

// TestUnsent: what was not sent cannot have been carried out.
func TestUnsent(t *testing.T) {
	p := newRemote(t, false)
	fake := clocktesting.NewFakePassiveClock(now)
	closed := newRemote(t, false)
	closed.Close()
	failing := func(err error) http.RoundTripper {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}
	for name, r := range map[string]struct {
		remote    *remote
		transport http.RoundTripper
		class     Class
		says      string
	}{
		"nobody listens":        {closed, closed.Client().Transport, Transient, "could not be reached"},
		"no such name":          {p, failing(&net.DNSError{Err: "no such host", Name: "a"}), Transient, "could not be resolved"},
		"slow to connect":       {p, failing(context.DeadlineExceeded), Transient, "in time"},
		"unknown authority":     {p, &http.Transport{}, Transient, "certificate"},
		"not a public address":  {p, nil, Misconfigured, "private, local or reserved"},
		"an error with secrets": {p, failing(errors.New(theSecret + theToken)), Transient, "could not be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range []operation{exchange, refresh, revocation} {
				_, err := r.remote.do(t, New(Options{Transport: r.transport, Clock: fake}), op, 0)
				if err == nil || err.Class != r.class || err.Status != 0 || !strings.Contains(err.Message, r.says) {
					t.Errorf("%s: %+v, want %s", op, err, r.class)
				}
			}
		})
	}
	for _, address := range []string{"", "http://example.com", "example.com", "https://", ":%", "https://example.com/" + theSecret + "\n"} {
		_, err := p.client().Refresh(t.Context(), Endpoint{TokenURL: address}, theToken)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Class != Misconfigured {
			t.Fatalf("%q: %v", address, err)
		}
		hasNoSecret(t, e)
	}
}

// roundTripper is a transport in one func.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSilence: a provider that says nothing is waited for as long as Timeout, and what it did with the request is not known.
func TestSilence(t *testing.T) {
	for _, read := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			sent := make(chan error, 1)
			c := New(Options{Clock: clocktesting.NewFakePassiveClock(now), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if read {
					_, err := io.ReadAll(r.Body)
					sent <- err
				}
				<-r.Context().Done()
				if !read { // a transport may still be about to send
					go func() {
						time.Sleep(time.Second)
						_, err := io.ReadAll(r.Body)
						sent <- err
					}()
				}
				return nil, r.Context().Err()
			})})
			began := time.Now()
			_, err := c.Refresh(t.Context(), Endpoint{TokenURL: "https://example.com"}, theToken)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Class != map[bool]Class{true: Unknown, false: Transient}[read] || time.Since(began) != Timeout || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v after %s", err, time.Since(began))
			}
			hasNoSecret(t, e)
			if err := <-sent; (err == nil) != read {
				t.Errorf("the body could be read: %v", err)
			}
		})
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// TestLongAnswer: of an answer that does not end no more is read than may be used.
func TestLongAnswer(t *testing.T) {
	answer := &counted{Reader: strings.NewReader(strings.Repeat(" ", 4*maxAnswer))}
	c := New(Options{Clock: clocktesting.NewFakePassiveClock(now), Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(answer)}, nil
	})})
	_, err := c.Refresh(t.Context(), Endpoint{TokenURL: "https://example.com"}, theToken)
	if e, ok := errors.AsType[*Error](err); !ok || e.Class != Transient || answer.n != maxAnswer+1 {
		t.Errorf("%v, %d bytes were read", err, answer.n)
	}
}

// TestCancelled: the caller's end is told, and does not say that the request was not sent.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := New(Options{Clock: clocktesting.NewFakePassiveClock(now), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		_, _ = io.ReadAll(r.Body)
		cancel()
		return nil, r.Context().Err()
	})})
	_, err := c.Refresh(ctx, Endpoint{TokenURL: "https://example.com"}, theToken)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != Unknown || !errors.Is(err, context.Canceled) {
		t.Fatalf("%+v", err)
	}
	hasNoSecret(t, e)
}

// TestSecrets: tokens are not printed, logged or encoded.
func TestSecrets(t *testing.T) {
	g := &Grant{AccessToken: SecretOf(theToken), RefreshToken: SecretOf(theCode), TokenType: "Bearer"}
	e := Endpoint{ClientSecret: SecretOf(theSecret)}
	var log strings.Builder
	text := slog.New(slog.NewTextHandler(&log, nil))
	text.Info("a", "grant", g, "value", *g, "token", g.AccessToken, "endpoint", e)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("a", "grant", g, "value", *g, "token", g.AccessToken, "endpoint", e)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%20.3v"} {
		fmt.Fprintf(&log, verb+verb+verb+verb+verb, g, *g, g.AccessToken, &g.RefreshToken, e)
	}
	fmt.Fprint(&log, g, *g, g.AccessToken, e, g.AccessToken.String(), g.AccessToken.GoString(), fmt.Errorf("%w: %v", io.EOF, g))
	for _, v := range []any{g, *g, g.AccessToken, e, map[string]any{"a": g}} {
		raw, err := json.Marshal(v)
		if err == nil {
			t.Errorf("%T has the JSON %s", v, raw)
		}
		fmt.Fprint(&log, err, string(raw))
	}
	for _, s := range append(quoted(), fmt.Sprintf("%x", theToken), fmt.Sprintf("%X", theToken)) {
		if strings.Contains(log.String(), s) {
			t.Errorf("%q was printed", s)
		}
	}
	if g.AccessToken.Reveal() != theToken || g.AccessToken.Empty() || !SecretOf("").Empty() {
		t.Error("the token is lost")
	}
}

// TestChallenge has the example of RFC 7636, appendix B.
func TestChallenge(t *testing.T) {
	if got := Challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"); got != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" {
		t.Error(got)
	}
	a, b := Verifier(), Verifier()
	if a == b || len(a) < 43 || len(a) > 128 || strings.Trim(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestAuthorizeURL(t *testing.T) {
	o := &v1alpha1.ConnectorOAuth{
		AuthorizeURL: "https://example.com/authorize?tenant=a%26b&state=theirs", ClientID: "client 1",
		AdditionalAuthorizeParameters: map[string]string{"prompt": "consent", "redirect_uri": "https://evil.example.com"},
	}
	got, err := AuthorizeURL(o, Authorization{RedirectURI: theRedirect, State: "nonce.mac", Challenge: "c", Scopes: []string{"a:b", "c"}})
	if want := "https://example.com/authorize?client_id=client+1&code_challenge=c&code_challenge_method=S256&prompt=consent" +
		"&redirect_uri=https%3A%2F%2Fplatform.example.com%2Fcallback&response_type=code&scope=a%3Ab+c&state=nonce.mac&tenant=a%26b"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	o.AuthorizeURL, o.AdditionalAuthorizeParameters = "https://example.com", nil
	got, err = AuthorizeURL(o, Authorization{RedirectURI: theRedirect, State: "s"})
	if want := "https://example.com?client_id=client+1&redirect_uri=https%3A%2F%2Fplatform.example.com%2Fcallback&response_type=code&state=s"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"", "http://example.com", "/authorize", ":%"} {
		o.AuthorizeURL = bad
		if got, err := AuthorizeURL(o, Authorization{}); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

// FuzzAnswer: whatever a provider sends, what is taken for tokens can be sent, and nothing else is.
func FuzzAnswer(f *testing.F) {
	for _, r := range failures() {
		if len(r.body) < 1<<10 {
			f.Add(r.status, r.header.Get("Content-Type"), r.body)
		}
	}
	f.Add(200, "application/json", `{"ok":true,"authed_user":{"access_token":"a","expires_in":"1e9","scope":["x"]}}`)
	f.Add(200, "application/x-www-form-urlencoded", "access_token=a&scope=a,b&expires_in=-1")
	f.Fuzz(func(t *testing.T, status int, contentType, body string) {
		a, understood := parse(contentType, []byte(body))
		if a.failed && !understood {
			t.Error("an error is not understood")
		}
		for _, op := range []operation{refresh, exchange, revocation} {
			r := &reply{op: op, status: status, sent: []string{theCode, theVerifier, theToken, theSecret}}
			e := r.failure(a)
			hasNoSecret(t, e)
			if e.Class == Revoked && (op != refresh || codes[a.code] != Revoked || status >= 500 || status == 429) || means[e.Class] == "" {
				t.Errorf("%d %s: %s", status, body, e.Class)
			}
		}
		if !understood || a.failed {
			return
		}
		g, problem := a.grant(now, "")
		if problem != "" {
			return
		}
		if !isToken(g.AccessToken.Reveal()) || !g.RefreshToken.Empty() && !isToken(g.RefreshToken.Reveal()) || len(g.Scopes) > 0 && !g.ScopesStated ||
			!g.Expires.IsZero() && (g.Expires.Before(now) || g.Expires.After(now.Add(v1alpha1.Longest))) {
			t.Errorf("%s: %+v", body, g)
		}
	})
}
