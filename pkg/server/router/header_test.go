// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bufio"
	"errors"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/cors"
)

// parseHeader parses the lines of a header as a server does.
func parseHeader(text string) (http.Header, bool) {
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(text + "\r\n\r\n"))).ReadMIMEHeader()
	return http.Header(h), err == nil
}

// Whatever a client sends, an installation gets only the selected credential and the listed
// headers.
func FuzzOutgoing(f *testing.F) {
	f.Add("Authorization: Bearer a.b.c\r\nX-Api-Key: d.e.f\r\nCookie: a=b")
	f.Add("x-api-key: a.b.c\r\nImpersonate-User: system:admin\r\nConnection: Authorization, X-Request-Id, User-Agent")
	f.Add("authorization: bearer a.b.c\r\nAuthorization: Bearer d.e.f")
	f.Add("X-Request-Id: a\r\nAccept: x\r\nAccept: y\r\nTransfer-Encoding: chunked\r\nTe: trailers\r\nUpgrade: h2c")
	f.Fuzz(func(t *testing.T, text string) {
		in, ok := parseHeader(text)
		if !ok {
			return
		}
		for _, s := range []style{chatCompletions, messages} {
			token, err := credential(in, s)
			if err != nil {
				if p, ok := errors.AsType[problem](err); !ok || p.code != http.StatusUnauthorized {
					t.Fatalf("%v", err)
				}
				continue
			}
			_, named := in[headerAuthorization]
			if named && !strings.Contains(in.Get(headerAuthorization), token) || !named && (s != messages || strings.TrimSpace(in.Get(headerAPIKey)) != token) {
				t.Fatalf("token %q of %v", token, in)
			}
			before := in.Clone()
			out := outgoing(in, token, requestID(in))
			if got := out[headerAuthorization]; len(got) != 1 || got[0] != "Bearer "+token {
				t.Fatalf("authorization %q", got)
			}
			allowed := append(passed(), headerAuthorization, headerRequestID)
			for name := range out {
				if !slices.Contains(allowed, name) {
					t.Fatalf("header %q", name)
				}
			}
			if !maps.EqualFunc(before, in, slices.Equal) {
				t.Fatal("the client's header was changed")
			}
		}
	})
}

// Pages may send what is forwarded, but for what browsers set themselves.
func TestPagesMaySendWhatIsForwarded(t *testing.T) {
	for _, name := range passed() {
		if name != "Accept-Encoding" && !slices.Contains(cors.VendorHeaders(), name) {
			t.Errorf("header %s", name)
		}
	}
}

// Whatever an installation sends, a client gets no cookies, and only the router's own caching and
// CORS headers.
func FuzzAnswer(f *testing.F) {
	f.Add("Set-Cookie: a=b\r\nCache-Control: public\r\nAccess-Control-Allow-Origin: *")
	f.Add("Connection: close, X-Private, Cache-Control\r\nX-Private: 1\r\nVary: Accept")
	f.Add("ACCESS-control-allow-credentials: true\r\nset-cookie2: x\r\nExpires: 0")
	f.Fuzz(func(t *testing.T, text string) {
		from, ok := parseHeader(text)
		if !ok {
			return
		}
		to := http.Header{headerCacheControl: {cacheControl}, "Access-Control-Allow-Origin": {"https://page.example"}, "Vary": {"Origin"}}
		answer(to, from)
		for name := range to {
			switch {
			case name == headerCacheControl || name == "Access-Control-Allow-Origin":
			case strings.HasPrefix(name, "Access-Control-"), name == "Set-Cookie", name == "Set-Cookie2", name == "Expires", name == "Connection":
				t.Fatalf("header %q: %q", name, to[name])
			}
		}
		if to.Get(headerCacheControl) != cacheControl || to.Get("Access-Control-Allow-Origin") != "https://page.example" || to.Get("Vary") != "Origin" {
			t.Fatalf("%v", to)
		}
	})
}

// Whatever the query, the request to an installation names only the namespace of the token.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "namespace=team-a", "namespace=team-b", "namespace=team-a&namespace=team-b", "NAMESPACE=x", "a=%zz", "namespace=team%2Da", "a;namespace=b", "namespace[]=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := query(raw, "team-a")
		if err != nil {
			if p, ok := errors.AsType[problem](err); !ok || p.code != http.StatusBadRequest {
				t.Fatalf("%v", err)
			}
			return
		}
		u := target(&url.URL{Scheme: "https", Host: "host"}, "/openai/v1/models", q)
		again, err := url.Parse(u.String())
		if err != nil || again.Host != "host" || again.Path != "/openai/v1/models" || again.Fragment != "" {
			t.Fatalf("%q: %v", u, err)
		}
		if got := again.Query()["namespace"]; len(got) != 1 || got[0] != "team-a" {
			t.Fatalf("%q names %q", u, got)
		}
	})
}
