// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

// TestTellingNames: after a header, a key or a flag that names a secret, the whole value goes, whatever it looks like.
func TestTellingNames(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Txn-Token: gateway.session.SECRET", "Cookie: a.b.SECRET", "X-Api-Key: a.b.SECRET", "Authorization: a.b.SECRET", "password: a.b.SECRET", "password: a.b.SECRET\nuser: bob", "api_key=a.b.SECRET",
		`{"pass":"SECRET"}`, `{"user":"bob","pass": "SECRET"}`, "'pass': 'SECRET'", "tool --pass SECRET7 run", "tool --pass=SECRET7 run", "pass=SECRET7\n",
		"tool --encryption-key Qx7SECRET9", "tool --master-key Qx7SECRET9 run", "- name: master_key\n  value: SECRET\n", "- name: SIGNING_KEY\n  value: \"SECRET\"\n", `{"name":"master_key","value":"SECRET"}`,
		"master_key: SECRET", `signing_key = "SECRET"`, "ENCRYPTION_KEY=SECRET", `{"hmacKey":"SECRET"}`, "decryption-key: SECRET",
		"totp_seed: SECRET", "TOTP_SEED=SECRET", "wifi_psk=SECRET", `psk="SECRET"`, "connection_string: Server=db;Data=SECRET;x=1", `{"connectionString":"Server=db;Data=SECRET"}`, "CONNECTION_STRING=\"a b SECRET\"",
		"Passwort: SECRET", "passwort=SECRET", "Kennwort: SECRET", "mot_de_passe: SECRET", "Mot de passe : SECRET", "motdepasse=SECRET", "contraseña: SECRET", "Contraseña=SECRET", "contrasena: SECRET",
		"senha: SECRET", "wachtwoord: SECRET", "пароль: SECRET", "Пароль = SECRET", "hasło: SECRET", "密码: SECRET", "密码：SECRET", "パスワード: SECRET", `{"пароль":"SECRET"}`, `{"Contraseña":"SECRET"}`,
		"Das Passwort ist SECRET7.", "La contraseña es SECRET7.", "Le mot de passe est SECRET7.",
	} {
		secret := "swordfish"
		if strings.Contains(text, "SECRET7") || strings.Contains(text, "SECRET9") {
			secret = "swordF1sh"
		}
		text = strings.ReplaceAll(text, "SECRET", secret)
		got, changed := redact.Text(text)
		if !changed || strings.Contains(got, secret) {
			t.Errorf("%q became %q", text, got)
		}
		if again, more := redact.Text(got); more {
			t.Errorf("%q: a second time: %q became %q", text, got, again)
		}
		if text[0] != '{' {
			continue
		}
		if clean, _, err := redact.JSON([]byte(text)); err != nil || strings.Contains(string(clean), secret) {
			t.Errorf("JSON %s became %s, %v", text, clean, err)
		}
	}
}

// TestNotTelling are lines with the same words that hold no secret.
func TestNotTelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"--- PASS: TestFoo (0.00s)", "PASS: all", "pass: 12, fail: 3", `{"pass":12,"fail":0}`, `{"pass":true}`, "tool --pass", "pass: the next one", "3 pass, 1 fail", "first pass: parse the file",
		"Token: cfg.Token,\n", "password: config.db.password,\n", "password: config.db.password\n", "token: self.token", "f(password=cfg.db.pass)", "token = lexer.next.token", "Authorization: headers.authorization,",
		"public_signing_key: abc", "signingKeyId: abc", "encryption_key_id: abc", "seed: 42", "random_seed: 1234", "signing_key: ${KEY}", "--signing-key /etc/keys/signing.pem", "--encryption-key <key>",
		"see https://example.com/docs/a.md#installation for more", "https://example.com/a.go#L10-L20", "https://example.com/a#user-content-the-end", "[x](https://example.com/#Getting_Started)", "docs/a/b.md#some-part and more", "see https://pkg.go.dev/a/b#RunStepDelta, https://pkg.go.dev/a/b#BuiltInVoice.Name and https://groups.google.com/forum/#!forum/a-b-announce",
		"[https://a.example.com/contact/#security](https://a.example.com/contact/#security)",
		"the connection string is empty", "connectionString := builder.Build()", "el paso: uno", "la clave del asunto", "mot: de passe", "parola",
	} {
		if got, changed := redact.Text(text); changed {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"https://example.com/a#access_token=abc", "https://example.com/cb#4f8a1c9be27d0f6a4f8a1c9be27d0f6a", "https://example.com/a#Zk4Qx7hunter2Zk4Qx7", "https://example.com/a?x=1#part"} {
		if got, changed := redact.Text(text); !changed || strings.ContainsAny(got, "#?") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestEncodedTokens: tokens of vendors in base64, with escapes of URLs, and both.
func TestEncodedTokens(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aB3dE6gH9k", 4)[:36]
	for _, token := range []string{"ghp_" + long, "sk-ant-api03-" + long + long + "AA", "xoxb-123456789012-123456789012-" + long[:24], "AKIA" + "QWERTYUIOP234567", "glpat-" + long[:20]} {
		for _, form := range []string{
			base64.StdEncoding.EncodeToString([]byte(token)), base64.StdEncoding.EncodeToString([]byte(token + "\n")), base64.RawURLEncoding.EncodeToString([]byte("user:" + token)),
			percented(token, "-_"), percented(token, ""), percented("user:"+token+"@", "-_:@"), percented(base64.StdEncoding.EncodeToString([]byte(token+"?>~")), "=+/"),
		} {
			for _, format := range []string{"%s", "I found %s there.", "x=%s&y=1", `{"a":"%s"}`, "https://example.com/p/%s/q"} {
				text := fmt.Sprintf(format, form)
				if got, _ := redact.Output(text); strings.Contains(got, form[len(form)/4:3*len(form)/4]) {
					t.Errorf("%s: %q became %q", token, text, got)
				} else if again, more := redact.Output(got); more {
					t.Errorf("a second time: %q became %q", got, again)
				}
			}
		}
	}
	for _, text := range []string{"a%20b%20c", "100%25", "https://example.com/a%2Fb%2Fc-%C3%A9", "%7B%22a%22%3A1%7D"} {
		if got, changed := redact.Output(text); changed {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// percented writes the letters of signs, or each one if there are none, as URLs do.
func percented(s, signs string) string {
	var b strings.Builder
	for i := range len(s) {
		if signs == "" || strings.IndexByte(signs, s[i]) >= 0 {
			fmt.Fprintf(&b, "%%%02X", s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
