// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"slices"
	"strings"
	"testing"
)

func TestCredentialLike(t *testing.T) {
	for _, name := range []string{
		"token", "Token", "TOKEN", "access_token", "accessToken", "AccessToken", "X-Auth-Token", "x.api.token", "token2", "accesstoken", "IDToken",
		"secret", "client-secret", "clientSecret", "password", "passwd", "PWD", "pass", "passphrase", "api_key", "apikey", "apiKey", "APIKey", "X-API-Key",
		"access_key", "AWSAccessKeyId", "key", "Key", "private-key", "privateKey", "subscription_key", "Ocp-Apim-Subscription-Key", "x-functions-key",
		"auth", "X-Auth", "authorization", "Authorization", "credential", "X-Goog-Credential", "session", "sessionId", "SID", "jwt", "bearer",
		"signature", "X-Amz-Signature", "sig", "id_token_hint", "cookie", "client_assertion", "token[]", "hmac", "X-Amz-Security-Token",
	} {
		if !CredentialLike(name) {
			t.Errorf("%s is not taken for a credential", name)
		}
	}
	for _, name := range []string{
		"", "-", "author", "authority", "X-Author", "access_type", "token_type", "auth_type", "token_access_type", "tokenizer", "Tokenizer", "detokenize",
		"sort_key", "partition-key", "public_key", "keyboard", "monkey", "keyword", "page", "passport", "bypass", "compass", "X-Pass-Through", "secretary",
		"sessions", "design", "signal", "prompt", "login_hint", "audience", "Accept", "Content-Type", "User-Agent", "X-GitHub-Api-Version", "hd", "max_tokens", "state",
	} {
		if CredentialLike(name) {
			t.Errorf("%s is taken for a credential", name)
		}
	}
}

func FuzzCredentialLike(f *testing.F) {
	for _, s := range []string{"accessToken", "X-API-Key", "APIKey2", "author", "a.b-c_d", "\xff\x00", "ÀÉToken"} {
		f.Add(s)
	}
	separators := strings.NewReplacer("-", "_", ".", "_", " ", "_")
	f.Fuzz(func(t *testing.T, name string) {
		is := CredentialLike(name)
		if CredentialLike(separators.Replace(name)) != is {
			t.Errorf("%q: separators make a difference", name)
		}
		if !CredentialLike(name+"_token") || !CredentialLike(name+"-api-key") {
			t.Errorf("%q hides the words after it", name)
		}
		if is && !CredentialLike("x_"+name) && !slices.Contains([]string{"key", "pass"}, strings.Join(words(name), "")) {
			t.Errorf("%q: a word before it makes a difference", name)
		}
		for _, w := range words(name) {
			if w == "" || w != strings.ToLower(w) {
				t.Errorf("%q has the word %q", name, w)
			}
		}
	})
}

func TestParseScopes(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                   nil,
		" ,, ":                               nil,
		"repo":                               {"repo"},
		"repo,read:user user:email":          {"read:user", "repo", "user:email"},
		"b a, b\ta\nc":                       {"a", "b", "c"},
		`good bad"quote back\slash ünicode`:  {"good"},
		"https://example.com/a.b?c=d openid": {"https://example.com/a.b?c=d", "openid"},
		strings.Repeat("x", maxScope) + " " + strings.Repeat("y", maxScope+1): {strings.Repeat("x", maxScope)},
	} {
		if got := ParseScopes(in); !slices.Equal(got, want) {
			t.Errorf("%.60q: %q", in, got)
		}
	}
}

func FuzzParseScopes(f *testing.F) {
	f.Add("repo,read:user  user:email", "repo")
	f.Add("\x00 \" \\ \u00a0\u2028x", "")
	f.Fuzz(func(t *testing.T, s, more string) {
		got := ParseScopes(s)
		for i, scope := range got {
			if !isScope(scope) || !strings.Contains(s, scope) || i > 0 && got[i-1] >= scope {
				t.Errorf("%q: %q", s, got)
			}
		}
		if again := ParseScopes(strings.Join(got, ",")); !slices.Equal(again, got) {
			t.Errorf("%q is %q when it is read again", got, again)
		}
		if all := ParseScopes(s + " " + more); !Covers(all, got) || !Covers(all, ParseScopes(more)) || !slices.Equal(all, ParseScopes(more+" "+s)) {
			t.Errorf("%q and %q are %q together", s, more, all)
		}
	})
}
