// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextRemoves(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.c2lnbmF0dXJl"
	a20, a30 := strings.Repeat("aB3d", 5), strings.Repeat("aB3de", 6)
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\nabcd\n-----END RSA PRIVATE KEY-----"
	for _, tc := range []struct{ name, in, want string }{
		{"authorization", "Authorization: Bearer abc.def\nnext", "Authorization: [REDACTED]\nnext"},
		{"authorization, any scheme", "authorization: Digest username=\"x\", nonce=\"y\"", "authorization: [REDACTED]"},
		{"proxy authorization", "Proxy-Authorization: Basic dXNlcg==", "Proxy-Authorization: [REDACTED]"},
		{"header in a curl command", `curl -H "Authorization: Bearer abc" https://h/p`, `curl -H "Authorization: [REDACTED]" https://h/p`},
		{"transaction token", "Txn-Token: a b c\r\nx", "Txn-Token: [REDACTED]\r\nx"},
		{"transaction token, long name", "X-Transaction-Token: abc", "X-Transaction-Token: [REDACTED]"},
		{"cookie", "Cookie: a=b; c=d\nq", "Cookie: [REDACTED]\nq"},
		{"set-cookie", "Set-Cookie: sid=1; Path=/", "Set-Cookie: [REDACTED]"},
		{"header in JSON", `{"Authorization": "Bearer abc", "x": 1}`, `{"Authorization": "[REDACTED]", "x": 1}`},
		{"header dump", `"Cookie": ["a=b", "c"], "y"`, `"Cookie": ["[REDACTED]", "[REDACTED]"], "y"`},
		{"api key", "api_key=abc", "api_key=[REDACTED]"},
		{"api key, spaced", "API key: abc, rest", "API key: [REDACTED], rest"},
		{"dashed", "x-api-key: abc", "x-api-key: [REDACTED]"},
		{"prefixed name", "MY_DB_PASSWORD=hunter2 next", "MY_DB_PASSWORD=[REDACTED] next"},
		{"pwd", "pwd=x", "pwd=[REDACTED]"},
		{"passwd", "passwd : x", "passwd : [REDACTED]"},
		{"credential", "credentials=a&b=c", "credentials=[REDACTED]&b=c"},
		{"private key", "private key: abc", "private key: [REDACTED]"},
		{"client secret", "client-secret='a b'", "client-secret='[REDACTED]'"},
		{"quoted", `"refresh_token" : "a \" b"`, `"refresh_token" : "[REDACTED]"`},
		{"escaped JSON", `{\"access_token\":\"abc\",\"n\":1}`, `{\"access_token\":\"[REDACTED]\",\"n\":1}`},
		{"declared", `password := "hunter2"`, `password := "[REDACTED]"`},
		{"compared", `if token == 'abc' {`, `if token == '[REDACTED]' {`},
		{"ruby", `password => "abc"`, `password => "[REDACTED]"`},
		{"a key of signs, letters and digits", "vendor_key: aB3[dE5}fG7hJ9kL2mN4", "vendor_key: [REDACTED]"},
		{"a short key", "vendor_key = \"aB3dE5fG7h\"", "vendor_key = \"[REDACTED]\""},
		{"a key as long as a document", "vendor_key=" + strings.Repeat(a30, 20), "vendor_key=[REDACTED]"},
		{"a key that begins with =", "export VENDOR_KEY==" + a30, "export VENDOR_KEY==[REDACTED]"},
		{"a JSON Web Token with white space and padding", "x ewogICJhIjogMX0K=.ewogICJiIjogMn0K==.c2lnbmF0dXJl y", "x [REDACTED] y"},
		{"python bytes", `secret = b"abc"`, `secret = b"[REDACTED]"`},
		{"token with a scheme", "token: Bearer abc d", "token: [REDACTED] d"},
		{"in parentheses", "(password=abc)", "(password=[REDACTED])"},
		{"flag", "login --password hunter2 --user bob", "login --password [REDACTED] --user bob"},
		{"flag with equals", "--api-token=abc", "--api-token=[REDACTED]"},
		{"plain", "the api key is abc123.", "the api key is [REDACTED]."},
		{"plain, quoted", "my password is 'a b'", "my password is '[REDACTED]'"},
		{"plain, colon", "Token is: abc", "Token is: [REDACTED]"},
		{"count that is none", "completion_tokens=abc", "completion_tokens=[REDACTED]"},
		{"literal after a verb", `f("an Authorization: %s", "hunter2")`, `f("an Authorization: [REDACTED]`},
		{"user info", "git clone https://bob:pw@host/x", "git clone https://host/x"},
		{"user info without name", "redis://:pw@host:6379/0", "redis://host:6379/0"},
		{"user info with at", "https://a@b:c@host/", "https://host/"},
		{"query", "GET https://host/p?sig=abc&x=1.", "GET https://host/p."},
		{"query in Markdown", "[![Doc](https://host/a?status.svg)](https://host/b?c=d), see [it](https://host/e)", "[![Doc](https://host/a)](https://host/b), see [it](https://host/e)"},
		{"fragment", "https://host/p#access=1", "https://host/p"},
		{"markdown", "[a](https://host/p?x=1)", "[a](https://host/p)"},
		{"scheme-relative", "see //host.io/p?x=1", "see //host.io/p"},
		{"path", "GET /cb?code=abc HTTP/1.1", "GET /cb HTTP/1.1"},
		{"single relative", "page?code=abc", "page"},
		{"unparsable", "postgres://u:p#w@host/db ok", "[REDACTED] ok"},
		{"escaped slashes", `"https:\/\/u:p@host\/x?y=1"`, `"https:\/\/host\/x"`},
		{"escaped ampersand", `https://h/p?a=1\u0026sig=abc"`, `https://h/p"`},
		{"key in a path", "https://h/token=abc?x=1&sig=q z", "https://h/token=[REDACTED] z"},
		{"bearer", "got bearer abcdef12345", "got bearer [REDACTED]"},
		{"bearer of letters", "Bearer abcdefghijklmnop", "Bearer [REDACTED]"},
		{"basic", "Basic dXNlcjpwYXNz", "Basic [REDACTED]"},
		{"sk", "use sk-" + a20, "use [REDACTED]"},
		{"ghp", "ghp_" + a20, "[REDACTED]"},
		{"gho", "gho_" + a20, "[REDACTED]"},
		{"ghu", "ghu_" + a20, "[REDACTED]"},
		{"ghs", "ghs_" + a20, "[REDACTED]"},
		{"ghr", "ghr_" + a20, "[REDACTED]"},
		{"github_pat", "github_pat_" + a30, "[REDACTED]"},
		{"xoxb", "xoxb-" + a20, "[REDACTED]"},
		{"xoxs", "xoxs-" + a20, "[REDACTED]"},
		{"glpat", "glpat-" + a20, "[REDACTED]"},
		{"npm", "npm_" + a30, "[REDACTED]"},
		{"jwt", "x " + jwt + " y", "x [REDACTED] y"},
		{"aws", "id AKIAIOSFODNN7EXAMPLE.", "id [REDACTED]."},
		{"google", "AIza" + strings.Repeat("a", 35), "[REDACTED]"},
		{"pem", "a\n" + pem + "\nb", "a\n[REDACTED]\nb"},
		{"pem, escaped", strings.ReplaceAll(pem, "\n", `\n`), "[REDACTED]"},
		{"pem, cut off", pem[:50], "[REDACTED]"},
		{"two on a line", "token=a password=b", "token=[REDACTED] password=[REDACTED]"},
		{"beside the marker", "token=[REDACTED]abc", "token=[REDACTED]"},
		{"yaml", "  password: hunter2\n  user: bob", "  password: [REDACTED]\n  user: bob"},
		{"yaml block", "a:\n  token: |\n    ab\n    cd\n\n  user: bob", "a:\n  token: |\n    [REDACTED]\n\n  user: bob"},
		{"yaml block in a list", "- token: >-\n    ab\n- name: c", "- token: >-\n    [REDACTED]\n- name: c"},
		{"yaml block in a diff", "+  token: |\n+    ab\\ncd\n+  user: bob", "+  token: |\n+    [REDACTED]\n+  user: bob"},
		{"yaml block taken out", "-  token: |\n-    ab\n-  user: bob", "-  token: |\n-    [REDACTED]\n-  user: bob"},
		{"yaml block in a quotation", "> token: |\n>   ab\n> user: bob", "> token: |\n>   [REDACTED]\n> user: bob"},
		{"yaml block in JSON", `{"a":"token: |\n  ab\n  cd\nuser: bob","b":1}`, `{"a":"token: |\n  [REDACTED]\nuser: bob","b":1}`},
		{"yaml block at the end of JSON", `{"a":"x: y\ntoken: |\n  ab \"cd","b":1}`, `{"a":"x: y\ntoken: |\n  [REDACTED]","b":1}`},
		{"yaml scalar below", "token:\n  ab\nuser: bob", "token:\n  [REDACTED]\nuser: bob"},
		{"secret in JSON", `"kind: Secret\ndata:\n  a: Yg==\n  c: |\n    ZA==\ntype: Opaque"`, `"kind: Secret\ndata:\n  a: [REDACTED]\n  c: |\n    [REDACTED]\ntype: Opaque"`},
		{"secret in a diff", "+kind: Secret\n+data:\n+  a: Yg==\n+type: Opaque", "+kind: Secret\n+data:\n+  a: [REDACTED]\n+type: Opaque"},
		{"subscript", `env["API_TOKEN"] = "abc"`, `env["API_TOKEN"] = "[REDACTED]"`},
		{"makefile", "TOKEN ?= abc", "TOKEN ?= [REDACTED]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changed := Text(tc.in)
			if got != tc.want || !changed {
				t.Errorf("Text(%q) = %q, %v\nwant %q", tc.in, got, changed, tc.want)
			}
			if again, more := Text(got); more {
				t.Errorf("a second time: %q", again)
			}
		})
	}
}

func TestTextKeeps(t *testing.T) {
	for _, s := range []string{
		"", "plain text", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"123e4567-e89b-12d3-a456-426614174000", "commit 5298328 at 12:30:45",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"token=[REDACTED]", "Authorization: [REDACTED]\nx", `"password": "[REDACTED]"`, "(secret=[REDACTED])",
		"token := lexer.Next()", "if token == nil {", "token = lexer.next()", "std::token::x", `password: ""`,
		"password=$PASSWORD", "token: ${{ secrets.TOKEN }}", "--token <token>", "curl -H 'Authorization: Bearer $TOKEN' x",
		"the token is invalid", "The password is not set.", "secret: null", "token: string",
		"inputTokens: 12, outputTokens=34", "total_tokens: 99", "prompt_tokens=5", "PWD=/root/src",
		"https://host:8080/path/to;v=1", "http://localhost:${PORT}/x", "see https://host/a.", "https://[::1]:80/", "git@github.com:a/b.git",
		"// a comment about x.y", "//go:build linux", "a ? b : c", "x?.y", "what is in /etc/passwd?", "(?P<name>a)", "owner/repo#123", "/colou?r/",
		"task-aaaaaaaaaaaaaaaaaaaaaaaa", "disk-0123456789012345678901234", "sk-short", "ghp_short", "eyJ.x", "a.b.c",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "AKIA too short", "basic authentication", "a bearer of news",
		"secretary is away", "{\"secret\": {\"name\": \"x\"}}",
	} {
		if got, changed := Text(s); changed || got != s {
			t.Errorf("Text(%q) = %q, %v; want it unchanged", s, got, changed)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"keys", `{"apiKey":"a","x":{"API-Token":[1,2]},"Set-Cookie":{"a":1}}`, `{"apiKey":"[REDACTED]","x":{"API-Token":"[REDACTED]"},"Set-Cookie":"[REDACTED]"}`},
		{"number", `{"token":5}`, `{"token":"[REDACTED]"}`},
		{"counts", `{"inputTokens":1,"usage":{"prompt_tokens":2,"completion_tokens_details":{"reasoning_tokens":3}}}`, ""},
		{"a count that is a string", `{"inputTokens":"abc"}`, `{"inputTokens":"[REDACTED]"}`},
		{"no value", `{"token":null,"password":"","hasSecret":true}`, ""},
		{"text", `{"log":"token=abc\nnext"}`, `{"log":"token=[REDACTED]\nnext"}`},
		{"layout", "{ \"a\" : [ 1, \"x\" ] }\n", ""},
		{"a secret as a key", `{"ghp_aaaaaaaaaaaaaaaaaaaaaaaa":1}`, `{"[REDACTED]":1}`},
		{"variables", `[{"name":"API_KEY","value":"abc"},{"value":"def","name":"PASSWORD"},{"name":"HOME","value":"/root"}]`, `[{"name":"API_KEY","value":"[REDACTED]"},{"value":"[REDACTED]","name":"PASSWORD"},{"name":"HOME","value":"/root"}]`},
		{"value before name, with a cut of its own", `{"value":"x token=a","name":"secret"}`, `{"value":"[REDACTED]","name":"secret"}`},
		{"arguments", `["login","--password","abc","--user","bob"]`, `["login","--password","[REDACTED]","--user","bob"]`},
		{"escapes", `{"p\u0061ssword":"\"x"}`, `{"p\u0061ssword":"[REDACTED]"}`},
		{"scalar", `"Bearer abcdef12345"`, `"Bearer [REDACTED]"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changed, err := JSON([]byte(tc.in))
			want := tc.want
			if want == "" {
				want = tc.in
			}
			if err != nil || changed != (tc.want != "") {
				t.Fatalf("changed %v, err %v: %s", changed, err, got)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, _, err := JSON([]byte(`{"a":`)); err == nil {
		t.Error("broken JSON is accepted")
	}
}

// Linear time: texts made to provoke look-back and look-ahead. Each would take
// minutes with a quadratic matcher.
func TestAdversarialInput(t *testing.T) {
	const n = 400_000
	for _, unit := range []string{
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----{", "-----END PRIVATE KEY-----", "aaaaaaaaaaaaaaaaaaaa\n-----END PRIVATE KEY-----\n",
		"kind: Secret\n", "data:\n", "data:\n  a: b\n", "kind: Secret\ndata:\n  a: |\n", "data: {", `"data":{"a":"b",`, "name: token\n", "password: \n", "password:\n\n+", "identified by ", "IDENTIFIED BY '", "alter user password '", "to-securestring \"", " -passin ", "$1$", "$6$a$", "a.v1.", "ey", "pk.", "xapp-1", "name: token value: a ", "secret: |\n",
		"secret:\n", "secret: |\n  ", "<pwd>", "<pwd>a<", "curl -u ", "curl -u a:b ", "machine login a password ", "password ", "machine ", "set A_TOKEN ", "set ", "a:5432:b:c:",
		"@tcp(", "a:@tcp(", "YWFhYWFhYWFhYWFhYWFh", "YWFhYWFhYWFhYWFhYWFh/", "Z2hwX2FhYWFhYWFhYWFhYWFhYWFhYWFhYWFh\n", "ghp_aaaa\n", "ghp_aa1\\\n", "sk-a1b2\n", `"sk-a1b2" + `, "eyJa1b2c3d4\n",
		"eyJa1b2.a1b2c3d4\n", "AKIA", "EAAA", "AIzaA", "SKa", "1//0", "hooks.slack.com/services/", "\x1b[1m", `\u001b[`, "token\x1b[1m=", "a.atlasv1.", "s.a", "1:A", "1|", "8Q~", "a?b=c&", "/a?b",
		"\\\\\\\"token\\\\\\\":", `token="a" + `, "token='a\n", "token=a\\\n", "secret: \\\n", "a://", "a?", "eyJ.", "eyJabc.", "token=", "--token ", "x=", "://a@", "//a.", "token is ", `token:"`, "sk-", "Authorization:", `\`, "[", `token=["a",`,
	} {
		s := strings.Repeat(unit, n/len(unit))
		got, _ := Text(s)
		if len(got) > 4*len(s)+len(Marker) {
			t.Errorf("%q: %d bytes out of %d", unit, len(got), len(s))
		}
	}
	if _, _, err := JSON([]byte(strings.Repeat(`{"value":"a","b":[`, 4000) + strings.Repeat(`],"name":"token"}`, 4000))); err != nil {
		t.Error(err)
	}
}

func TestOutput(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"see https://host/p?q=go#part and page?x=1", ""},
		{"see https://host/p?access_token=abc&q=go#part", "see https://host/p?access_token=[REDACTED]&q=go#part"},
		{"https://u:p@host/p?x=1", "https://host/p?x=1"},
		{"https://host/p?X-Amz-Signature=" + strings.Repeat("a1b2", 16) + "&x=1", "https://host/p?X-Amz-Signature=[REDACTED]&x=1"},
		{" {\"token\": 5, \"url\": \"https://host/p?q=1\"} ", "{\"token\": \"[REDACTED]\", \"url\": \"https://host/p?q=1\"}"},
		{`{"summary":"done","diff":"+ password=hunter2"}`, `{"summary":"done","diff":"+ password=[REDACTED]"}`},
		{` ["a", 1] `, ""},
		{"the password is hunter2", "the password is [REDACTED]"},
	} {
		want := tc.want
		if want == "" {
			want = tc.in
		}
		got, changed := Output(tc.in)
		if got != want || changed != (tc.want != "") {
			t.Errorf("Output(%q) = %q, %v; want %q", tc.in, got, changed, want)
		}
		if again, more := Output(got); more {
			t.Errorf("a second time: %q", again)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"kind: Secret\ndata:\n  a: b", "- name: A_TOKEN\n  value: b", "curl -u a:b", "machine a login b password c", "set A_TOKEN b1", "a:5432:b:c:d", "<password>a</password>",
		"token: |\n  a\n b", "sk-a1b2c3d4e5f6g7h8\n  i9j0k1l2m3", "token = \"a\" + \"b\"", "\x1b[1mtoken\x1b[0m=a", "eyJhbGci\nOiJIUz.eyJzdWIi.c2ln", "a:b@tcp(c)", "hooks.slack.com/services/aaaaaaaaaa",
		"Z2hwX2FCM2RhQjNkYUIzZGFCM2RhQjNk", "1//0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abc8Q~aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "12345:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"Authorization: Bearer x", `{"token": "a", 'b':"password=c"}`, "https://u:p@h/p?q#f", "token is abc", "--password x",
		"eyJhbGci.eyJzdWIi.c2ln", "-----BEGIN PRIVATE KEY-----\nab", "token=[REDACTED]x", "a//u@h.b?x=1", `cookie:[\"a\"]`, "key: x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, changed := Text(s)
		if changed == (once == s) {
			t.Fatalf("changed is %v: %q -> %q", changed, s, once)
		}
		if twice, more := Text(once); more {
			t.Fatalf("%q -> %q -> %q", s, once, twice)
		}
		if len(once) > 4*len(s)+len(Marker) {
			t.Fatalf("%d bytes of %d", len(once), len(s))
		}
		once, changed = Output(s)
		if twice, more := Output(once); more {
			t.Fatalf("output: %v %q -> %q -> %q", changed, s, once, twice)
		}
	})
}

// FuzzPlanted puts a secret into arbitrary text; it must not survive.
func FuzzPlanted(f *testing.F) {
	f.Add("a", "b", uint8(0))
	f.Fuzz(func(t *testing.T, before, after string, form uint8) {
		const plain, long = "Qx7hunter2Zk", "Qx7hunter2ZkQx7hunter2ZkQx7hunter2Zk"
		forms := []string{
			"\npassword=" + plain + "\n", "\nAuthorization: Bearer " + plain + "\n", "\n\"api_key\": \"" + plain + "\"\n",
			"\nsk-" + long + "\n", "\nghp_" + long + "\n", "\nhttps://bob:" + plain + "@host/\n", "\nthe token is " + plain + "\n",
			"\nhttps://host/p?x=" + plain + "\n", "\neyJhbGciOi." + long + "." + plain + "\n",
		}
		s := strings.ReplaceAll(before, "Qx7", "") + forms[int(form)%len(forms)] + strings.ReplaceAll(after, "Qx7", "")
		if got, _ := Text(s); strings.Contains(got, plain) {
			t.Fatalf("%q -> %q", s, got)
		}
	})
}

func TestUnquote(t *testing.T) {
	for _, s := range []string{`""`, `"a"`, `"\n\t\r\b\f\\\/\""`, `"\u0041\u00e9\u20ac"`, `"\ud83d\ude00x"`, `"\ud83dx"`, `"\ude00"`, `"\ud83d\u0041"`, `"é\\"`, `"\ud83d\n"`} {
		var want string
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatal(err)
		}
		if got := unquote(s); got != want {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"token":"a","x":[{"name":"password","value":"b"},"--token","c"]}`))
	f.Add([]byte(`{"a":"https://u:p@h","inputTokens":1e3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		once, changed, err := JSON(b)
		if (err == nil) != json.Valid(b) {
			t.Fatalf("err %v", err)
		}
		if err != nil {
			return
		}
		if !json.Valid(once) || changed == (string(once) == string(b)) {
			t.Fatalf("changed %v: %q -> %q", changed, b, once)
		}
		if twice, more, err := JSON(once); err != nil || more {
			t.Fatalf("%q -> %q -> %q %v", b, once, twice, err)
		}
	})
}
