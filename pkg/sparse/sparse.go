// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sparse limits log lines that clients, or an outage, can trigger repeatedly. It logs one line per cause and interval, with the
// number of lines that were left out since the previous one. Errors of authentication are among them, for every listener and path, and
// errors of controllers, each of whose objects fails again and again in an outage.
package sparse

import (
	"context"
	"errors"
	"log"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// Interval is the time between two lines with the same cause.
	Interval = 10 * time.Second
	// maxCauses bounds the number of causes in memory. Causes are few and fixed by the code, except those taken from
	// the first words of what a library prints. All further causes of an interval count as one.
	maxCauses = 200
	// causeWords is the number of words of a library's line that identify its cause.
	causeWords = 4
	// otherCauses is the name of all causes for which there is no room.
	otherCauses = ""
)

// Log is a sparse log. All methods may be called concurrently.
type Log struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	causes map[string]*cause
}

type cause struct {
	last    time.Time
	dropped int
}

// New makes a log.
func New(c clock.PassiveClock) *Log { return &Log{clock: c, causes: map[string]*cause{}} }

// Error logs an error under its message, which is the cause and a constant, to the logger of ctx.
func (l *Log) Error(ctx context.Context, err error, msg string, keysAndValues ...any) {
	if dropped, now := l.due(msg); now {
		klog.FromContext(ctx).Error(err, msg, append(keysAndValues, "alsoDropped", dropped)...)
	}
}

// Due reports whether a line may be logged now, and how many of the same cause were dropped since the last one. The cause is the
// message, which is a constant, and the first words of the error.
func (l *Log) Due(err error, msg string) (dropped int, now bool) {
	if err != nil {
		msg += " " + firstWords(err.Error())
	}
	return l.due(msg)
}

// Info logs a message, which is the cause and a constant, to the logger of ctx.
func (l *Log) Info(ctx context.Context, msg string, keysAndValues ...any) {
	if dropped, now := l.due(msg); now {
		klog.FromContext(ctx).Info(msg, append(keysAndValues, "alsoDropped", dropped)...)
	}
}

// due reports whether a line of a cause may be logged now, and how many were dropped since the last one.
func (l *Log) due(name string) (dropped int, now bool) {
	at := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.causes[name]
	if c == nil {
		if len(l.causes) >= maxCauses {
			maps.DeleteFunc(l.causes, func(_ string, c *cause) bool { return at.Sub(c.last) >= Interval })
		}
		if len(l.causes) >= maxCauses {
			name = otherCauses
		}
		if c = l.causes[name]; c == nil {
			c = &cause{}
		}
		l.causes[name] = c
	}
	if !c.last.IsZero() && at.Sub(c.last) < Interval {
		c.dropped++
		return 0, false
	}
	dropped, c.dropped, c.last = c.dropped, 0, at
	return dropped, true
}

// Logger returns a logger for code that prints lines, such as http.Server. The first words of a line are its cause.
func (l *Log) Logger(ctx context.Context) *log.Logger { return log.New(lines{l, ctx}, "", 0) }

type lines struct {
	log *Log
	ctx context.Context //nolint:containedctx // it carries the logger
}

func (w lines) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if dropped, now := w.log.due(firstWords(text)); now {
		klog.FromContext(w.ctx).Info("HTTP server", "message", text, "alsoDropped", dropped)
	}
	return len(p), nil
}

// firstWords returns the first words of a line that the library itself wrote. Those with other characters than letters are
// addresses, paths, names and numbers, which clients choose.
func firstWords(text string) string {
	var words []string
	for w := range strings.FieldsSeq(text) {
		w = strings.Trim(w, ".,:;()-")
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }) {
			continue
		}
		if words = append(words, w); len(words) == causeWords {
			break
		}
	}
	return strings.Join(words, " ")
}

// HandleErrors logs here the errors that Kubernetes libraries report instead of returning. That a client left before it had its
// answer is no error: kube-apiserver does so each time it looks whether this server is there. A program calls HandleErrors once,
// before it starts anything.
func (l *Log) HandleErrors() {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(ctx context.Context, err error, msg string, keysAndValues ...any) {
			dropped, now := l.Due(err, msg)
			if !now {
				return
			}
			keysAndValues = append(keysAndValues, "alsoDropped", dropped)
			if clientLeft(ctx, err, keysAndValues) {
				klog.FromContext(ctx).Info("A client left before it had its answer", append(keysAndValues, "message", msg, "cause", err)...)
				return
			}
			if endedLate(err) {
				klog.FromContext(ctx).Info("A request ended after it was given up", append(keysAndValues, "message", err.Error())...)
				return
			}
			klog.FromContext(ctx).Error(err, msg, keysAndValues...)
		},
	}
}

// endedLate reports whether a handler ended, without a fault, after its request was given up, as at each stop of the server: those whose
// clients wait end then.
func endedLate(err error) bool {
	if err == nil || !strings.HasPrefix(err.Error(), "FinishRequest: post-timeout activity") {
		return false
	}
	return strings.Contains(err.Error(), "panicked: false, err: <nil>,") || strings.Contains(err.Error(), "panicked: false, err: context canceled,")
}

// clientLeft reports whether something failed because the client of a request is gone. Handlers that were given up are reported
// with the context of their request, and with what they panicked with, if they did; failed writes without it, as text.
func clientLeft(ctx context.Context, err error, keysAndValues []any) bool {
	if err == nil {
		at := slices.Index(keysAndValues, any("result"))
		panicked := at >= 0 && at+1 < len(keysAndValues) && keysAndValues[at+1] != nil
		return errors.Is(ctx.Err(), context.Canceled) && !panicked
	}
	return slices.ContainsFunc([]string{"http2: stream closed", "client disconnected", "broken pipe", "connection reset by peer"}, func(text string) bool {
		return strings.HasSuffix(err.Error(), text)
	})
}
