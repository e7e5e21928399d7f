// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLacks: what a tool lacks on this machine, which depends on the server's PATH and options.
func TestLacks(t *testing.T) {
	bash := t.TempDir()
	if err := os.WriteFile(filepath.Join(bash, "bash"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		tool, path, search string
		want               string // part of it; empty if nothing is lacking
	}{
		{"code_exec", t.TempDir(), "", "is on the server's PATH"},
		{"code_exec", bash, "", ""},
		{"web_search", bash, "", "--search-url"},
		{"web_search", bash, "https://search.example", ""},
		{"file_read", t.TempDir(), "", ""},
		{"nosuch", t.TempDir(), "", ""},
	} {
		t.Setenv("PATH", tc.path)
		got := (&Executor{opts: Options{SearchURL: tc.search}}).Lacks(tc.tool)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s with PATH %s and search %q lacks %q, want %q", tc.tool, tc.path, tc.search, got, tc.want)
		}
	}
}
