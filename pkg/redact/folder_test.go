// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

// corpusFolder has the secrets of public scanners that this repository keeps.
const corpusFolder = "../../test/corpus/scanners"

// TestCorpusFolder measures how many secrets of public scanners stay: those of test/corpus/scanners, or of the folder that
// REDACT_CORPUS names, which may have more. The folder has two files:
// distinctive.tsv has the secrets that are known by their form, and context.tsv those that are known by what stands
// before them. hack/scannercorpus makes both, and says what a sample is: scanner:rule, "example" or "made" (from the rule's
// pattern), the secret, and the half that it belongs to, separated by tabs. The aims hold for the half "held"; the lines
// that leak are shown of the half "tune" alone, so that nobody improves the rules with what they are measured by.
func TestCorpusFolder(t *testing.T) {
	folder := os.Getenv("REDACT_CORPUS")
	if folder == "" {
		folder = corpusFolder
	}
	keys := []string{"export ACME_KEY=%s\n", "vendor_key: %s\n", `{"serviceKey":"%s"}`, "maps_key = \"%s\"\n"}
	for _, class := range []struct {
		name, file string
		most       int // of 1,000; 0 reports the figure alone
		only       *regexp.Regexp
		formats    []string
	}{
		{name: "distinctive forms", file: "distinctive.tsv", most: 30, formats: []string{"I found %s in the file.", "got '%s', then", "export SETTING=%s\n", `{"note":"%s"}`}},
		{name: "under a telling key", file: "context.tsv", most: 10, formats: []string{"export ACME_TOKEN=%s\n", "client_secret: %s\n", `{"apiKey":"%s"}`, "password = \"%s\"\n", "x-api-secret: %s"}},
		{name: "keys under a name *_key", file: "context.tsv", most: 10, only: regexp.MustCompile(`^[A-Za-z0-9+/=_.~-]{16,}$`), formats: keys},
		{name: "all under a name *_key, with passwords and parts of URLs", file: "context.tsv", formats: keys},
	} {
		t.Run(class.name, func(t *testing.T) {
			leaked, all := map[string]int{}, map[string]int{}
			shown := map[string]bool{}
			for _, row := range corpusRows(t, filepath.Join(folder, class.file)) {
				if class.only != nil && !class.only.MatchString(row.secret) {
					continue
				}
				for _, format := range class.formats {
					text := fmt.Sprintf(format, row.secret)
					scanner, _, _ := strings.Cut(row.rule, ":")
					for _, of := range []string{row.kind, scanner, row.half} {
						all[of]++
					}
					got, _ := redact.Text(text)
					if strings.Contains(got, row.secret) {
						for _, of := range []string{row.kind, scanner, row.half} {
							leaked[of]++
						}
						if row.half == "tune" && (!shown[row.rule] || os.Getenv("REDACT_ALL") != "") {
							t.Logf("stays: %s %s: %.160q", row.rule, row.kind, text)
							shown[row.rule] = true
						}
					}
				}
			}
			for _, k := range []string{"example", "made", "gitleaks", "trufflehog", "kingfisher", "noseyparker", "tune", "held"} {
				t.Logf("%s, %s: %d of %d stay, %.2f %%", class.name, k, leaked[k], all[k], 100*float64(leaked[k])/float64(max(all[k], 1)))
			}
			if n, of := leaked["held"], all["held"]; of == 0 || class.most > 0 && n*1000 > of*class.most {
				t.Errorf("more than %d of 1,000 secrets stay", class.most)
			}
		})
	}
}

type corpusRow struct{ rule, kind, secret, half string }

func corpusRows(t *testing.T, file string) []corpusRow {
	t.Helper()
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = unzipped(file + ".gz")
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []corpusRow
	for line := range strings.Lines(string(raw)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			t.Fatalf("%s: %q does not have four columns", file, line)
		}
		rows = append(rows, corpusRow{fields[0], fields[1], fields[2], fields[3]})
	}
	return rows
}

func unzipped(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
