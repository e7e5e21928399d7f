// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/platform-ai/platform/pkg/sparse"
)

// errorLog is the sink of a logger. Of errors with the same cause it logs one an interval, since in an outage each object of each
// controller fails again and again. Once ctx has ended, what it interrupts is no error: requests of a reconcile, and the lease, which
// is given up. Nobody can act on such a line, and one at each stop hides those that matter.
type errorLog struct {
	logr.LogSink
	ctx    context.Context //nolint:containedctx // of the controllers
	sparse *sparse.Log
}

// newErrorLog returns a logger for controllers that run until ctx ends.
func newErrorLog(ctx context.Context, log logr.Logger, lines *sparse.Log) logr.Logger {
	sink := log.GetSink()
	if s, ok := sink.(logr.CallDepthLogSink); ok {
		sink = s.WithCallDepth(1) // this type's own methods
	}
	return log.WithSink(errorLog{sink, ctx, lines})
}

func (s errorLog) Info(level int, msg string, keysAndValues ...any) {
	s.LogSink.Info(level, msg, keysAndValues...)
}

func (s errorLog) Error(err error, msg string, keysAndValues ...any) {
	if s.ctx.Err() != nil && err != nil && (errors.Is(err, context.Canceled) || err.Error() == leaderLost) {
		s.LogSink.Info(0, msg, append(keysAndValues, "reason", err.Error())...)
		return
	}
	if dropped, now := s.sparse.Due(err, msg); now {
		s.LogSink.Error(err, msg, append(keysAndValues, "alsoDropped", dropped)...)
	}
}

// leaderLost is the error of a manager whose lease ended, by itself or because it was given up. It has no type.
const leaderLost = "leader election lost"

func (s errorLog) WithValues(keysAndValues ...any) logr.LogSink {
	return errorLog{s.LogSink.WithValues(keysAndValues...), s.ctx, s.sparse}
}

func (s errorLog) WithName(name string) logr.LogSink {
	return errorLog{s.LogSink.WithName(name), s.ctx, s.sparse}
}
