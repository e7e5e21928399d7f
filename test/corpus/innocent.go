// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Innocent returns texts without a secret: digests, identifiers, encoded
// images, source code, logs and prose about secrets. It is the same on every
// call.
func Innocent() []string {
	r := newSource(2)
	all := r.identifiers()
	all = append(all, r.binaries()...)
	all = append(all, r.logs()...)
	return append(append(append(all, code...), prose...), shells...)
}

func (r source) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func (r source) std(n int) string { return base64.StdEncoding.EncodeToString(r.bytes(n)) }

// identifiers are digests, names and numbers that are long and random.
func (r source) identifiers() []string {
	var all []string
	for range 12 {
		all = append(all,
			r.of(hex, 32), r.of(hex, 40), r.of(hex, 64), r.of(hex, 128), strings.ToUpper(r.of(hex, 40)),
			"sha256:"+r.of(hex, 64), "sha512-"+r.std(64), "h1:"+r.std(32), "md5: "+r.of(hex, 32),
			"commit "+r.of(hex, 40), "HEAD is now at "+r.of(hex, 7)+" Fix the build", r.of(hex, 7)+".."+r.of(hex, 7),
			r.uuid(), "uid: "+r.uuid(), "trace_id="+r.of(hex, 32)+" span_id="+r.of(hex, 16),
			"registry.example.com/team/app:v1.2.3@sha256:"+r.of(hex, 64),
			"example.com/a/b v1.4.2 h1:"+r.std(32), `"integrity": "sha512-`+r.std(64)+`"`,
			"web-"+r.of(digits+"bcdfghjklmnpqrstvwxz", 10)+"-"+r.of(digits+"bcdfghjklmnpqrstvwxz", 5),
			"pod/db-0 node/ip-10-0-"+r.of(digits, 2)+"-7.ec2.internal", "persistentvolumeclaim/data-"+r.uuid(),
			"v"+r.of(digits, 1)+"."+r.of(digits, 2)+".0-rc.1+build."+r.of(digits, 4), "v0.0.0-20261121041207-"+r.of(hex, 12),
			`etag: "`+r.of(hex, 32)+`"`, "SHA256:"+strings.TrimRight(r.std(32), "="),
			"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"+r.of(b64, 43)+" bob@laptop",
		)
	}
	return all
}

// binaries are images, certificates and other data in base64.
func (r source) binaries() []string {
	var all []string
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x20\x00\x00\x00\x20\x08\x06\x00\x00\x00")
	gif := []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00")
	jpeg := []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	for i := range 12 {
		size := 200 << (i % 5)
		all = append(all,
			"data:image/png;base64,"+base64.StdEncoding.EncodeToString(append(png, r.bytes(size)...)),
			base64.StdEncoding.EncodeToString(append(jpeg, r.bytes(size)...)),
			regroup(base64.StdEncoding.EncodeToString(append(gif, r.bytes(size)...)), 76),
			base64.RawURLEncoding.EncodeToString(r.bytes(size)),
			base64.StdEncoding.EncodeToString(append(png, make([]byte, size)...)),
			"-----BEGIN CERTIFICATE-----\n"+regroup(r.std(700), 64)+"-----END CERTIFICATE-----\n",
			"-----BEGIN PUBLIC KEY-----\n"+regroup(r.std(91), 64)+"-----END PUBLIC KEY-----\n",
			base64.StdEncoding.EncodeToString([]byte("The quick brown fox jumps over the lazy dog, "+r.of(small, 30)+", and runs away.")),
			`<svg viewBox="0 0 24 24"><path d="M12 2.5a9.5 9.5 0 1 0 0 19 9.5 9.5 0 0 0 0-19zm-1.`+r.of(digits, 2)+` 5.25h2v6h-2z"/></svg>`,
			fmt.Sprintf("%x", r.bytes(size)),
		)
	}
	return all
}

// logs are lines as builds, tests and servers print them.
func (r source) logs() []string {
	var all []string
	for i := range 10 {
		n := r.IntN(100000)
		all = append(all,
			fmt.Sprintf("2026-11-21T04:12:%02d.123Z INFO build: compiling pkg/storage/file_%d.go (id=%d, took: 1.2s) -> ok", i, n, n),
			fmt.Sprintf("--- PASS: TestTokenRefresh/case_%d (0.0%ds)", n, i), fmt.Sprintf("ok  \texample.com/pkg/secretary\t%d.%03ds", i, n%1000),
			fmt.Sprintf("I1121 04:12:07.%06d   12345 reconciler.go:%d] \"Reconciled\" controller=\"task\" name=\"a-%d\"", n, n%900, n),
			fmt.Sprintf("[%d/100] CXX obj/net/http2_frame.o", i), fmt.Sprintf("#%d sha256:%s 0.1s done", i, r.of(hex, 64)),
			fmt.Sprintf("Step %d/12 : RUN apt-get update && apt-get install -y ca-certificates", i),
			fmt.Sprintf("inputTokens=%d outputTokens=%d total_tokens: %d", n, n/2, n+n/2), fmt.Sprintf("used %d tokens of %d in %d ms", n, 10*n, i),
			fmt.Sprintf(`10.0.0.%d - - [21/Nov/2026:04:12:07 +0000] "GET /api/v1/tasks/%d HTTP/1.1" 200 %d "-" "curl/8.9.1"`, i, n, n),
			fmt.Sprintf("00:1b:44:11:3a:b%d 192.168.0.%d [2001:db8::%d]:443", i, i, i), fmt.Sprintf("Downloading https://files.example.org/packages/%s/%s/wheel-%d.%d-py3-none-any.whl (1.2 MB)", r.of(hex, 2), r.of(hex, 60), i, n),
			fmt.Sprintf("src/main.c:%d:%d: warning: unused variable 'passwords' [-Wunused-variable]", n, i),
			fmt.Sprintf("goroutine %d [running]:\nmain.(*Server).handle(0xc000%s, {0x7f%s, 0x1a2b3c})", n, r.of(hex, 6), r.of(hex, 10)),
			fmt.Sprintf("deployment.apps/web scaled; replicaset.apps/web-%s; configmap/kube-root-ca.crt", r.of(digits+"bcdf", 10)),
			fmt.Sprintf("cache key: linux-amd64-go1.26-%s restored", r.of(hex, 64)), fmt.Sprintf("primary_key=%s", r.uuid()),
		)
	}
	return all
}

// code is source code that speaks of secrets and holds none.
var code = []string{
	`!function(e,t){"use strict";var n=e.document,r=[].slice;function i(e,t){return e.filter(function(e){return t(e)})}n.x=i}(this);`,
	`for(var e=0,t=r.length;e<t;++e){if(a[e]!==b[e]){c=a[e]<b[e]?-1:1;break}}`,
	`const s=o.createElement("script");s.async=!0,s.src=u+"/x.js",o.head.appendChild(s)`,
	`if err := json.Unmarshal(data, &v); err != nil { return nil, fmt.Errorf("decode %q: %w", name, err) }`,
	"token := lexer.Next()\nif token == nil {\n\treturn ErrNoToken\n}\n",
	"func parseToken(s string) (Token, error) { return newParser(s).token() }",
	"password = os.environ.get('DB_PASSWORD')", "token=$(cat /dev/null)", "export TOKEN=$OTHER_TOKEN", `password: {{ .Values.db.password }}`,
	"token: ${{ secrets.GITHUB_TOKEN }}", `api_key = getenv("API_KEY")`, "secret = vault.read(path)", "type Secret struct{ Name string }",
	"const maxTokens = 4096", "x = y ? z : w;", "a?.b?.c ?? d", "#define KEY(x) ((x) << 4)", "SELECT id, name FROM users WHERE id = $1 ORDER BY name;",
	"@decorator\ndef f(x: int) -> str:\n    return f'{x:>10}'\n", "impl<'a> Iterator for Tokens<'a> { type Item = Token<'a>; }",
	"let re = /^[A-Za-z0-9+/]+={0,2}$/;", `grep -rn "password" --include=*.go .`, "//nolint:gosec // G101: no credentials", "std::string token_name(const Token& t);",
	"<div class=\"token keyword\">if</div>", ".btn-primary:hover{color:#fff;background-color:#0069d9}", "@media (min-width:576px){.col-sm-6{flex:0 0 50%}}",
	"int main(void) { return puts(\"hello\") < 0; }", "package secret // import \"example.com/secret\"", "use secrecy::ExposeSecret;",
	"task-runner-with-a-very-long-name-indeed", "disk-0123456789012345678901234", "risk-assessment-of-the-whole-project", "npm_config_registry npm_package_version npm_lifecycle_event",
	"key-value-store key-0123456789abcdef", "API-design API-VERSION-2", "pat.name sat.nav.example.com t1.micro t3.large", "s.replaceAll(x) s.length s.toLowerCase()",
	"pk.id sk.id tk.mainloop()", "hf_transfer hf_hub_download", "sl.no sl.example.com", "r8_t = read_u8()", "secret_name secret_version_id secret_manager_client",
	"github_pat_ is a prefix", "prefix ghp_ and gho_", "xoxb- begins a token", "AKIA is a prefix, ASIA is another", "eyJ is how JSON begins in base64", "glpat- marks GitLab tokens",
	`if strings.HasPrefix(line, "-----BEGIN") && strings.HasSuffix(line, "CERTIFICATE-----") {`, "Math.max.apply(null, arr.map(function(v){return v.w}))",
	"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  colour: blue\n  size: \"3\"\n",
	"apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        image: nginx:1.27\n        env:\n        - name: LOG_LEVEL\n          value: debug\n",
	"rules:\n- apiGroups: [\"\"]\n  resources: [\"secrets\", \"configmaps\"]\n  verbs: [\"get\", \"list\"]\n",
	`{"name":"HOME","value":"/root"}`, `{"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}`, `{"role":"assistant","content":"Done.","finish_reason":"stop"}`,
	`{"kind":"ConfigMap","data":{"colour":"blue"}}`, `["get","secrets","-o","name"]`, `{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}`,
}

// prose speaks of secrets without one.
var prose = []string{
	"The token is invalid.", "Your password must have at least twelve characters.", "Keep the secret safe and rotate it every month.",
	"A bearer of news came to the city.", "The secretary typed the passwords policy.", "Basic authentication is not enabled.", "Use a token instead of a password.",
	"The API key is required for this call.", "The credential is not set, so the request was refused.", "Tokens are counted per request, not per session.",
	"She kept the key under the mat; the password was never written down.", "What is in /etc/passwd?", "No password, no cookie, no token, nothing to see here.",
	"Set the password with passwd, then log in.", "The access token expires in an hour, the refresh token in a month.", "Session cookies are not persistent.",
	"See https://example.com/docs/tokens/rotation for how to rotate tokens.", "Mail bob@example.com or git@github.com:a/b.git about it.",
	"The default password policy allows 16 characters", "machine learning models read tokens", "login with password authentication failed",
	"It costs 3 tokens per word: about 1,000 for this page.", "Secrets of the deep: the password to success is patience", "user bob has no password set",
	"The private key is stored in a hardware module and never leaves it.", "Is the token valid? Yes, it is valid for an hour.", "I set the access_token scope to read.",
	"The environment variable API_KEY is unset.", "Neither GITHUB_TOKEN nor GH_TOKEN is set", "error: secret \"db\" not found", "secrets is forbidden: User \"bob\" cannot list resource \"secrets\"",
	"2 secrets created, 1 token revoked, 0 passwords changed", "password authentication failed for user \"bob\"", "(401) Unauthorized: invalid token", "Bearer token is missing",
}

// shells are commands and settings without a secret.
var shells = []string{
	"curl -fsSL https://example.com/install.sh | bash", "curl -H 'Accept: application/json' https://api.example.com/v1/tasks", "curl -u $USER:$PASSWORD https://api.example.com",
	"docker run -u 1000:1000 -p 8080:80 -v /data:/data nginx", "kubectl get secrets -n kube-system -o name", "kubectl create secret generic a --from-file=/dev/null",
	"mysql -h db -u root -p", "ssh -i ~/.ssh/id_ed25519 bob@host", "git push origin HEAD:refs/heads/main", "export PATH=$HOME/bin:$PATH", "PWD=/root/src", "chmod 0600 /run/token",
	"curl -H \"Authorization: Bearer $TOKEN\" https://api.example.com", "docker login -u bob -p $PASSWORD", "--token <token>", "tar -xzf a.tar.gz -C /opt --strip-components=1",
	"openssl req -x509 -newkey rsa:4096 -nodes -days 365", "set -euo pipefail", "ENV LANG C.UTF-8", "default deny, default allow", "http 404 not found",
	"go test ./... -run TestX -count=1", "npm ci --no-audit --prefer-offline", "redis-cli -h cache -p 6379 ping", "psql -h db -U bob -d a -c 'select 1'", "helm upgrade --install web ./chart -f values.yaml",
}
