// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Limits bound what tasks may append. Bytes are those of the events as stored, with indexCost for each. 0 is no limit.
// Events that controllers and the server write are outside all of them.
type Limits struct {
	// TaskEvents and TaskBytes bound the stream of a task. A stream that was made before it was counted counts its bytes
	// from then on.
	TaskEvents, TaskBytes int64
	// NamespaceBytes bounds all streams of a namespace together. Those of a stream that is deleted or trimmed no longer
	// count, and what was stored before it was counted does not.
	NamespaceBytes int64
	// TaskRate and NamespaceRate are bytes a second, with 16 seconds of them at once.
	TaskRate, NamespaceRate int64
}

// indexCost is about what the keys and indexes of an event take on disk beside its payload, in bytes.
const indexCost = 400

// outside reports whether no limit holds for events of a type: those are not a worker's.
func outside(t v1alpha1.EventType) bool {
	switch t {
	case v1alpha1.EventTaskCreated, v1alpha1.EventTaskPhaseChanged, v1alpha1.EventTaskJobCreated, v1alpha1.EventTaskStarted:
		return true
	}
	return event.ControllerOwned(t) || event.Late(t)
}

// size is what the events of an append that are limited take, and how many they are.
func (t *appendTxn) size(all bool) (events, bytes int64) {
	for i := range t.events {
		if p := &t.events[i]; (all || p.fresh) && !p.free {
			events++
			bytes += int64(len(p.payload) + headerLen + indexCost)
		}
	}
	return events, bytes
}

// checkRate refuses what comes too fast.
func (l *Log) checkRate(t *appendTxn) error {
	_, n := t.size(true)
	if n == 0 {
		return nil
	}
	now := l.opts.Clock.Now()
	if after := l.rates.Take("t"+string(t.stream.UID), int(n), l.opts.Limits.TaskRate, now); after > 0 {
		return &quota.RateError{What: "events", Of: "task", After: after}
	}
	if after := l.rates.Take("n"+t.stream.Namespace, int(n), l.opts.Limits.NamespaceRate, now); after > 0 {
		return &quota.RateError{What: "events", Of: "namespace", After: after}
	}
	return nil
}

// checkTotal refuses what would make the stream, or all of its namespace, longer than they may be. It runs on the commit
// leader.
func (t *appendTxn) checkTotal(h *head) error {
	events, bytes := t.size(false)
	if events == 0 {
		return nil
	}
	st, o := &h.sequenced, &t.log.opts.Limits
	switch {
	case o.TaskEvents > 0 && st.last+events > o.TaskEvents:
		return &quota.LimitError{Limit: "number of events", Of: quota.OfTask, Used: st.last, Asked: events, Most: o.TaskEvents}
	case o.TaskBytes > 0 && st.bytes+bytes > o.TaskBytes:
		return &quota.LimitError{Limit: "bytes of events", Of: quota.OfTask, Used: st.bytes, Asked: bytes, Most: o.TaskBytes}
	}
	held, err := t.log.totals.Held(t.stream.Namespace)
	if err != nil {
		return err
	}
	if o.NamespaceBytes > 0 && held+bytes > o.NamespaceBytes {
		return &quota.LimitError{Limit: "bytes of events", Of: quota.OfNamespace(t.stream.Namespace), Used: held, Asked: bytes, Most: o.NamespaceBytes}
	}
	return nil
}

// NoteLimit says in the stream, once for each limit, what is refused for it, with a reason in CamelCase. No limit holds for
// that event. What fails here is tried again with the next refusal.
func (l *Log) NoteLimit(ctx context.Context, s Stream, refused, reason string, limit *quota.LimitError) {
	e := event.New(v1alpha1.EventTaskPhaseChanged, v1alpha1.SeverityWarning, limitKey(limit),
		fmt.Sprintf("the server refuses further %s of the task: %v", refused, limit),
		map[string]any{"reason": reason, "limit": limit.Limit, "of": limit.Of, "limited": limit.Most})
	t, err := l.prepare(s, []*v1alpha1.ExecutionEvent{e})
	if err != nil {
		return
	}
	t.events[0].free = true
	_ = l.commit(ctx, t)
}

// limitKey is the de-duplication key of the event that says that a limit was reached.
func limitKey(limit *quota.LimitError) string {
	return "platform:limit:" + limit.Limit + " of " + limit.Of
}
