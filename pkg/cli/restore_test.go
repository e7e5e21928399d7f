// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The restore command passes all its arguments to a server's program in PATH and exits with that program's exit code.
// Without such a program, its error says which programs have the command.
func TestRestoreIsTheServers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	run := func(become func(string, []string, []string) error) (code int, out, errs string) {
		var o, e bytes.Buffer
		code = Main(t.Context(), "platform", []string{"--kubeconfig", "none", "restore", "-", "--data-dir", "/x y"}, Streams{
			In: strings.NewReader("archive"), Out: &o, Err: &e, Become: become,
		})
		return code, o.String(), e.String()
	}
	if code, _, errs := run(nil); code != 1 || !strings.Contains(errs, "platform-standalone restore FILE --data-dir DIR") || !strings.Contains(errs, "platform-apiserver restore") {
		t.Errorf("without a server's program: exit code %d, %s", code, errs)
	}
	server := filepath.Join(dir, "platform-apiserver")
	script := "#!/bin/sh\nread word\necho \"$word $1 $2 $3 $4\"\necho why >&2\nexit 3\n"
	if err := os.WriteFile(server, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := run(nil); code != 1 || out != "archive restore --data-dir=/x y -- -\n" || errs != "why\n" {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	var path string
	var args []string
	if code, _, errs := run(func(p string, a, _ []string) error { path, args = p, a; return nil }); code != 0 {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if diff := cmp.Diff([]string{server, "restore", "--data-dir=/x y", "--", "-"}, args); diff != "" || path != server {
		t.Errorf("%s: %s", path, diff)
	}
}
