// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"strings"
	"testing"
)

func TestParseRoutes(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // the error, or origins
	}{
		"two": {
			"namespaces:\n  team-a: http://platform-apiserver.team-a.svc:8080\n  team-b: https://[2001:db8::1]:443\n",
			"team-a http://platform-apiserver.team-a.svc:8080; team-b https://[2001:db8::1]:443",
		},
		"none":                  {"# a comment\n---\nnamespaces: {}\n", ""},
		"JSON":                  {`{"namespaces": {"team-a": "https://host"}}`, "team-a https://host"},
		"empty":                 {"", "error: namespaces: is required; {} enables none"},
		"null":                  {"namespaces:\n", "error: namespaces: is required; {} enables none"},
		"another key":           {"namespaces: {}\nroutes: {}\n", `error: "routes": is not known`},
		"another case":          {"Namespaces: {}\n", `error: "Namespaces": is not known`},
		"a list":                {"namespaces: [team-a]\n", "error: must be a mapping namespaces, from namespace to origin"},
		"a number":              {"namespaces: {team-a: 1}\n", `error: namespaces["team-a"]: must begin with https:// or http://`},
		"twice":                 {"namespaces:\n  team-a: https://a\n  team-a: https://b\n", "error: must be a mapping namespaces, from namespace to origin"},
		"two documents":         {"namespaces: {}\n---\nnamespaces: {team-a: 'https://a'}\n", "error: must be one YAML document"},
		"no YAML":               {"namespaces:\n  team-a: [", "error: must be a mapping namespaces, from namespace to origin (line 2)"},
		"a key that is none":    {"namespaces: {[a]: 'https://user:canary@host'}", "error: must be a mapping namespaces, from namespace to origin"},
		"no namespace":          {"namespaces: {Team_A: 'https://a'}", `error: namespaces["Team_A"]: is not the name of a namespace`},
		"nothing":               {"namespaces: {team-a: }", `error: namespaces["team-a"]: must begin with https:// or http://`},
		"no scheme":             {"namespaces: {team-a: host}", `error: namespaces["team-a"]: must begin with https:// or http://`},
		"scheme":                {"namespaces: {team-a: 'ftp://host'}", `error: namespaces["team-a"]: must begin with https:// or http://`},
		"no host":               {"namespaces: {team-a: 'https://'}", `error: namespaces["team-a"]: has no host`},
		"no host but a port":    {"namespaces: {team-a: 'https://:443'}", `error: namespaces["team-a"]: has no host`},
		"opaque":                {"namespaces: {team-a: 'https:host'}", `error: namespaces["team-a"]: has no host`},
		"path":                  {"namespaces: {team-a: 'https://host/openai'}", `error: namespaces["team-a"]: must have no path, not even /`},
		"slash":                 {"namespaces: {team-a: 'https://host/'}", `error: namespaces["team-a"]: must have no path, not even /`},
		"query":                 {"namespaces: {team-a: 'https://host?a=b'}", `error: namespaces["team-a"]: must have no query`},
		"empty query":           {"namespaces: {team-a: 'https://host?'}", `error: namespaces["team-a"]: must have no query`},
		"fragment":              {"namespaces: {team-a: 'https://host#'}", `error: namespaces["team-a"]: must have no fragment`},
		"credentials":           {"namespaces: {team-a: 'https://user:canary@host'}", `error: namespaces["team-a"]: must have no credentials`},
		"credentials, no port":  {"namespaces: {team-a: 'https://user:canary@host:port'}", `error: namespaces["team-a"]: is not a URL`},
		"port":                  {"namespaces: {team-a: 'https://host:65536'}", `error: namespaces["team-a"]: port must be 1–65535`},
		"port zero":             {"namespaces: {team-a: 'https://host:0'}", `error: namespaces["team-a"]: port must be 1–65535`},
		"empty port":            {"namespaces: {team-a: 'https://host:'}", `error: namespaces["team-a"]: has an empty port`},
		"all errors, in order":  {"namespaces: {b: x, a: x}", "error: namespaces[\"a\"]: must begin with https:// or http://\nnamespaces[\"b\"]: must begin with https:// or http://"},
		"a credential, in YAML": {"namespaces: {team-a: [canary]}", "error: must be a mapping namespaces, from namespace to origin"},
	} {
		t.Run(name, func(t *testing.T) {
			routes, err := ParseRoutes([]byte(tc.text))
			if wantErr, fails := strings.CutPrefix(tc.want, "error: "); fails {
				if err == nil || !strings.HasPrefix(err.Error(), wantErr) || routes != nil {
					t.Fatalf("got %v, %v, want error %q", routes, err, wantErr)
				}
				if strings.Contains(err.Error(), "canary") {
					t.Errorf("the error quotes a value: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, namespace := range []string{"team-a", "team-b"} {
				if origin, ok := routes.origin(namespace); ok {
					got = append(got, namespace+" "+origin.String())
				}
			}
			if s := strings.Join(got, "; "); s != tc.want || routes.Len() != len(got) {
				t.Errorf("got %q, want %q", s, tc.want)
			}
		})
	}
}

// An accepted file contains only origins, and each origin parses again to the same value.
func FuzzParseRoutes(f *testing.F) {
	for _, s := range []string{
		"namespaces: {team-a: 'https://host:8443'}", "namespaces: {}", "namespaces:\n  a: http://[::1]\n", "namespaces: {a: 'http://u:p@h/p?q#f'}",
		"---\nnamespaces: {a: &x 'http://h', b: *x}", "{\"namespaces\":{\"a\":\"https://h%41\"}}", "namespaces: {<<: {a: 'http://h'}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		routes, err := ParseRoutes(data)
		if err != nil {
			return
		}
		for namespace, u := range routes.origins {
			if !isNamespace(namespace) || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" || u.Hostname() == "" {
				t.Fatalf("%q: %#v", namespace, u)
			}
			again, err := parseOrigin(u.String())
			if err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
				t.Fatalf("%q is not understood again: %v, %v", u, again, err)
			}
		}
	})
}
