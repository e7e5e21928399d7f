// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestCommandArtifacts: the files that a task left are listed, and saved as they are. A file that exists is kept.
func TestCommandArtifacts(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "a")
	const name, content = "notes one.bin", "line\n\x00\xff\xfe end"
	worker.With("Content-Type", "application/x-notes").Post("/internal/v1/artifacts/default/a/notes%20one.bin", content).Want(t, http.StatusCreated)
	worker.Post("/internal/v1/artifacts/default/a/report.html", "<p>hi").Want(t, http.StatusCreated)
	run := func(code int, args ...string) (out, errs string) {
		t.Helper()
		out, errs, got := standalone.Command(t.Context(), s.Kubeconfig, args...)
		if got != code {
			t.Errorf("platform %q: exit code %d: %s%s", args, got, out, errs)
		}
		return out, errs
	}
	out, _ := run(0, "task", "artifacts", "a")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[0]), " ") != "NAME SIZE TYPE AGE" || !strings.HasPrefix(lines[1], name+" ") ||
		!strings.Contains(lines[1], " 12 ") || !strings.Contains(lines[1], "application/x-notes") || !strings.HasPrefix(lines[2], "report.html ") {
		t.Errorf("table:\n%s", out)
	}
	if out, _ := run(0, "task", "artifacts", "a", "-o", "name"); out != name+"\nreport.html\n" {
		t.Errorf("names: %q", out)
	}
	if out, _ := run(0, "task", "artifacts", "a", "-o", "json"); !strings.Contains(out, `"filename": "report.html"`) {
		t.Errorf("JSON: %s", out)
	}
	if out, _ := run(0, "task", "download", "a", name, "-o", "-"); out != content {
		t.Errorf("downloaded to standard output: %q", out)
	}
	to := filepath.Join(t.TempDir(), "saved")
	if out, errs := run(0, "task", "download", "a", name, "-o", to); !strings.Contains(out+errs, "12 bytes") {
		t.Errorf("said %q %q", out, errs)
	}
	if _, errs := run(1, "task", "download", "a", "report.html", "-o", to); !strings.Contains(errs, "exists already; name another file with --output") {
		t.Errorf("a file that exists: %q", errs)
	}
	if got := kit.Must[[]byte](t)(os.ReadFile(to)); string(got) != content {
		t.Errorf("saved %q", got)
	}
	if _, errs := run(1, "task", "download", "a", "none", "-o", "-"); !strings.Contains(errs, "not found") {
		t.Errorf("a file that there is not: %q", errs)
	}
}
