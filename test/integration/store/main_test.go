// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store tests what is kept: across restarts, backups, damage, and disks that are full or hang.
package store

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
