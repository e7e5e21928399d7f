// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest tests the REST paths.
package rest

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
