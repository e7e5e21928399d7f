// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

// TestCorpusFolder measures how many secrets of public scanners stay. REDACT_CORPUS names a folder with two files:
// distinctive.tsv has the secrets that are known by their form, and context.tsv those that are known by what stands
// before them. Each line is "scanner:rule", a tab, "example" or "made" (from the rule's pattern), a tab, and the secret.
// The files hold what looks like secrets, so they are no part of this repository.
func TestCorpusFolder(t *testing.T) {
	folder := os.Getenv("REDACT_CORPUS")
	if folder == "" {
		t.Skip("REDACT_CORPUS names no folder")
	}
	for _, class := range []struct {
		name, file string
		most       int // of 1,000
		formats    []string
	}{
		{"distinctive forms", "distinctive.tsv", 30, []string{"I found %s in the file.", "got '%s', then", "export SETTING=%s\n", `{"note":"%s"}`}},
		{"under a telling key", "context.tsv", 10, []string{"export ACME_TOKEN=%s\n", "client_secret: %s\n", `{"apiKey":"%s"}`, "password = \"%s\"\n", "x-api-secret: %s"}},
		{"under a key named *_key", "context.tsv", 10, []string{"export ACME_KEY=%s\n", "vendor_key: %s\n", `{"serviceKey":"%s"}`, "maps_key = \"%s\"\n"}},
	} {
		t.Run(class.name, func(t *testing.T) {
			leaked, all := map[string]int{}, map[string]int{}
			shown := map[string]bool{}
			for _, row := range corpusRows(t, filepath.Join(folder, class.file)) {
				for _, format := range class.formats {
					text := fmt.Sprintf(format, row.secret)
					scanner, _, _ := strings.Cut(row.rule, ":")
					all[row.kind]++
					all[scanner]++
					got, _ := redact.Text(text)
					if strings.Contains(got, row.secret) {
						leaked[row.kind]++
						leaked[scanner]++
						if !shown[row.rule] {
							t.Logf("stays: %s %s: %.160q", row.rule, row.kind, text)
						}
						shown[row.rule] = true
					}
				}
			}
			n, of := leaked["example"]+leaked["made"], all["example"]+all["made"]
			for _, k := range []string{"example", "made", "gitleaks", "trufflehog", "kingfisher", "noseyparker"} {
				t.Logf("%s: %d of %d stay, %.2f %%", k, leaked[k], all[k], 100*float64(leaked[k])/float64(max(all[k], 1)))
			}
			t.Logf("%s: %d of %d stay, %.2f %%", class.name, n, of, 100*float64(n)/float64(max(of, 1)))
			if of == 0 || n*1000 > of*class.most {
				t.Errorf("more than %d of 1,000 secrets stay", class.most)
			}
		})
	}
}

type corpusRow struct{ rule, kind, secret string }

func corpusRows(t *testing.T, file string) []corpusRow {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []corpusRow
	for line := range strings.Lines(string(raw)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 3 {
			t.Fatalf("%s: %q has less than three columns", file, line)
		}
		rows = append(rows, corpusRow{fields[0], fields[1], fields[2]})
	}
	return rows
}
