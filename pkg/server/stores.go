// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// lockPoll is how often a start that waits for the store's lock tries again.
const lockPoll = 5 * time.Millisecond

// Stores are what a server keeps on disk.
type Stores struct {
	// Engine is the one database below all others.
	Engine engine.Engine
	// Objects are the kept kinds.
	Objects *object.DB
	// Events are the streams of tasks.
	Events *eventlog.Log
	// Blobs are results, logs and artifacts.
	Blobs *blob.Store
	// Transcripts are what was said in sessions.
	Transcripts *transcript.Store

	closing  sync.Once
	closeErr error // set by closing
}

// OpenStores opens the stores, and makes them in an empty folder. While another process has them open it waits
// LockTimeout; the error is then engine.ErrLocked.
func (o *Options) OpenStores(ctx context.Context) (_ *Stores, err error) {
	st := &Stores{}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.Close())
		}
	}()
	if st.Engine, err = o.openEngine(ctx); err != nil {
		return nil, err
	}
	if st.Objects, err = object.Open(ctx, st.Engine, object.Options{Clock: o.Clock, Registerer: o.Metrics}); err != nil {
		return nil, err
	}
	if st.Events, err = eventlog.Open(ctx, st.Engine, eventlog.Options{Clock: o.Clock, Registerer: o.Metrics, Limits: o.eventLimits()}); err != nil {
		return nil, err
	}
	st.Blobs = blob.New(st.Engine, o.fileLimits(), o.Clock)
	st.Transcripts = transcript.New(st.Engine, transcript.Options{Clock: o.Clock})
	return st, nil
}

func (o *Options) openEngine(ctx context.Context) (engine.Engine, error) {
	began := o.Clock.Now()
	for waiting := false; ; waiting = true {
		e, err := local.Open(ctx, local.Options{Dir: o.Path("store"), Clock: o.Clock, Registerer: o.Metrics, Reserve: o.DiskReserve.Value()})
		if !errors.Is(err, engine.ErrLocked) {
			return e, err
		}
		if o.Clock.Since(began) >= o.LockTimeout {
			return nil, fmt.Errorf("another server is running on %s; stop it, or choose another folder with --data-dir: %w", o.DataDir, err)
		}
		if !waiting {
			klog.FromContext(ctx).Info("Another server has the store open; waiting for its end", "dir", o.DataDir, "timeout", o.LockTimeout)
			if o.Waiting != nil {
				defer o.Waiting(ctx)()
			}
		}
		timer := o.Clock.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C():
		}
	}
}

// Close closes what is open, in reverse order, and with it the lock. It waits for what is in flight; what comes later
// fails. All calls give what the first gave.
func (s *Stores) Close() error {
	s.closing.Do(func() {
		var err error
		if s.Events != nil {
			err = s.Events.Close()
		}
		if s.Objects != nil {
			s.Objects.Close()
		}
		if s.Engine != nil {
			err = errors.Join(err, s.Engine.Close())
		}
		s.closeErr = err
	})
	return s.closeErr
}
