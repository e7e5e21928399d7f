// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// mainFiles are the files on main, and workFiles those of a branch in which files were added, changed, removed and renamed. One line that
// was added looks like a line of a header.
var (
	mainFiles = map[string]string{
		"gone.txt": "gone\n", "kept name.txt": "one\ntwo\n", "old.txt": "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\n",
	}
	workFiles = map[string]string{
		"added.txt": "new\n", "image.bin": "\x00\x01\x02", "kept name.txt": "one\n++ b/two\n",
		"new.txt": "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nlast line\n", `qu"ote.txt`: "quoted\n",
	}
)

// workChanges are the files that differ, as each host must describe them, and workDiff is what git says about them.
var (
	workChanges = []codehost.File{
		{Name: "added.txt", Status: "added", Additions: 1, Patch: "@@ -0,0 +1 @@\n+new"},
		{Name: "gone.txt", Status: "removed", Deletions: 1, Patch: "@@ -1 +0,0 @@\n-gone"},
		{Name: "image.bin", Status: "added"},
		{Name: "kept name.txt", Status: "modified", Additions: 1, Deletions: 1, Patch: "@@ -1,2 +1,2 @@\n one\n-two\n+++ b/two"},
		{Name: "new.txt", Status: "renamed", Additions: 1, Deletions: 1, Patch: "@@ -6,4 +6,4 @@ line 5\n line 6\n line 7\n line 8\n-line 9\n+last line"},
		{Name: `qu"ote.txt`, Status: "added", Additions: 1, Patch: "@@ -0,0 +1 @@\n+quoted"},
	}
	workDiff = strings.Join([]string{
		"diff --git a/added.txt b/added.txt", "new file mode 100644", "index 0000000..3e75765", "--- /dev/null", "+++ b/added.txt",
		"@@ -0,0 +1 @@", "+new",
		"diff --git a/gone.txt b/gone.txt", "deleted file mode 100644", "index 286c5f5..0000000", "--- a/gone.txt", "+++ /dev/null",
		"@@ -1 +0,0 @@", "-gone",
		"diff --git a/image.bin b/image.bin", "new file mode 100644", "index 0000000..8352675", "Binary files /dev/null and b/image.bin differ",
		"diff --git a/kept name.txt b/kept name.txt", "index 814f4a4..fc440f7 100644", "--- a/kept name.txt\t", "+++ b/kept name.txt\t",
		"@@ -1,2 +1,2 @@", " one", "-two", "+++ b/two",
		"diff --git a/old.txt b/new.txt", "similarity index 84%", "rename from old.txt", "rename to new.txt", "index 5578ccb..07dee78 100644",
		"--- a/old.txt", "+++ b/new.txt", "@@ -6,4 +6,4 @@ line 5", " line 6", " line 7", " line 8", "-line 9", "+last line",
		`diff --git "a/qu\"ote.txt" "b/qu\"ote.txt"`, "new file mode 100644", "index 0000000..e57b3fb", "--- /dev/null", `+++ "b/qu\"ote.txt"`,
		"@@ -0,0 +1 @@", "+quoted", "",
	}, "\n")
)

// TestFiles: the files that a pull request changes, and the diff.
func TestFiles(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){"files": files})
}

func files(t *testing.T, p place) {
	p.change(t, "work")
	h := p.open(t, p.readOnly)
	n := p.pull(t, "work", codehost.Clean).Number
	all, more, err := h.Files(t.Context(), n)
	if err != nil || more || !slices.Equal(all, workChanges) {
		t.Errorf("%t %v\n%+v\nwant\n%+v", more, err, all, workChanges)
	}
	c, err := h.Change(t.Context(), n)
	diff, more := c.Diff, c.MoreDiff
	if err != nil || more || c.MoreFiles || !slices.Equal(c.Files, workChanges) || !strings.HasPrefix(diff, "diff --git a/added.txt b/added.txt\nnew file mode 100644\n") || !strings.HasSuffix(diff, "@@ -0,0 +1 @@\n+quoted\n") ||
		!strings.Contains(diff, "\n-two\n+++ b/two\n") || !strings.Contains(diff, "\nrename from old.txt\nrename to new.txt\n") {
		t.Errorf("%t %v\n%s", more, err, diff)
	}
	const gone = 4711
	_, _, filesGone := h.Files(t.Context(), gone)
	_, changeGone := h.Change(t.Context(), gone)
	refused(t, codehost.ErrNotFound, map[string]error{"files": filesGone, "change": changeGone})

	// More files than a page of either host has.
	for range 23 {
		p.push(t, "many")
	}
	n = p.pull(t, "many", codehost.Clean).Number
	if all, more, err := h.Files(t.Context(), n); err != nil || more || len(all) != 23 || all[0].Name != "file-2" && all[0].Name != "file-1" {
		t.Errorf("%d files %t %v", len(all), more, err)
	}
	kit.Must[codehost.PullRequest](t)(h.PullRequest(t.Context(), n))
}
