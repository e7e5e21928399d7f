// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/test/corpus"
	"github.com/platform-ai/platform/test/kit"
)

// Aims of the measurement, in secrets that stay and texts that are changed, of 1,000.
const (
	mostLeaked  = 10
	mostTouched = 5
)

// values are the forms of keys that vendors issue without a mark: only the name says that they are secret.
var values = []string{
	"[0-9a-f]{32}", "[0-9a-f]{40}", "[0-9a-f]{64}", "[A-Za-z0-9]{24}", "[A-Za-z0-9]{40}", "[A-Z0-9]{20}", "[a-z0-9]{32}", "[A-Za-z0-9_-]{43}",
	"[A-Za-z0-9+/]{43}=", "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "[0-9]{18}", "[A-Z0-9]{8}-[A-Z0-9]{8}-[A-Z0-9]{8}",
}

// TestCorpusTellingKeys measures how many secrets are not removed although their name announces them.
func TestCorpusTellingKeys(t *testing.T) {
	names := map[string][]string{
		"token, secret or password": {"API_TOKEN", "client_secret", "db_password", "apiKey", "x-api-secret", "accessToken", "vault.token", "AWS_SECRET_ACCESS_KEY"},
		"a name that ends in key":   {"ACME_KEY", "app_key", "serviceKey", "x-acme-key", "vendor_key", "stripe_key", "masterKey", "maps.key"},
	}
	for kind, keys := range names {
		leaked, all := 0, 0
		for _, key := range keys {
			for i, pattern := range values {
				for seed := range uint64(5) {
					secret := corpus.Pattern(pattern, seed+uint64(i)*17)
					for _, format := range []string{"export %s=%s\n", "%s: %s\n", "%s = \"%s\"\n", `{"%s": "%s"}`, "curl -H '%s: %s' https://example.com", "tool --%s=%s run", "got %s=%s, then"} {
						text := fmt.Sprintf(format, key, secret)
						all++
						if got, _ := redact.Text(text); strings.Contains(got, secret) {
							if leaked++; leaked < 10 {
								t.Logf("stays: %q", text)
							}
						}
					}
				}
			}
		}
		t.Logf("%s: %d of %d secrets stay, %.2f %%", kind, leaked, all, 100*float64(leaked)/float64(all))
		if leaked*1000 > all*mostLeaked {
			t.Errorf("%s: more than %d of 1,000 secrets stay", kind, mostLeaked)
		}
	}
}

// TestCorpusInnocent measures how many texts are changed of the Go library, of this repository, of its documents, and of the
// documents of the modules that it imports, which are prose. REDACT_INNOCENT names more folders, separated as in PATH, under the
// same limit.
func TestCorpusInnocent(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	code := []string{".go", ".md", ".js", ".ts", ".py", ".yaml", ".json", ".txt", ".sh"}
	root := strings.TrimSpace(output(t, "go", "env", "GOROOT"))
	type corpusFolder struct {
		folders []string
		ext     []string
	}
	all := []corpusFolder{
		{[]string{filepath.Join(root, "src")}, code},
		{[]string{"../../pkg"}, code},
		{[]string{"../../artifacts", "../../hack", "../../manifests", "../../test", "../../cmd", "../../docs", "../../ARCHITECTURE.md", "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md", "../../SECURITY.md"}, []string{".md"}},
		{strings.Fields(output(t, "go", "list", "-m", "-f", "{{if not (or .Main .Indirect)}}{{.Dir}}{{end}}", "all")), []string{".md"}},
	}
	for _, folder := range filepath.SplitList(os.Getenv("REDACT_INNOCENT")) {
		all = append(all, corpusFolder{[]string{folder}, code})
	}
	for _, c := range all {
		touched, texts := 0, 0
		for _, file := range sample(t, c.folders, c.ext, 1000) {
			raw, err := os.ReadFile(file)
			if err != nil || bytes.IndexByte(raw, 0) >= 0 {
				continue
			}
			for _, text := range split(string(raw)) {
				texts++
				if got, changed := redact.Output(text); changed {
					if touched++; touched < 60 {
						t.Logf("%s: %q", filepath.Base(file), firstChange(text, got))
					}
				}
			}
		}
		t.Logf("%s in %s and %d more: %d of %d texts are changed, %.2f %%", strings.Join(c.ext, " "), c.folders[0], len(c.folders)-1, touched, texts, 100*float64(touched)/float64(max(texts, 1)))
		if texts < 200 || touched*1000 > texts*mostTouched {
			t.Errorf("%s: more than %d of 1,000 texts are changed, or there are too few", c.folders[0], mostTouched)
		}
	}
}

// output returns what a command prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// sample returns up to n files with one of the extensions in some folders, always the same ones.
func sample(t *testing.T, folders, ext []string, n int) []string {
	t.Helper()
	var files []string
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "node_modules" {
				return filepath.SkipDir // what npm installed is not of this repository
			}
			if err == nil && d.Type().IsRegular() && slices.Contains(ext, filepath.Ext(path)) && !strings.HasSuffix(path, "_test.go") {
				files = append(files, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	return files[:min(n, len(files))]
}

// split divides a file into texts of 200 to 2,000 bytes, at empty lines where it has any.
func split(s string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(s) {
		if len(line) > 2000 {
			continue
		}
		if b.Len() >= 200 && (strings.TrimSpace(line) == "" || b.Len()+len(line) > 2000) {
			all = append(all, b.String())
			b.Reset()
		}
		b.WriteString(line)
	}
	if b.Len() >= 200 {
		all = append(all, b.String())
	}
	return all
}

// firstChange returns the first line that differs.
func firstChange(before, after string) string {
	lines := strings.Split(after, "\n")
	for i, line := range strings.Split(before, "\n") {
		if i >= len(lines) || line != lines[i] {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestShortKeys: under a name that ends in key, short keys, keys in groups and keys with signs are removed whole, and what
// only looks like them stays.
func TestShortKeys(t *testing.T) {
	for _, secret := range []string{"mXq7Tb4Zk", "Qx4Tb9Lm", "Kp7/Xq2.Rb5+Ld", "K7Q-WNE-X4Y-TZP", "31415926-qwer-tyui-opas-dfgh-jklz", "ops&271828182845&Kd83hFjQzTb51LwRpXvN20", "vQm#x;Lp4Tz!r8Kd&0Jb"} {
		for _, format := range []string{"export ACME_KEY=%s\n", "vendor_key: %s\n", `{"serviceKey":"%s"}`, "maps_key = \"%s\"\n"} {
			text := fmt.Sprintf(format, secret)
			got, _ := redact.Text(text)
			if strings.Contains(got, secret[len(secret)/2:]) {
				t.Errorf("%q stays in %q", secret, got)
			}
		}
	}
	for _, text := range []string{
		"app_key=first&format=json&page=2", "some_key: one;two;three", "maps_key: 2026-11-23-build-7", "service_key: Utf8", "vendor_key: a-b-c-d", "keys.app_key: first-second-third-fourth",
		"<a href=x?go_key=main&amp;other&amp;another>", "f(app_key=name; other())",
	} {
		if got, changed := redact.Output(text); changed {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestKept are lines that mention secrets and hold none.
func TestKept(t *testing.T) {
	for _, text := range []string{
		"the token is expired", "The secret is stored in a vault and the key is rotated.", "the password is base64-encoded", "the key is 256 bits long",
		"def login(user: str, password: Optional[str] = None) -> Token:", "for token in tokens:\n    yield token\n", "for token in tokens:\n    break\n",
		"this.#cacheMaxKeys = options.maxKeys", "this.#aVeryLongNameOfAPrivateField.get(x)", "this.token = token;", "const password = await read.password('Password: ')",
		"nodes identified by reqs.Previous", `h.Set("Authorization", "Bearer "+c.APIKey)`, "AccessToken: tokenRes.AccessToken,\n", "tokens = append(tokens, last)",
		"for _, cookie := range all {", "SYS_LOOKUP_DCOOKIE = 212", "secretName: test\n", "TokenURL: \"https://example.com/oauth2/token\",", "`Bearer ${token}`",
		"f(password=password, user=user)", "return errors.New(\"private key: \" + err.Error())", "// NextPageToken: The next page.", "primary_key=123e4567-e89b-12d3-a456-426614174000",
		`EnvTTSTokenSource = "PLATFORM_CONTEXT_TOKEN_TTS_TOKEN_SOURCE"`, `headerAPIKey = "X-Api-Key"`, `fmt.Errorf("delegated authorization: %w", err)`,
		`"not a TokenRequest: %T"`, "tokens = completion", `"secrets:read"`, "t.MaxTokens = *limit", "var _ authenticator.Token = (*Authenticator)(nil)",
		"k := key{secret: types.NamespacedName{Namespace: s.Namespace}}", "name: API_TOKEN_FILE\nvalue: /var/run/secrets/platform.ai/token", "// \"private key: …\".", `tokenValue += "n";`, `if (token.value === "]") {`,
		"cacheKey: 9f86d081884c7d659a2feaa0c55ad015", "password: string;", "token: Option<String>,", "credentials: could not parse key", "--token-ttl 0", "key: app.kubernetes.io/name",
		"return { dotDotDotToken: n.dotDotDotToken, type: n.type };", "function read(token: CancellationToken): HandlerResult<any> {", "cookies: ReadonlyArray<{",
		"addedKey := &AddedKey{Lifetime: 3}", "hard=cpu=1,pods=2,secrets=5", "ReasonInvalidToken = \"invalidToken\"",
		"// the key identified by `keyId`.", "SIOCGIFRSSKEY = 0xc0946996", "l.password = f[i+1]", "out.ClientKeyData = *(*[]byte)(unsafe.Pointer(&in.ClientKeyData))",
	} {
		if got, changed := redact.Output(text); changed {
			t.Errorf("%q became %q", text, got)
		}
		if got, changed := redact.Text(text); changed && !strings.Contains(text, "://") {
			t.Errorf("text %q became %q", text, got)
		}
	}
}
