// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host tests what any API server offers, on objects of the platform and of the host: watches, patches, tables, policies,
// limits, the process itself.
package host

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
