// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

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
