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

	"github.com/platform-ai/platform/pkg/server/registry/core/memory"
	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/inbound"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/storage/transcript"
	"github.com/platform-ai/platform/pkg/storage/turn"
)

// lockPoll is the time between attempts to get the store's lock.
const lockPoll = 5 * time.Millisecond

// Stores are the data that a server keeps on disk.
type Stores struct {
	// Engine is the database that all the other stores use.
	Engine engine.Engine
	// Ledger stores what was recorded about the use of models.
	Ledger *ledger.Ledger
	// Objects stores the API objects.
	Objects *object.DB
	// Events stores the event streams of tasks.
	Events *eventlog.Log
	// Accounts keep what is spent of budgets.
	Accounts *spending.Store
	// Blobs stores results, logs and artifacts.
	Blobs *blob.Store
	// Recordings stores what runs said and did.
	Recordings *recording.Store
	// Transcripts stores the messages of sessions.
	Transcripts *transcript.Store
	// Turns stores turns of chats while they run.
	Turns *turn.Store
	// Inbound remembers which events of gateways were accepted.
	Inbound *inbound.Store
	// Memories is the index of memories.
	Memories *fulltext.Index

	closing  sync.Once
	closeErr error // set by closing
}

// OpenStores opens the stores, and creates them in an empty directory. If another process has them open, it waits up
// to LockTimeout; the error is then engine.ErrLocked.
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
	if st.Accounts, err = spending.Open(st.Engine, o.Clock); err != nil {
		return nil, err
	}
	if st.Ledger, err = ledger.Open(st.Engine, o.Clock); err != nil {
		return nil, err
	}
	st.Recordings = recording.New(st.Engine, recording.Limits{Task: o.TaskRecordingBytes.Value(), Namespace: o.NamespaceRecordingBytes.Value()})
	if st.Events, err = eventlog.Open(ctx, st.Engine, eventlog.Options{
		Clock: o.Clock, Registerer: o.Metrics, Limits: o.eventLimits(), Projections: []eventlog.Projection{st.Accounts, st.Ledger, st.Recordings},
	}); err != nil {
		return nil, err
	}
	st.Blobs = blob.New(st.Engine, o.fileLimits(), o.Clock)
	st.Transcripts = transcript.New(st.Engine, transcript.Options{Clock: o.Clock, Index: fulltext.New(st.Engine, transcript.IndexLetter)})
	st.Turns = turn.New(st.Engine)
	st.Inbound = inbound.New(st.Engine)
	st.Memories = fulltext.New(st.Engine, memory.IndexLetter)
	return st, nil
}

// openEngine opens the database. While it waits for another server, for space or for descriptors, the server is alive and not ready.
func (o *Options) openEngine(ctx context.Context) (engine.Engine, error) {
	began, wait := o.Clock.Now(), &standby{o: o}
	defer wait.done()
	for waiting := false; ; waiting = true {
		e, err := local.Open(ctx, local.Options{
			Dir: o.Path(archive.StoreFolder), Clock: o.Clock, Registerer: o.Metrics, Reserve: o.DiskReserve.Value(),
			Mark: o.Path(local.MarkFile), Keys: []string{o.Path("pki/ca.crt"), o.Path("pki/secrets.key"), o.sealFile(), o.Path(connectorKeysFile)}, AcceptLoss: o.AcceptDataLoss,
			Waiting: func(cause error, _ time.Duration) {
				wait.ready.Store(false)
				wait.waits(ctx, "the store cannot be opened: "+cause.Error())
			},
		})
		if err == nil {
			return e, nil
		}
		if !errors.Is(err, engine.ErrLocked) {
			return nil, err
		}
		if o.Clock.Since(began) >= o.LockTimeout {
			return nil, fmt.Errorf("another server is running on %s; stop it, or choose another folder with --data-dir: %w", o.DataDir, err)
		}
		if !waiting {
			klog.FromContext(ctx).Info("Another server has the store open; waiting until it ends", "dir", o.DataDir, "timeout", o.LockTimeout)
			wait.ready.Store(o.ReadyWhileWaiting)
			wait.waits(ctx, "another server has the store open")
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

// Close closes the stores in reverse order and releases the lock. It waits for operations in progress; later
// operations fail. All calls return the result of the first.
func (s *Stores) Close() error {
	s.closing.Do(func() {
		var err error
		if s.Events != nil {
			err = s.Events.Close()
		}
		if s.Objects != nil {
			s.Objects.Close()
		}
		if s.Ledger != nil {
			s.Ledger.Drain()
		}
		if s.Engine != nil {
			err = errors.Join(err, s.Engine.Close())
		}
		s.closeErr = err
	})
	return s.closeErr
}
