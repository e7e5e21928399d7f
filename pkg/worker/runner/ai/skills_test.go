// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestWriteSkills: the files of skills of one name stay apart, a later attempt finds the files as they were, and nothing is
// written through links that an earlier one left.
func TestWriteSkills(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	skill := func(namespace, name, path, text string) *v1alpha1.Skill {
		return &v1alpha1.Skill{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.SkillSpec{
			Content: v1alpha1.SkillContent{Files: map[string]string{path: text}},
		}}
	}
	all := []*v1alpha1.Skill{skill("n", "a", "bin/run", "#!/bin/sh\n"), skill("n", "b", "notes.md", "one"), skill("other", "b", "notes.md", "two")}
	check := func() {
		t.Helper()
		for path, want := range map[string]string{"a/bin/run": "#!/bin/sh\n", "n_b/notes.md": "one", "other_b/notes.md": "two"} {
			full := filepath.Join(dir, skillsFolder, path)
			got, err := os.ReadFile(full)
			if err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", path, got, err)
			}
			info, err := os.Stat(full)
			if err != nil || (info.Mode()&0o111 != 0) != (path == "a/bin/run") {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
			t.Errorf("outside of the folder: %v, %v", left, err)
		}
	}
	write := func() {
		t.Helper()
		if err := writeSkills(dir, all); err != nil {
			t.Fatal(err)
		}
	}
	write()
	check()
	replace := func(path string) {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
	}
	replace(filepath.Join(dir, skillsFolder, "a"))
	write()
	check()
	replace(filepath.Join(dir, skillsFolder))
	write()
	check()

	for _, path := range []string{"../../x", "/x"} {
		if err := writeSkills(dir, []*v1alpha1.Skill{skill("n", "a", path, "")}); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}
