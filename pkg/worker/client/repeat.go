// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// Repeat calls write until it succeeds, fails for good, or ctx ends, with growing pauses and with the pauses that the
// server asks for. The server must recognise a repeated write.
func Repeat(ctx context.Context, c clock.Clock, write func(context.Context) error) error {
	for pause := firstTry; ; pause = min(2*pause, longTry) {
		err := write(ctx)
		if err == nil || !Temporary(err) || ctx.Err() != nil {
			return err
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		if !Sleep(ctx, c, max(jitter(pause), min(time.Duration(seconds)*time.Second, maxRetryAfter))) {
			return err
		}
	}
}
