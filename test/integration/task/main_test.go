// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task tests tasks: how they run and end, alone, in sessions, as forks, and as trees of agents that coordinate.
package task

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
