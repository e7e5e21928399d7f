// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
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
