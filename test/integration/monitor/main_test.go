// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitor tests repository monitors, and the webhook that tells them what happens, on the stand-in for GitHub and on a real Gitea.
package monitor

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
