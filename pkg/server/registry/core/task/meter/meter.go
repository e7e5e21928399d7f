// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter counts the tokens of tasks that run, from their events.
package meter

import (
	"context"
	"math"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Meters count the tokens of tasks that run, for columns: status.usage is written when a task ends. They are derived
// from the events when somebody looks, each event once, so that they need no write and outlive nothing.
type Meters struct {
	log *eventlog.Log

	mu   sync.Mutex
	list map[types.UID]*meter
}

// New returns meters of the tasks in a log.
func New(log *eventlog.Log) *Meters { return &Meters{log: log} }

// meter is what is counted of a task up to an event.
type meter struct {
	mu       sync.Mutex
	after    int64
	revision uint64 // of the event
	usage    trace.Usage
}

func (m *Meters) of(uid types.UID) *meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		m.list = map[types.UID]*meter{}
	}
	if m.list[uid] == nil {
		m.list[uid] = &meter{}
	}
	return m.list[uid]
}

// Forget forgets a task that is gone.
func (m *Meters) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.list, uid)
}

// Usage returns what a task has used: what its status says, or while it runs what its events say; nil if nothing is known.
func (m *Meters) Usage(t *v1alpha1.Task) *v1alpha1.TaskUsage {
	return m.UsageAt(context.Background(), t, math.MaxUint64) //nolint:forbidigo // columns get no context
}

// UsageAt is Usage as of a revision, which is that of the task or a later one.
func (m *Meters) UsageAt(ctx context.Context, t *v1alpha1.Task, revision uint64) *v1alpha1.TaskUsage {
	if t.Status.Usage != nil || t.Status.Phase.Terminal() || t.Status.JobUID == "" || t.Spec.Type == v1alpha1.TaskTypeContainer {
		if revision == math.MaxUint64 {
			m.Forget(t.UID)
		}
		return t.Status.Usage
	}
	one := m.of(t.UID)
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.revision > revision { // it has counted later events
		one = &meter{}
	}
	for {
		page, err := m.log.TaskPage(ctx, stored.Stream(t), one.after, maxPage, trace.UsageTypes())
		if err != nil { // the task may be gone
			m.Forget(t.UID)
			return one.usage.Sum()
		}
		for _, e := range page.Events {
			at, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
			if err == nil && at > revision {
				return one.usage.Sum()
			}
			one.usage.Add(e)
			one.after, one.revision = e.Seq, at
		}
		if one.after = page.Next; one.after >= page.Latest {
			return one.usage.Sum()
		}
	}
}

// maxPage is how many events are read at a time.
const maxPage = 500
