// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/pkg/sse"
)

// sendAt is the number of bytes of frames after which they are sent.
const sendAt = 64 << 10

// heartbeat is the longest time without a byte on a stream.
const heartbeat = 10 * time.Second

// stream answers a turn as server-sent events. What is refused before the turn begins is an ordinary error.
func (r *Resource) stream(ctx context.Context, turn chat.Request, answer resource.Answer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := r.sender(answer.Writer)
	turn.Observe = out.observe
	t, err := r.o.Service.Begin(ctx, turn)
	if err != nil {
		answer.Error(err)
		return
	}
	if turn.Spec.Background {
		r.follow(ctx, t.Start(), out) //nolint:contextcheck // a background turn outlives the request
		return
	}
	defer t.Close()
	out.begin()
	defer r.beat(ctx, cancel, out)()
	_, _ = t.Run() //nolint:contextcheck // the turn has this context; its last frame reports an error
}

// Frames answers with the frames of the newest background turn of a session, until the turn ends. The parameter after,
// or the header Last-Event-ID, is the number of the last frame that the client has. A client that reconnects by itself gets 204
// when it has all of a turn that is over.
func (r *Resource) Frames(s *v1alpha1.Session, respond rest.Responder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		after, resumed, err := timeline.StreamPosition(req)
		if err != nil {
			respond.Error(err)
			return
		}
		frames, err := r.o.Service.Attach(s, after)
		if err != nil {
			respond.Error(err)
			return
		}
		if resumed && frames.Over() {
			w.WriteHeader(http.StatusNoContent) // or a browser would reconnect forever
			return
		}
		r.follow(req.Context(), frames, r.sender(w))
	})
}

// follow sends the frames of a background turn. The turn goes on when the client leaves.
func (r *Resource) follow(ctx context.Context, frames *chat.Stream, out *sender) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out.begin()
	defer r.beat(ctx, cancel, out)()
	for {
		page, err := frames.Next(ctx)
		if err != nil {
			return
		}
		var all []byte
		for _, f := range page {
			all = sse.Append(all, strconv.FormatInt(f.Seq, 10), f.Type, f.Data)
			if len(all) >= sendAt {
				if out.send(all) != nil {
					return
				}
				all = all[:0]
			}
		}
		if len(all) > 0 && out.send(all) != nil {
			return
		}
	}
}

// beat sends heartbeats until the func that it returns is called. A client that does not read them ends the request.
func (r *Resource) beat(ctx context.Context, leave func(), out *sender) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { // ends with ctx
		ticker := r.o.Clock.NewTicker(min(heartbeat, r.o.WriteTimeout/3))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				if out.send(sse.AppendComment(nil, "heartbeat")) != nil {
					leave()
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		beats.Wait()
	}
}

func (r *Resource) sender(w http.ResponseWriter) *sender {
	return &sender{out: writetimeout.NewWriter(w, r.o.WriteTimeout)}
}

// sender writes to a client that may be slow or gone. It is safe for concurrent use.
type sender struct {
	out *writetimeout.Writer

	mu     sync.Mutex // guards what follows, and writing
	failed error
}

// begin sends the header.
func (s *sender) begin() { sse.Begin(s.out) }

// observe sends a frame of an ordinary turn.
func (s *sender) observe(f chat.Frame) error {
	data, err := json.Marshal(f.Envelope)
	if err != nil {
		return fmt.Errorf("frame %s: %w", f.Type, err)
	}
	return s.send(sse.Append(nil, strconv.FormatInt(f.Seq, 10), f.Type, data))
}

// send writes a frame and flushes it. After an error nothing more is written.
func (s *sender) send(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if _, s.failed = s.out.Write(frame); s.failed == nil {
		s.failed = s.out.FlushError()
	}
	return s.failed
}
