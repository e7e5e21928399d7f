// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"k8s.io/utils/clock"
)

// Repeat calls write until it succeeds, fails for good, the server has failed over it CallFaults times, or ctx ends, with
// growing pauses and with the pauses that the server asks for. The server must recognise a repeated write.
func Repeat(ctx context.Context, c clock.Clock, write func(context.Context) error) error {
	faults := Faults{Most: CallFaults}
	for pause := firstTry; ; pause = min(2*pause, longTry) {
		err := write(ctx)
		if err == nil || !faults.Again(err) || ctx.Err() != nil {
			return err
		}
		if !Sleep(ctx, c, max(jitter(pause), RetryAfter(err))) {
			return err
		}
	}
}
