// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat tests chats.
package chat

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
