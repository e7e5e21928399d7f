// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"errors"
	"strings"
	"testing"
	"time"

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
	for range 1000 {
		l.Error(ctx, errors.New("bad token"), "A caller is not known")
		printer.Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", 1)
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
