// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestSessionRules(t *testing.T) {
	coretest.Rules(t, "Session", [][3]string{
		{"default", `{}`, ""},
		{"type", `{sessionType: mail}`, "spec.sessionType: supported values"},
	})
}
