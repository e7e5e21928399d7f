// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway tests gateways to chat systems: the door for their events, the ledgers, and the way from an event to its answer, on a
// server whose workers use a scripted model, with an adapter that speaks platform.gateway.v1 over TLS.
package gateway

import (
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestMain(m *testing.M) { standalone.Main(m) }
