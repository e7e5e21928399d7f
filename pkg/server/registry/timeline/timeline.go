// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timeline answers requests for pages and streams of execution events. Positions in a task's timeline are the
// seq of the task's stream; positions in a session's timeline are the session's cursor.
//
// A page is a part of what is stored. A stream (server-sent events) sends what is stored after a position and then
// every event as it is committed. Its frames:
//
//	id: 7                          an event; its data is the event without
//	event: execution_event         apiVersion, kind, metadata and dedupKey
//	data: {…}
//
//	id: 9                          the task has ended and everything stored was sent,
//	event: stream_complete         or the task (TaskDeleted) or session (SessionDeleted)
//	data: {"lastSeq":9,"type":…}   is gone; then the stream ends
//
//	id: 5                          events are no longer kept; the next ones follow them
//	event: gap
//	data: {"fromSeq":1,"toSeq":5,"reason":"retention"}
//
//	id: 0                          the stream has not reached the position that was
//	event: gap                     asked for; it begins anew
//	data: {…,"reason":"ahead"}
//
//	event: error                   the server gives up, or the caller may not read
//	                               on (403); then the stream ends
//	data: {"code":429,"message":…}
//
//	: heartbeat                    at most Options.Heartbeat after the last frame
//
// Each frame but an error has the UID of the object in streamUID of its data. A client that resumes compares it, because the name may
// have gone to another object meanwhile, whose positions mean other events.
//
// A client resumes with the last id it received, either as the query parameter after or as the header Last-Event-ID.
// If both are given, the header counts: a browser that reconnects repeats the URL it started with and adds the id it
// has received since.
//
// A client that reconnects with the header and has received everything of a finished task gets 204, which keeps a browser from
// connecting again; with the parameter, it gets stream_complete again.
//
// The parameters tasks and sessions add those of other tasks and sessions to a stream; see Together. With tree=true a
// stream has the events of a task and of everything below it, in one order, and its positions are resource versions.
//
// A stream ends after the terminal event of the task and what is stored after it. The stream of a task that is being deleted
// goes on until the task is gone.
//
// A stream that ends without stream_complete was cut off, either by the server's shutdown or because the client did
// not read fast enough. No event is lost by that: the client can resume.
//
// A stream is an eventlog.Tail: it reads what is stored, and then each commit as it is published. All events that are ready
// at once are sent with one flush. kubectl get --raw on the native path returns the same bytes as the REST path.
package timeline

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Options of a Server. Log and Clock are required.
type Options struct {
	// Log keeps the events.
	Log *eventlog.Log
	// Clock times heartbeats.
	Clock clock.WithDelayedExecution
	// Heartbeat is the time between two heartbeats, at most a third of WriteTimeout. Default: 15 seconds.
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take to accept what was sent. Default: writetimeout.Server.
	WriteTimeout time.Duration
	// MaxLag is how many events a stream that was up to date may fall behind. Default: 250000, the same as for a
	// watch.
	MaxLag int64
	// Registerer, if set, receives the metrics. Servers of one process share them.
	Registerer prometheus.Registerer
}

func (o *Options) ensureDefaults() {
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = writetimeout.Server
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	// A client that no longer reads is found when something is written, so this happens a few times while it may be silent.
	o.Heartbeat = min(o.Heartbeat, o.WriteTimeout/3)
	if o.MaxLag <= 0 {
		o.MaxLag = 250_000
	}
}

// Server answers pages and streams. Its methods may be called concurrently.
type Server struct {
	opts    Options
	metrics *metrics
	buffers sync.Pool // of *[]byte; an idle stream holds no buffer
	others  Others    // nil if streams have one timeline
	trees   Trees     // nil if they are not of trees

	mu   sync.Mutex // guards open
	open map[types.UID]map[*context.CancelCauseFunc]struct{}
}

// New makes a Server.
func New(o Options) (*Server, error) {
	o.ensureDefaults()
	m, err := metric.Register(o.Registerer, newMetrics())
	if err != nil {
		return nil, err
	}
	return &Server{
		opts: o, metrics: m,
		buffers: sync.Pool{New: func() any { return new([]byte) }},
		open:    map[types.UID]map[*context.CancelCauseFunc]struct{}{},
	}, nil
}

// Timeline identifies the task or session that a page or a stream is about.
type Timeline struct {
	// Type is StreamTask or StreamSession.
	Type            v1alpha1.StreamType
	Namespace, Name string
	UID             types.UID
	// Reload reads the object again. It fails if the object is gone or was replaced.
	Reload func(ctx context.Context) error
	// Allowed, if set, checks whether the caller may still read the stream. It is called before events are sent and
	// with each heartbeat. Its error ends the stream; the client sees a Forbidden error as it is.
	Allowed func(ctx context.Context) error
	// Leaving, if set, reports whether the object is being deleted. The stream of such an object goes on until the object
	// is gone, so that its last frame says so.
	Leaving func(ctx context.Context) bool
}

// allowed calls Allowed, if it is set.
func (t *Timeline) allowed(ctx context.Context) error {
	if t.Allowed == nil {
		return nil
	}
	return t.Allowed(ctx)
}

// leaving calls Leaving, if it is set.
func (t *Timeline) leaving(ctx context.Context) bool { return t.Leaving != nil && t.Leaving(ctx) }

func (t *Timeline) session() bool { return t.Type == v1alpha1.StreamSession }

// resource returns the resource of the object.
func (t *Timeline) resource() string {
	if t.session() {
		return "sessions"
	}
	return "tasks"
}

// deleted returns the type of the last frame if the object is gone.
func (t *Timeline) deleted() v1alpha1.EventType {
	if t.session() {
		return event.SessionDeleted
	}
	return event.TaskDeleted
}

func (t *Timeline) stream() eventlog.Stream {
	return eventlog.Stream{Namespace: t.Namespace, Task: t.Name, UID: t.UID}
}

// Deleted ends the streams of an object that is gone. Call it after the object has left the store.
func (s *Server) Deleted(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for end := range s.open[uid] {
		(*end)(errGone)
	}
}

// enter registers end to be called by Deleted, until leave is called.
func (s *Server) enter(uid types.UID, end context.CancelCauseFunc) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[uid] == nil {
		s.open[uid] = map[*context.CancelCauseFunc]struct{}{}
	}
	s.open[uid][&end] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open[uid], &end)
		if len(s.open[uid]) == 0 {
			delete(s.open, uid)
		}
	}
}
