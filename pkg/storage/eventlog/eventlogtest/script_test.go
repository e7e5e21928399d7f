// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/platform-ai/platform/test/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScripts(t *testing.T) { Run(t, "testdata") }

// Each seed is a script of its own; a failure prints it.
func TestRandom(t *testing.T) {
	seeds := uint64(4)
	if kit.Offered(kit.Minutes) {
		seeds = 100
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { Random(t, seed, 150) })
	}
}
