// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestSkillRules(t *testing.T) {
	coretest.Rules(t, "Skill", [][3]string{
		{"minimal", `{description: d, content: {inline: x}}`, ""},
		{"no text", `{description: d, content: {files: {a: b}}}`, "spec.content.inline: Required"},
		{"file above", `{description: d, content: {inline: x, files: {"../a": b}}}`, "spec.content.files[../a]: relative path"},
		{"absolute file", `{description: d, content: {inline: x, files: {"/a": b}}}`, "spec.content.files[/a]: relative path"},
		{"tag twice", `{description: d, content: {inline: x}, tags: [a, a]}`, "spec.tags[1]: Duplicate"},
	})
}
