// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pullrequest tests pull requests of what tasks change, on a real code host.
package pullrequest

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
