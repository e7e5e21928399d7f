// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/test/corpus"
)

// TestCorpusFolderInnocent shows which texts are changed in which public scanners must find nothing by one of their rules.
// innocent.tsv of the folder REDACT_CORPUS has them, quoted. Many hold a placeholder or the secret of another rule, which is
// removed, so the figure has no limit.
func TestCorpusFolderInnocent(t *testing.T) {
	folder := os.Getenv("REDACT_CORPUS")
	if folder == "" {
		t.Skip("REDACT_CORPUS names no folder")
	}
	touched := 0
	rows := corpusRows(t, filepath.Join(folder, "innocent.tsv"))
	for _, row := range rows {
		text, err := strconv.Unquote(row.secret)
		if err != nil {
			t.Fatal(err)
		}
		if got, changed := redact.Output(text); changed {
			touched++
			t.Logf("%s: %.200q", row.rule, firstChange(text, got))
		}
	}
	t.Logf("%d of %d texts are changed, %.2f %%", touched, len(rows), 100*float64(touched)/float64(len(rows)))
}

// TestKeptVersions: redaction keeps the version of a package whose name sounds like a secret ("cookie": "0.6.0"), and values that
// only name a secret.
func TestKeptVersions(t *testing.T) {
	for _, text := range []string{
		`"jsonwebtoken": "^9.0.2",`, `"cookie": "0.6.0"`, `{"dependencies":{"cookie":"~0.5.0","auth-token":">=1.2","tough-cookie":"4.1.3-rc.1"}}`, "cookie: ^0.5.0\n", "secretstorage==3.3.3\n",
		"tough-cookie: 4.1.3", "credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'", `export PGPASSWORD="$gdcapi_db_password"`,
		"kind: Secret\nstringData:\n  csrf: \"\"\n  htpasswd: {{ htpasswd }}\n", `"/a/strong-password":"/b/strong-password"`, `this.addPassword = '#add-password';`,
		`ChangePassword = "arn:aws:iam::aws:policy/ChangePassword"`, "ReactNativeCameraKit: f15a5a04b0f6dc6073e6db0296e6ef2d8b8d2522",
	} {
		if got, changed := redact.Text(text); changed {
			t.Errorf("%q became %q", text, got)
		}
		if got, changed := redact.Output(text); changed {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{
		"every path needs one: `Authorization: Bearer`, `x-api-key` or a client certificate", "Authorization:Bearer accepts them as tokens", "Authorization:Bearer accepts them as Bearer tokens |", "Sends \"Authorization: Bearer &lt;token&gt;\".",
		"this and all other --context-token flags default to it",
	} {
		if got, changed := redact.Text(text); changed {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"Authorization: Bearer horse", "Authorization: Bearer correct horse", "Authorization: `Bearer abcdefg`", "password: 1.2.3", "secret: 10.2.3.4567", `{"password":"1.2.3"}`, "token=1.2.x9", "password='$uper$ecret'", "secret_id: 29f63271-dc2f-4734-8221-5b31b5169bac", "cookie: 1.2.3.4.5"} {
		if got, changed := redact.Text(text); !changed {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestSentences: sentences that say something about a secret stay, as text and in JSON.
func TestSentences(t *testing.T) {
	sentences, touched := corpus.Sentences(), 0
	for _, s := range sentences {
		got, changed := redact.Text(s)
		raw, err := json.Marshal(map[string]any{"message": s, "list": []string{s}})
		if err != nil {
			t.Fatal(err)
		}
		if clean, more, err := redact.JSON(raw); changed || more || err != nil {
			if touched++; touched < 40 {
				t.Logf("%q became %q, %s %v", s, got, clean, err)
			}
		}
	}
	t.Logf("%d of %d sentences are changed", touched, len(sentences))
	if len(sentences) < 5000 || touched*1000 > len(sentences)*mostTouched {
		t.Errorf("more than %d of 1,000 sentences are changed", mostTouched)
	}
}
