// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/jsonsize"
)

type bodyKey struct{}

func bodyOf(ctx context.Context) *body {
	b, _ := ctx.Value(bodyKey{}).(*body)
	return b
}

// step is how many bytes of a body without a declared length are accounted for at a time.
const step = 64 << 10

// body is the body of one request as it arrives. Like any request body it has one reader at a time.
type body struct {
	gate     *Gate
	in       io.ReadCloser
	declared int64 // -1 if unknown
	conn     *http.ResponseController
	began    time.Time

	mu       sync.Mutex
	admitted bool
	ended    bool // read to its last byte
	failed   bool
	user     string
	limit    int64
	checks   checks
	read     int64
	taken    int64 // bytes taken from the budget
	holders  int   // the request itself, and each caller of Admit
	left     bool  // the request is over, and conn must not be used any more
	timer    *time.Timer
}

func (b *body) admit(user string, limit int64, c checks) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.admitted {
		return nil
	}
	if b.declared > limit {
		b.gate.refused.WithLabelValues("too_large").Inc()
		return TooLarge(limit)
	}
	n := max(b.declared, 0)
	if !b.gate.budget.Acquire(user, n) {
		b.gate.refused.WithLabelValues("budget").Inc()
		return busy()
	}
	b.admitted, b.user, b.limit, b.checks, b.taken = true, user, limit, c, n
	b.timer = time.AfterFunc(max(0, b.due().Sub(b.gate.o.Clock.Now())), b.expire)
	return nil
}

// setDeadline limits how long the client may take to send more. The generic server answers a request that takes too
// long while its handlers still run, and these may be here after the request is over. Connections in tests may not
// support deadlines.
func (b *body) setDeadline(t time.Time) {
	if !b.left {
		_ = b.conn.SetReadDeadline(t)
	}
}

// due is when the body must have arrived, with the additional time that the client's progress has earned.
func (b *body) due() time.Time {
	return b.began.Add(b.gate.o.Patience + time.Duration(b.read/rate)*time.Second)
}

// expire sets a deadline that has passed, if the body is due. A deadline that is set in advance would cost two messages to the
// connection's goroutine on HTTP/2, for each request.
func (b *body) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.left {
		return
	}
	if more := b.due().Sub(b.gate.o.Clock.Now()); more > 0 {
		b.timer.Reset(more)
		return
	}
	b.setDeadline(time.Unix(1, 0))
}

// Read reads like any body. It returns one byte beyond the limit, for readers that enforce the same limit with an
// error of their own.
func (b *body) Read(p []byte) (int, error) {
	room, err := b.room(len(p))
	if err != nil {
		return 0, err
	}
	n, err := b.in.Read(p[:room])
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read += int64(n)
	if err := b.count(p[:n]); err != nil {
		b.gate.refused.WithLabelValues("too_large").Inc()
		b.failed = true
		return 0, err
	}
	if text := b.checks.text; text != nil && (!text.add(p[:n]) || errors.Is(err, io.EOF) && !text.whole()) {
		b.failed = true
		return 0, notText()
	}
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		b.timer.Stop()
		if b.read > b.limit {
			err = nil // the next call refuses
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.gate.refused.WithLabelValues("slow").Inc()
		b.failed, err = true, slow(b.gate.o.Patience)
	case err != nil:
		b.failed = true
	}
	return n, err
}

// count counts the values of the next part, and refuses too many.
func (b *body) count(part []byte) error {
	values := b.checks.values
	if values == nil {
		return nil
	}
	values.Add(part)
	switch {
	case b.checks.object && values.Exceeds(jsonsize.Object):
		return TooMany()
	case values.Values > maxValues && b.read > shortJSON:
		return tooMany()
	}
	return nil
}

// room returns how many bytes may be read now.
func (b *body) room(want int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.admitted:
		return 0, errClosed
	case b.read > b.limit:
		b.gate.refused.WithLabelValues("too_large").Inc()
		b.failed = true
		return 0, TooLarge(b.limit)
	}
	want = int(min(int64(want), b.limit+1-b.read))
	if b.declared < 0 && b.read+int64(want) > b.taken {
		want = min(want, step)
		if more := b.read + step - b.taken; more > 0 {
			if !b.gate.budget.Acquire(b.user, more) {
				b.gate.refused.WithLabelValues("budget").Inc()
				b.failed = true
				return 0, busy()
			}
			b.taken += more
		}
	}
	return want, nil
}

// Close does nothing. The listener closes the underlying body, and reads its rest if that is short.
func (*body) Close() error { return nil }

func (b *body) hold() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders++
	return sync.OnceFunc(b.drop)
}

// drop releases one holder. The last one returns the body's bytes to the budget.
func (b *body) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holders--; b.holders == 0 && b.taken > 0 {
		b.gate.budget.Release(b.user, b.taken)
		b.taken = 0
	}
}

// end bounds how long the listener waits for the rest of a body that was not read.
func (b *body) end() {
	b.mu.Lock()
	if !b.ended {
		b.setDeadline(b.gate.o.Clock.Now().Add(refusedPatience))
	}
	b.left = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.drop()
}

// refused reports whether the rest of the body is unwanted.
func (b *body) refused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ended && (!b.admitted || b.failed)
}

// writer answers a request with a body. If the body is refused, an HTTP/1.1 connection is closed after the answer,
// because the listener would otherwise read 256 KiB of the body before it answers.
type writer struct {
	http.ResponseWriter
	body  *body
	http1 bool
}

func (w *writer) WriteHeader(code int) {
	if w.http1 && code >= http.StatusOK && w.body.refused() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// CloseNotify is for handlers that ask for it; contexts do the same.
func (w *writer) CloseNotify() <-chan bool {
	if n, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // k8s.io/apiserver asks every writer for it
		return n.CloseNotify()
	}
	return make(chan bool)
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
