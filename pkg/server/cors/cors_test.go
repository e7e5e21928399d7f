// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cors_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/server/cors"
)

func TestOrigins(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"":                            {},
		"https://a.example":           {cors.EnvOrigins: "https://a.example"},
		"https://a.example b":         {cors.EnvOrigins: " https://a.example,, b "},
		"https://b.example":           {cors.EnvOriginsAlias: "https://b.example"},
		"https://c.example https://d": {cors.EnvOrigins: "https://c.example,https://d", cors.EnvOriginsAlias: "https://e"},
	} {
		got := strings.Join(cors.Origins(func(name string) string { return env[name] }), " ")
		if got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	mine := cors.New([]string{"https://a.example"}, []string{"GET", "POST"}, []string{"Authorization", "Accept"}, []string{"Retry-After"})
	open := cors.New([]string{"https://a.example", "*"}, []string{"GET"}, nil, nil)
	sent := http.Header{
		"Access-Control-Allow-Methods": {"GET, POST"}, "Access-Control-Allow-Headers": {"Authorization, Accept"}, "Access-Control-Max-Age": {"600"},
		"Access-Control-Allow-Origin": {"https://a.example"}, "Access-Control-Expose-Headers": {"Retry-After"}, "Vary": {"Origin"},
	}
	for name, tc := range map[string]struct {
		policy         cors.Policy
		origin, method string
		want           http.Header
	}{
		"an allowed page":     {mine, "https://a.example", "POST", sent},
		"another page":        {mine, "https://b.example", "POST", http.Header{"Vary": {"Origin"}}},
		"no page":             {mine, "", "", http.Header{"Vary": {"Origin"}}},
		"any page":            {open, "https://b.example", "", http.Header{"Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {""}}},
		"no page, any may":    {open, "", "", http.Header{}},
		"a page of no origin": {mine, "null", "", http.Header{"Vary": {"Origin"}}},
	} {
		r := httptest.NewRequest(http.MethodOptions, "/", http.NoBody)
		for key, value := range map[string]string{"Origin": tc.origin, "Access-Control-Request-Method": tc.method} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		got := http.Header{}
		tc.policy.Allow(got, r)
		if cors.IsPreflight(r) {
			tc.policy.Preflight(got)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
