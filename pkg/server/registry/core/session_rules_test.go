// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestRules(t *testing.T) {
	coretest.Rules(t, "Session", [][3]string{
		{"default", `{}`, ""},
		{"type", `{sessionType: mail}`, "spec.sessionType: supported values"},
	})
}
