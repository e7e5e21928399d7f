// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection tests the accounts that people link: a standalone server with its controllers, people with tokens of an OpenID
// provider, and an OAuth provider whose answers a test chooses.
package connection

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
