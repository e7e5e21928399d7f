// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"
)

// Each cause gets one line per interval, which counts the lines that were left out; other causes are not affected.
func TestOneLinePerCauseAndInterval(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	now := clocktesting.NewFakePassiveClock(time.Now())
	l := New(now)
	printer := l.Logger(ctx)
	for n := range 1000 {
		l.Error(ctx, errors.New("bad token"), "A caller is not known")
		printer.Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", n)
		printer.Printf("http: superfluous response.WriteHeader call")
	}
	text := func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
	if n := strings.Count(text(), "\n"); n != 3 {
		t.Fatalf("%d lines:\n%s", n, text())
	}
	now.SetTime(now.Now().Add(Interval))
	l.Error(ctx, errors.New("bad token"), "A caller is not known")
	if n := strings.Count(text(), "\n"); n != 4 || !strings.Contains(text(), "alsoDropped=999") {
		t.Errorf("%d lines:\n%s", n, text())
	}
}

// TestWhatClientsChooseIsNoCause: paths, names and numbers in an error do not make it another cause.
func TestWhatClientsChooseIsNoCause(t *testing.T) { //nolint:paralleltest // it replaces the handlers of the process
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	handlers := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = handlers }()
	New(clocktesting.NewFakePassiveClock(time.Now())).HandleErrors()
	for n := range 1000 {
		utilruntime.HandleErrorWithContext(ctx, fmt.Errorf("Get \"https://example.com/%d\": context canceled", n), "Unhandled Error")
		utilruntime.HandleErrorWithContext(ctx, fmt.Errorf("user %q at /no/such/%d was refused by rule %d", fmt.Sprint("u", n), n, n), "Unhandled Error")
		utilruntime.HandleErrorWithContext(ctx, nil, "Timeout or abort while handling", "URI", fmt.Sprint("/", n))
	}
	text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d lines:\n%.2000s", n, text)
	}
}

// TestClientsThatLeave: what fails because a client left is no error; what fails for another reason is one.
func TestClientsThatLeave(t *testing.T) { //nolint:paralleltest // it replaces the handlers of the process
	handlers := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = handlers }()
	left, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithTimeout(t.Context(), 0) // over at once: what the handler is told then is the point
	defer end()
	for i, tc := range []struct {
		ctx   context.Context // of the request
		err   error
		about []any
		level string
	}{
		{left, nil, []any{"method", "GET"}, "INFO"},
		{left, nil, []any{"path", "/", "result", nil}, "INFO"},
		{left, nil, []any{"path", "/", "result", "a panic"}, "ERROR"},
		{left, errors.New("the store is damaged"), nil, "ERROR"},
		{late, nil, nil, "ERROR"},
		{t.Context(), nil, nil, "ERROR"},
		{t.Context(), errors.New("apiserver was unable to write a application/json response: http2: stream closed"), nil, "INFO"},
		{t.Context(), errors.New("apiserver was unable to write a application/json response: http: Handler timeout"), nil, "ERROR"},
		{t.Context(), errors.New("http2: stream closed: and what a client chose"), nil, "ERROR"},
		{t.Context(), errors.New("FinishRequest: post-timeout activity - time-elapsed: 6.5ms, panicked: false, err: <nil>, panic-reason: <nil>"), nil, "INFO"},
		{t.Context(), errors.New("FinishRequest: post-timeout activity - time-elapsed: 6.5ms, panicked: false, err: the store is closed, panic-reason: <nil>"), nil, "ERROR"},
		{t.Context(), errors.New("FinishRequest: post-timeout activity - time-elapsed: 6.5ms, panicked: true, err: <nil>, panic-reason: x"), nil, "ERROR"},
	} {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		New(clocktesting.NewFakePassiveClock(time.Now())).HandleErrors()
		utilruntime.HandleErrorWithContext(klog.NewContext(tc.ctx, logger), tc.err, "Unhandled Error", tc.about...)
		if text := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.HasPrefix(text, tc.level) {
			t.Errorf("%d: want %s: %s", i, tc.level, text)
		}
	}
}

// TestManyCauses: however many causes there are, the lines of an interval are bounded, and the log recovers in the next one.
func TestManyCauses(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	now := clocktesting.NewFakePassiveClock(time.Now())
	l := New(now)
	lines := func() int { return strings.Count(logger.GetSink().(ktesting.Underlier).GetBuffer().String(), "\n") }
	for n := range 10 * maxCauses {
		l.Error(ctx, errors.New("x"), fmt.Sprint("cause ", n))
	}
	if n := lines(); n != maxCauses+1 {
		t.Fatalf("%d lines", n)
	}
	now.SetTime(now.Now().Add(Interval))
	before := lines()
	l.Error(ctx, errors.New("x"), "another cause")
	l.Error(ctx, errors.New("x"), "one more cause")
	if n := lines() - before; n != 2 {
		t.Errorf("%d lines of two causes", n)
	}
}
