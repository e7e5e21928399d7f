// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/platform-ai/platform/pkg/controller/executor"
)

// TestStartLostInACrash: after a crash of the machine, the record of a start that was not on disk is a file without
// content. That attempt has not begun, and may be started.
func TestStartLostInACrash(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "only its length": string(make([]byte, 300))} {
		f := newFixture(t, "exit 0")
		run := newRunSpec()
		dir := f.Executor.dir(run.Ref)
		f.close()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, recordName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f.open()
		if _, err := f.State(t.Context(), run.Ref); !errors.Is(err, executor.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		f.start(run)
		<-f.ended
		if s := f.get(run); s.Phase != executor.Exited || s.ExitCode != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
