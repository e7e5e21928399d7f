// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDistinct: values that are removed wherever they occur again, and ordinary words, which are not.
func TestDistinct(t *testing.T) {
	for _, v := range []string{
		"Zk4Qx7hunter2", "Tr!cky-Passphrase", "summer!rain", "Hello#World", "p@ss$word", "P@ssword", "Pa$word1", "blue%Horse", "Pass^word", "Passw0rd", "secr3tword",
		"xKjQwPzTbLm", "a&B!cdefgh", "Ab<c1d2e3f>", "correct horse battery staple", "it's not: 12ab34cd",
	} {
		if found := noted(nil, v); len(found) == 0 {
			t.Errorf("%q is not remembered", v)
		}
	}
	for _, v := range []string{
		"swordfish", "Swordfish!", "required!", "accessToken", "getAccessTokenByName", "user@example.com", "Bob@example.com", "checkout@v4", "Outer$Inner", "docs.md#Section",
		"a!=bcdefgh", "this.token!.Value", "x&&y.Name", "name(1,b@c)", "Name%AFWith%BCSpace", "Utf8Decoder", "Log4jConfig", "base64-encoded", "SHA-256", "application/json",
		"true,12,false,34", "task-runner-with-a-very-long-name", "12345678", "2026-11-24", "short", "the token", "Path=/; HttpOnly; SameSite=Lax", "abc[REDACTED]12",
	} {
		if found := noted(nil, v); len(found) > 0 {
			t.Errorf("%q is remembered as %q", v, found)
		}
	}
	if found := noted(nil, "sid=Zk4Qx7hunter2; theme=dark; HttpOnly"); len(found) != 1 || found[0] != "Zk4Qx7hunter2" {
		t.Errorf("of cookies: %q", found)
	}
	if got, _, err := JSON([]byte(`{"password":"a&B1c2d3e4","log":"with a\u0026B1c2d3e4 and a&B1c2d3e4"}`)); err != nil || strings.Contains(string(got), "B1c2") {
		t.Errorf("as JSON: %s, %v", got, err)
	}
	if got, _, err := JSON([]byte(`{"password":"12,true,34,null","list":[12,true,34,null]}`)); err != nil || !isJSON(string(got)) {
		t.Errorf("no JSON: %s, %v", got, err)
	}
}

// FuzzSeen puts a secret that was removed once into arbitrary text; it must not survive, and JSON must stay JSON.
func FuzzSeen(f *testing.F) {
	secrets := []string{"Tr!cky-Passphrase", "Zk4Qx7hunter2", "wL7<Rm2>Kd9&", "correct horse battery staple", "a,b:{c1d2}"}
	f.Add("a", "b", uint8(0))
	f.Add(`{"a":"`, `","b":[1,true]}`, uint8(2))
	f.Fuzz(func(t *testing.T, before, after string, which uint8) {
		secret := secrets[int(which)%len(secrets)]
		var seen Seen
		seen.Text("password: \"" + secret + "\"")
		text := before + secret + after
		for name, got := range map[string]func(string) (string, bool){"text": seen.Text, "output": seen.Output} {
			if clean, _ := got(text); strings.Contains(clean, secret) {
				t.Fatalf("%s: %q -> %q", name, text, clean)
			}
		}
		for _, doc := range []string{text, `{"x":"` + text + `"}`} {
			clean, _, err := seen.JSON([]byte(doc))
			if (err == nil) != json.Valid([]byte(doc)) || err == nil && (!json.Valid(clean) || strings.Contains(string(clean), secret)) {
				t.Fatalf("JSON: %q -> %q, %v", doc, clean, err)
			}
		}
		raw, err := json.Marshal(map[string]string{"x": strings.ToValidUTF8(text, "?")})
		if err != nil {
			t.Fatal(err)
		}
		clean, _, err := seen.JSON(raw)
		var back map[string]string
		if err != nil || json.Unmarshal(clean, &back) != nil {
			t.Fatalf("JSON: %q -> %q, %v", raw, clean, err)
		}
		for k, v := range back {
			if strings.Contains(k+v, secret) {
				t.Fatalf("JSON: %q -> %q", raw, clean)
			}
		}
	})
}
