// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestSkillRules(t *testing.T) {
	coretest.Rules(t, "Skill", [][3]string{
		{"minimal", `{description: d, content: {inline: x}}`, ""},
		{"no text", `{description: d, content: {files: {a: b}}}`, "spec.content.inline: Required"},
		{"file above", `{description: d, content: {inline: x, files: {"../a": b}}}`, "spec.content.files[../a]: relative path"},
		{"absolute file", `{description: d, content: {inline: x, files: {"/a": b}}}`, "spec.content.files[/a]: relative path"},
		{"files", `{description: d, content: {inline: x, files: {a.md: b, a/b: c, a/c/d: e}}}`, ""},
		{"file and folder", `{description: d, content: {inline: x, files: {a: b, "a/b": c}}}`, `spec.content.files[a/b]: "a" is a file`},
		{"file above a folder", `{description: d, content: {inline: x, files: {a: b, "a/b/c": c}}}`, `spec.content.files[a/b/c]: "a" is a file`},
		{"the folder itself", `{description: d, content: {inline: x, files: {".": b}}}`, "spec.content.files[.]: "},
		{"no file", `{description: d, content: {inline: x, files: {"a/": b}}}`, "spec.content.files[a/]: "},
		{"long name", `{description: d, content: {inline: x, files: {"` + strings.Repeat("a", 256) + `": b}}}`, "spec.content.files[" + strings.Repeat("a", 256) + "]: at most 255 bytes"},
		{"longest name", `{description: d, content: {inline: x, files: {"d/` + strings.Repeat("a", 255) + `": b}}}`, ""},
		{"tag twice", `{description: d, content: {inline: x}, tags: [a, a]}`, "spec.tags[1]: Duplicate"},
	})
}

// TestSkillStatus: the status of a skill is written with its spec, whatever others say about it.
func TestSkillStatus(t *testing.T) {
	s := coretest.Start(t)
	check := func(o runtime.Object, generation int64) string {
		t.Helper()
		sk := o.(*v1alpha1.Skill)
		ready := meta.FindStatusCondition(sk.Status.Conditions, v1alpha1.ConditionReady)
		if sk.Status.Phase != v1alpha1.SkillReady || ready == nil || ready.Status != "True" || ready.ObservedGeneration != generation ||
			sk.Status.ObservedGeneration != generation || sk.Generation != generation {
			t.Errorf("generation %d: %+v", sk.Generation, sk.Status)
		}
		return sk.Status.ContentHash
	}
	first := check(s.MustApply("skills", `apiVersion: core.platform.ai/v1alpha1
kind: Skill
metadata: {name: s}
spec: {description: d, content: {inline: x}}
status: {phase: Error, contentHash: "sha256:0"}`), 1)
	update := func(path string, change func(*v1alpha1.Skill)) runtime.Object {
		t.Helper()
		o, err := s.Update(s.User(), path, "s", func(o runtime.Object) { change(o.(*v1alpha1.Skill)) })
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	stored := update("skills/status", func(sk *v1alpha1.Skill) {
		sk.Status = v1alpha1.SkillStatus{Phase: v1alpha1.SkillError, Conditions: sk.Status.Conditions}
	})
	if hash := check(stored, 1); hash != first {
		t.Errorf("the hash is %s instead of %s", hash, first)
	}
	same := update("skills", func(*v1alpha1.Skill) {})
	if was, is := stored.(*v1alpha1.Skill).ResourceVersion, same.(*v1alpha1.Skill).ResourceVersion; was != is {
		t.Errorf("an update that changes nothing was stored: %s, %s", was, is)
	}
	if hash := check(update("skills", func(sk *v1alpha1.Skill) { sk.Spec.Content.Inline = "y" }), 2); hash == first {
		t.Error("another text has the same hash")
	}
}
