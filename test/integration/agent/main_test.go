// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent tests what an agent works with: models, tools with their policies and approvals, memory, transaction tokens.
package agent

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
