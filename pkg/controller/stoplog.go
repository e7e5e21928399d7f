// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
)

// stopLog is the sink of a logger. Once ctx has ended, what it interrupts is no error: requests of a reconcile, and the lease, which is
// given up. Nobody can act on such a line, and one at each stop hides those that matter.
type stopLog struct {
	logr.LogSink
	ctx context.Context //nolint:containedctx // of the controllers
}

// newStopLog returns a logger for controllers that run until ctx ends.
func newStopLog(ctx context.Context, log logr.Logger) logr.Logger {
	sink := log.GetSink()
	if s, ok := sink.(logr.CallDepthLogSink); ok {
		sink = s.WithCallDepth(1) // this type's own methods
	}
	return log.WithSink(stopLog{sink, ctx})
}

func (s stopLog) Info(level int, msg string, keysAndValues ...any) {
	s.LogSink.Info(level, msg, keysAndValues...)
}

func (s stopLog) Error(err error, msg string, keysAndValues ...any) {
	if s.ctx.Err() != nil && err != nil && (errors.Is(err, context.Canceled) || err.Error() == leaderLost) {
		s.LogSink.Info(0, msg, append(keysAndValues, "reason", err.Error())...)
		return
	}
	s.LogSink.Error(err, msg, keysAndValues...)
}

// leaderLost is the error of a manager whose lease ended, by itself or because it was given up. It has no type.
const leaderLost = "leader election lost"

func (s stopLog) WithValues(keysAndValues ...any) logr.LogSink {
	return stopLog{s.LogSink.WithValues(keysAndValues...), s.ctx}
}

func (s stopLog) WithName(name string) logr.LogSink { return stopLog{s.LogSink.WithName(name), s.ctx} }
