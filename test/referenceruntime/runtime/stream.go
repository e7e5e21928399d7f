// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"net/http"
	"strconv"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
)

// quiet is how long a stream says nothing.
const quiet = 10 * time.Second

// resume answers with the rest of a stream. The caller holds mu, which is let go while the stream is written.
func (p *prompt) resume(w http.ResponseWriter, req *http.Request) error {
	var after uint64
	if text := req.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			return harness.Refuse(harness.BadRequest, "after must be a number")
		}
	}
	if first := p.lines[0].seq; after+1 < first {
		e := harness.Refuse(harness.EventsGone, "the first event that is kept is %d", first)
		e.FirstSeq = first
		return e
	}
	if p.r.broken("resume-from-start") {
		after = 0
	}
	p.r.mu.Unlock()
	defer p.r.mu.Lock()
	p.stream(w, req, after)
	return nil
}

// stream writes the events after one, until the prompt is settled or the client is gone.
func (p *prompt) stream(w http.ResponseWriter, req *http.Request, after uint64) {
	w.Header().Set("Content-Type", harness.TypeStream)
	out := http.NewResponseController(w)
	for {
		p.r.mu.Lock()
		lines, settled, change := p.lines, p.settled, p.change
		p.r.mu.Unlock()
		for _, l := range lines {
			if l.seq <= after {
				continue
			}
			if _, err := w.Write(l.text); err != nil {
				return
			}
			after = l.seq
		}
		if err := out.Flush(); err != nil || settled {
			return
		}
		alive := p.r.clock.NewTimer(quiet)
		select {
		case <-change:
		case <-alive.C():
			if _, err := w.Write([]byte(`{"type":"alive"}` + "\n")); err != nil {
				return
			}
		case <-req.Context().Done():
		}
		alive.Stop()
		if req.Context().Err() != nil {
			return
		}
	}
}
