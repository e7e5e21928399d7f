// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event tests what runs tell: events, streams, traces and logs, and the usage of models that is counted from them.
package event

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
