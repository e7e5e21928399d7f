// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestMemoryProposalRules(t *testing.T) {
	coretest.Rules(t, "MemoryProposal", [][3]string{
		{"minimal", `{title: t}`, ""},
		{"no title", `{content: x}`, "spec.title: Required"},
		{"blank title", `{title: " "}`, "spec.title: must not be blank"},
		{"other type", `{title: t, type: habit}`, ""},
		{"skill without a name", `{title: t, type: skill}`, "spec.skillName: Required"},
	})
}
