// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Limits bound what tasks may append. Bytes are those of the events as stored, plus indexCost for each
// event. 0 means no limit. Events that controllers and the server write are not limited, except plans and
// messages, which the server writes whenever a worker asks.
type Limits struct {
	// TaskEvents and TaskBytes bound the stream of a task. A stream that was made before bytes were counted
	// counts only the bytes appended since.
	TaskEvents, TaskBytes int64
	// NamespaceBytes bounds all streams of a namespace together. Deleted streams and trimmed events no
	// longer count, and neither do events stored before bytes were counted.
	NamespaceBytes int64
	// TaskRate and NamespaceRate are in bytes per second. A burst may use 16 seconds' worth at once.
	TaskRate, NamespaceRate int64
}

// indexCost is about how many bytes the keys and indexes of an event take on disk, besides its payload.
const indexCost = 400

// outsideKey is the key of WithoutLimits in a context.
type outsideKey struct{}

// WithoutLimits returns a context to whose appends no limits apply, as if controllers had made the events. It is for the ends of what
// this server began, of which there are no more than beginnings, to which limits did apply.
func WithoutLimits(ctx context.Context) context.Context {
	return context.WithValue(ctx, outsideKey{}, true)
}

// outside reports whether limits do not apply to events of type t, because controllers or the server write
// them.
func outside(t v1alpha1.EventType) bool {
	switch t {
	case v1alpha1.EventTaskCreated, v1alpha1.EventTaskPhaseChanged, v1alpha1.EventTaskJobCreated, v1alpha1.EventTaskStarted:
		return true
	case v1alpha1.EventPlanUpdated, v1alpha1.EventTaskMessageReceived, v1alpha1.EventTaskMessagesRead: // written by the server, but as often as an agent wants
		return false
	}
	return event.ControllerOwned(t) || event.Late(t)
}

// checkRate refuses an append that exceeds the rate of its task or namespace.
func (w *Writer) checkRate(t *appendTxn) error {
	var n int64
	for i := range t.events {
		if p := &t.events[i]; !p.free {
			n += p.size()
		}
	}
	if n == 0 {
		return nil
	}
	now := w.opts.Clock.Now()
	if err := w.rates.Check("t"+string(t.stream.UID), int(n), w.opts.Limits.TaskRate, now, "events", "task"); err != nil {
		return err
	}
	return w.rates.Check("n"+t.stream.Namespace, int(n), w.opts.Limits.NamespaceRate, now, "events", "namespace")
}

// checkTask refuses an append that would exceed the limits of its stream. events and bytes count only the
// events to which limits apply.
func (l *Limits) checkTask(st *state, events, bytes int64) error {
	switch {
	case events == 0:
		return nil
	case l.TaskEvents > 0 && st.numbered(1, st.last)+events > l.TaskEvents:
		return &quota.LimitError{Limit: "number of events", Of: quota.OfTask, Used: st.numbered(1, st.last), Asked: events, Most: l.TaskEvents}
	case l.TaskBytes > 0 && st.bytes+bytes > l.TaskBytes:
		return &quota.LimitError{Limit: "bytes of events", Of: quota.OfTask, Used: st.bytes, Asked: bytes, Most: l.TaskBytes}
	}
	return nil
}

// namespaceBytes is the projection that counts and limits the bytes that the streams of each namespace hold
// together.
type namespaceBytes struct {
	totals *quota.Totals
	most   int64 // 0: no limit
}

var _ Projection = (*namespaceBytes)(nil)

// Admit refuses an append that would exceed the limit of its namespace.
func (n *namespaceBytes) Admit(c *Change) error {
	held, err := n.totals.Held(c.Stream.Namespace)
	if err != nil {
		return err
	}
	if n.most > 0 && c.Limited > 0 && held+c.Limited > n.most {
		return &quota.LimitError{
			Limit: "bytes of events", Of: quota.OfNamespace(c.Stream.Namespace), Used: held, Asked: c.Limited, Most: n.most,
		}
	}
	return nil
}

// Project updates the total of the namespace.
func (n *namespaceBytes) Project(b engine.Batch, c *Change) error {
	return n.totals.Add(b, c.Stream.Namespace, c.Bytes)
}

// NoteLimit appends a warning to the stream, once for each limit, that says what is refused because of the
// limit or the rate that err names; it does nothing for other errors. reason is in CamelCase. No limit applies
// to this event. If the append fails, it is tried again with the next refusal.
func (w *Writer) NoteLimit(ctx context.Context, s Stream, refused, reason string, err error) {
	note, ok := quota.NoteOf(err, refused)
	if !ok {
		return
	}
	known := string(s.UID) + " " + note.Key
	if _, done := w.noted.Get(known); done {
		return // whoever is refused goes on trying, and must not cost a commit each time
	}
	note.Content["reason"] = reason
	e := event.New(v1alpha1.EventTaskPhaseChanged, v1alpha1.SeverityWarning, "platform:limit:"+note.Key, note.Text, note.Content)
	t, err := w.prepare(s, Sanitize([]*v1alpha1.ExecutionEvent{e}))
	if err == nil && t.commit(ctx) == nil {
		w.noted.Add(known, nil)
	}
}
