// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/statuscode"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
)

// writer writes to the client. Each write and each flush is bounded in time. So a client that stops reading does not hold a
// stream and its installation forever, while a client that reads may take as long as it likes.
type writer struct {
	http.ResponseWriter
	status  *statuscode.Writer
	paced   *writetimeout.Writer
	control *http.ResponseController
	clock   clock.PassiveClock
	timeout time.Duration
	sent    int64 // bytes of the body
}

func newWriter(w http.ResponseWriter, r *http.Request, c clock.PassiveClock, timeout time.Duration) *writer {
	status := statuscode.NewWriter(w)
	out := &writer{ResponseWriter: status, status: status, paced: writetimeout.NewWriter(status, timeout), control: http.NewResponseController(w), clock: c, timeout: timeout}
	if r.ProtoMajor == 1 { // the last deadline of the previous request on this connection
		_ = out.control.SetWriteDeadline(time.Time{}) // writers of tests have none
	}
	return out
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.paced.Write(p)
	w.sent += int64(n)
	return n, err
}

func (w *writer) flush() error { return w.paced.FlushError() }

// finish sets a deadline for what the server sends after the handler.
func (w *writer) finish() { _ = w.control.SetWriteDeadline(w.clock.Now().Add(w.timeout)) }
