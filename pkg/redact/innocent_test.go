// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
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
