// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the API from outside: the whole standalone server in this process, on a real folder and a
// real port, with real clients. README.md lists the numbered points that tests refer to.
package integration

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
