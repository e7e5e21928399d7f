// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"strings"
	"testing"
)

// A server that stops says how many runs go on, and how to end them.
func TestWhatGoesOnIsSaid(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "1 run goes on", 13: "13 runs go on"} {
		var b strings.Builder
		if err := goOn(&b, n, "/data"); err != nil || !strings.HasPrefix(b.String(), want) || n > 0 != strings.Contains(b.String(), "platform-standalone runs end --data-dir /data\n") {
			t.Errorf("%d: %q (%v)", n, b.String(), err)
		}
	}
}

// The command that ends runs refuses a folder that no server has used.
func TestRunsEndNeedsAFolder(t *testing.T) {
	cmd := NewRunsCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"end", "--data-dir", t.TempDir()})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "no server has used this folder") {
		t.Error(err)
	}
}
