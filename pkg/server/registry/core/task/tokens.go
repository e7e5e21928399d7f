// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

// meters count the tokens of tasks that run, for columns: status.usage is written when a task ends. They are derived
// from the events when somebody looks, each event once, so that they need no write and outlive nothing.
type meters struct {
	mu   sync.Mutex
	list map[types.UID]*meter
}

// meter is what is counted of a task up to an event.
type meter struct {
	mu    sync.Mutex
	after int64
	usage trace.Usage
}

func (m *meters) of(uid types.UID) *meter {
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

func (m *meters) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.list, uid)
}

// usage returns what a task has used: what its status says, or while it runs what its events say; nil if nothing is known.
func (r *Resource) usage(t *v1alpha1.Task) *v1alpha1.TaskUsage {
	if t.Status.Usage != nil || t.Status.Phase.Terminal() || t.Status.JobUID == "" || t.Spec.Type == v1alpha1.TaskTypeContainer {
		r.meters.forget(t.UID)
		return t.Status.Usage
	}
	m := r.meters.of(t.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx := context.Background() //nolint:forbidigo // columns get no context
	for {
		page, err := r.log.TaskPage(ctx, stream(t), m.after, usagePage, trace.UsageTypes())
		if err != nil {
			return m.usage.Sum()
		}
		for _, e := range page.Events {
			m.usage.Add(e)
		}
		if m.after = page.Next; m.after >= page.Latest {
			return m.usage.Sum()
		}
	}
}
