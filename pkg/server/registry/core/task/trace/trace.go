// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace serves the traces of tasks, which package readmodel/trace derives from their events.
package trace

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Traces serves the traces of tasks. All fields are required.
type Traces struct {
	Log   *eventlog.Log
	Clock clock.PassiveClock
	// HasResult reports whether the task with a UID has stored a result.
	HasResult func(ctx context.Context, uid types.UID) (bool, error)
}

// Serve serves GET of the trace: one TaskTrace as JSON, of any length, written as the events are
// read. It covers the events up to the newest one at the time of the request. timeline=false leaves
// out the events themselves. limit bounds the number of events; metadata.continue requests the
// following ones, without the groups. spans bounds the groups to a part of the stream, which begins after the event after.
func (r Traces) Serve(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q, err := parse(req, p.Object.UID)
		if err != nil {
			respond.Error(err)
			return
		}
		a := newAnswer(w)
		err = r.writeTrace(req.Context(), a, p.Object, q)
		if err == nil {
			err = a.flush()
		}
		switch {
		case err == nil:
		case !a.sent():
			respond.Error(err)
		default:
			klog.FromContext(req.Context()).V(2).Info("Trace was shortened", "task", klog.KObj(p.Object), "err", err)
			// The client must not take the incomplete answer for the whole: this panic resets the
			// stream.
			panic(http.ErrAbortHandler)
		}
	}), nil
}

// query holds the parameters of a request for a trace.
type query struct {
	timeline bool
	limit    int64 // of the timeline; 0 means no limit
	spans    int64 // of the groups; 0 means no limit
	after    int64 // where the groups begin
	from     *token
}

// token is the position where a timeline continues, with the latest sequence number of the
// first page.
type token struct {
	UID    types.UID `json:"uid"`
	After  int64     `json:"after"`
	Latest int64     `json:"latest"`
}

func (t *token) String() string {
	raw, err := json.Marshal(t)
	if err != nil { // text and numbers can always be marshalled
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parse(req *http.Request, uid types.UID) (*query, error) {
	v := wellformed.Query(req)
	q := &query{timeline: true}
	var err error
	if v.Get("timeline") != "" {
		if q.timeline, err = wellformed.Bool(req, "timeline"); err != nil {
			return nil, err
		}
	}
	if q.limit, err = wellformed.Number(req, "limit", 0); err != nil {
		return nil, err
	}
	if s := v.Get("continue"); s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		if err == nil {
			err = json.Unmarshal(raw, &q.from)
		}
		switch {
		case err != nil || q.from == nil || q.from.After < 0 || q.from.After > q.from.Latest:
			return nil, apierrors.NewBadRequest("continue: is not a token of this API")
		case q.from.UID != uid:
			return nil, apierrors.NewResourceExpired("continue: the task was replaced by another one of its name; start again without continue")
		case !q.timeline:
			return nil, apierrors.NewBadRequest("continue: asks for more of the timeline, which timeline=false leaves out")
		}
	}
	return q, q.parsePart(v)
}

// writeTrace writes a page of the trace. The first page has the groups.
func (r Traces) writeTrace(ctx context.Context, a *answer, t *v1alpha1.Task, q *query) error {
	head, err := r.Log.Head(ctx, stored.Stream(t))
	switch {
	case err != nil:
		return err
	case head.Deleted:
		return refusal.Deleted(t)
	}
	w := &writer{answer: a, log: r.Log, task: t, query: q, after: q.after, latest: head.LatestSeq, trimmed: -1}
	if q.from != nil {
		if w.latest = q.from.Latest; w.latest > head.LatestSeq {
			return apierrors.NewBadRequest("continue: refers to events that the task lacks")
		}
		w.after = q.from.After
	}
	about, err := r.about(ctx, t)
	if err != nil {
		return err
	}
	a.open()
	a.field("task", about)
	a.field("latestSeq", w.latest)
	a.field("generatedAt", metav1.NewMicroTime(r.Clock.Now()))
	err = w.write(ctx)
	if err == nil {
		a.close()
		err = a.err
	}
	return err
}

func (r Traces) about(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.TraceTask, error) {
	about := &v1alpha1.TraceTask{
		Namespace: t.Namespace, Name: t.Name, UID: t.UID, Type: t.Spec.Type, Phase: t.Status.Phase,
		AgentName: t.Status.AgentName, SessionName: stored.Session(t),
		StartTime: t.Status.StartTime, CompletionTime: t.Status.CompletionTime,
		ResultAvailable: t.Status.ResultRef != nil && t.Status.ResultRef.Available,
	}
	if about.ResultAvailable {
		return about, nil
	}
	var err error
	about.ResultAvailable, err = r.HasResult(ctx, t.UID)
	return about, err
}

// writer writes the parts of a trace that come from events.
type writer struct {
	*answer
	log           *eventlog.Log
	task          *v1alpha1.Task
	query         *query
	after, latest int64 // the timeline's range
	trimmed       int64 // the last event that is no longer kept; -1 before the first page
}

// write reads the events once, for the timeline and the groups together. If the rows of a group
// become too large to hold in memory, the group is computed a second time and written while it is
// read, so that memory use does not grow with the number of events.
func (w *writer) write(ctx context.Context) error {
	groups := w.query.from == nil
	held := newHeldRows()
	end := &partEnd{most: w.query.spans}
	fold := w.fold(end.counting(held.add))
	next, rows := w.latest, int64(0) // where the timeline ends
	open := false
	begin := func(gap *v1alpha1.EventGap) {
		if open {
			return
		}
		open = true
		if gap != nil {
			w.field("gap", gap)
		}
		w.array("timeline")
	}
	err := w.walk(ctx, w.after, nil, func(p *eventlog.StreamPage) bool {
		begin(gapOf(p))
		for _, e := range p.Events {
			switch {
			case !w.query.timeline:
			case w.query.limit == 0 || rows < w.query.limit:
				rows++
				w.event(e)
			default:
				next = min(next, e.Seq-1)
			}
			if !groups {
				continue
			}
			if end.before(e) {
				w.latest = e.Seq - 1
				return false
			}
			fold.Add(e)
		}
		return groups || next == w.latest
	})
	if err != nil {
		return err
	}
	begin(nil)
	w.endArray()
	if groups {
		fold.End()
	}
	if err := w.groups(ctx, held); err != nil {
		return err
	}
	if u := fold.Usage(); u != nil {
		w.field("usage", u)
	}
	if e := fold.TerminalEvent(); e != nil {
		w.field("terminalEvent", e)
	}
	if w.query.spans > 0 {
		w.field("part", v1alpha1.TracePart{AfterSeq: w.after, ThroughSeq: max(w.after, w.latest)})
	}
	if next < w.latest {
		rest := w.latest - next
		w.field("metadata", metav1.ListMeta{
			Continue: (&token{UID: w.task.UID, After: next, Latest: w.latest}).String(), RemainingItemCount: &rest,
		})
	}
	return nil
}

// groups writes the groups, which are empty after the first page.
func (w *writer) groups(ctx context.Context, held *heldRows) error {
	for _, g := range trace.Groups() {
		w.array(string(g))
		switch {
		case w.query.from != nil:
		case held.over(g):
			if err := w.refold(ctx, g); err != nil {
				return err
			}
		default:
			w.rows(held.take(g))
		}
		w.endArray()
	}
	return nil
}

// refold computes a group again and writes its rows as they are found.
func (w *writer) refold(ctx context.Context, g trace.Group) error {
	fold := w.fold(func(to trace.Group, row any) {
		if to == g {
			w.row(row)
		}
	})
	err := w.walk(ctx, w.query.after, g.Types(), func(p *eventlog.StreamPage) bool {
		for _, e := range p.Events {
			fold.Add(e)
		}
		return true
	})
	fold.End()
	return err
}

const (
	// maxPage is the maximum number of events read at a time; firstPage is how many are read
	// first. Pages get smaller if events are large.
	maxPage   = 512
	firstPage = 64
	// pageBytes is the approximate target size of a page, in bytes.
	pageBytes = 1 << 20
)

var errTrimmed = errors.New("events of the trace were removed while it was read")

// walk calls f with pages of the events after a position, up to the latest one of the trace, until
// f returns false.
func (w *writer) walk(ctx context.Context, after int64, kinds []v1alpha1.EventType, f func(*eventlog.StreamPage) (more bool)) error {
	for first, limit := true, firstPage; after < w.latest; first = false {
		if err := errors.Join(ctx.Err(), w.err); err != nil {
			return err
		}
		p, err := w.log.TaskPage(ctx, stored.Stream(w.task), after, limit, kinds)
		switch {
		case errors.Is(err, eventlog.ErrDeleted):
			return refusal.Deleted(w.task)
		case err != nil:
			return err
		case !first && len(p.Gaps) > 0, first && w.trimmed >= 0 && w.trimmed != lastGone(p):
			return errTrimmed
		}
		if first {
			w.trimmed = lastGone(p)
		}
		after = p.Next
		bytes := 0
		for i, e := range p.Events {
			if e.Seq > w.latest {
				p.Events, after = p.Events[:i], w.latest
				break
			}
			bytes += event.Size(e)
		}
		if !f(p) {
			return nil
		}
		if limit *= 2; bytes > pageBytes {
			limit = len(p.Events) * pageBytes / bytes
		}
		limit = max(1, min(limit, maxPage))
	}
	return nil
}

// lastGone returns the last event before a page that is no longer kept; 0 if all are kept.
func lastGone(p *eventlog.StreamPage) int64 {
	if len(p.Gaps) == 0 {
		return 0
	}
	return p.Gaps[0].To
}

// gapOf returns the gap of events before a page that are no longer kept.
func gapOf(p *eventlog.StreamPage) *v1alpha1.EventGap {
	if len(p.Gaps) == 0 {
		return nil
	}
	return &v1alpha1.EventGap{FromSeq: p.Gaps[0].From, ToSeq: p.Gaps[0].To, Reason: v1alpha1.GapRetention}
}
