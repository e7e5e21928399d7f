// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowRedact     = "redaction, build log, one core"
	rowRedactPeer = "redaction, build log, beside the peer"
)

// redaction measures how much build-log text one core redacts per second of
// processor time, so that other load on the machine does not count.
func redaction(_ context.Context, b *bench) error {
	const size = 1 << 20
	text := logText(rand.New(rand.NewPCG(1, 2)), size)
	from, err := cpu()
	if err != nil {
		return err
	}
	rounds := 0
	for end := time.Now().Add(b.o.Window); rounds == 0 || time.Now().Before(end); rounds++ {
		if _, changed := redact.Text(text); changed {
			return fmt.Errorf("redaction changed text without secrets")
		}
	}
	to, err := cpu()
	if err != nil {
		return err
	}
	rate := float64(rounds) * size / 1e6 / (to - from).Seconds()
	if err := b.add(rowRedact, "MB/s", report.Higher, rate, 100, aim); err != nil {
		return err
	}
	return b.add(rowRedactPeer, "MB/s", report.Higher, rate, 1.1, peer)
}
