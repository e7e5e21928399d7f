// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/enginetest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// parseEvent reads an event line.
func parseEvent(line string) (eventlog.Stream, *v1alpha1.ExecutionEvent) {
	words := strings.Fields(line)
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventType(words[0])}
	s := eventlog.Stream{Namespace: "default"}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "task":
			s.Task = v
		case "uid":
			s.UID = types.UID(v)
		case "ns":
			s.Namespace = v
		case "session":
			s.Session = v
		case "key":
			e.DedupKey = v
		case "severity":
			e.Severity = v1alpha1.EventSeverity(v)
		case "summary":
			e.Summary = v
		case "content":
			e.Content = &apiextensionsv1.JSON{Raw: []byte(v)}
		}
	}
	if s.UID == "" && s.Task != "" {
		s.UID = types.UID(s.Task + "-1")
	}
	return s, e
}

// brief is an event in output: its place, and its session's cursor.
func brief(e *v1alpha1.ExecutionEvent) string {
	var b strings.Builder
	if e.StreamNamespace != "default" {
		b.WriteString(e.StreamNamespace + "/")
	}
	fmt.Fprintf(&b, "%s/%d %s", e.TaskName, e.Seq, e.Type)
	if e.StreamType == v1alpha1.StreamSession {
		fmt.Fprintf(&b, " of %s/%d", e.TaskStreamID, e.TaskSeq)
	}
	if e.Severity != v1alpha1.SeverityInfo {
		b.WriteString(" " + string(e.Severity))
	}
	if e.Summary != "" {
		fmt.Fprintf(&b, " %q", e.Summary)
	}
	if e.Content != nil {
		b.WriteString(" " + string(e.Content.Raw))
	}
	return b.String() + " @" + e.ResourceVersion + "\n"
}

func lines(c Command) []string { return strings.Split(strings.TrimSpace(c.Input), "\n") }

func appendLines(d *Driver, c Command) (string, error) {
	var out strings.Builder
	if c.Has("times") {
		return appendTimes(d, c)
	}
	for _, line := range lines(c) {
		s, e := parseEvent(line)
		text, err := d.append(s, []*v1alpha1.ExecutionEvent{e})
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// appendTimes appends the one line so many times, in one commit.
func appendTimes(d *Driver, c Command) (string, error) {
	n, err := strconv.Atoi(c.Get("times", ""))
	if err != nil {
		return "", err
	}
	s, e := parseEvent(c.Input)
	events := make([]*v1alpha1.ExecutionEvent, n)
	for i := range events {
		events[i] = e
	}
	out, err := d.append(s, events)
	return fmt.Sprintf("%d events\n", strings.Count(out, "\n")), err
}

func appendBatch(d *Driver, c Command) (string, error) {
	var s eventlog.Stream
	var events []*v1alpha1.ExecutionEvent
	for i, line := range lines(c) {
		to, e := parseEvent(line)
		if i > 0 && to != s {
			return "", errors.New("a batch goes to one stream")
		}
		s, events = to, append(events, e)
	}
	return d.append(s, events)
}

func appendTwice(d *Driver, c Command) (string, error) {
	first, err := appendLines(d, c)
	if err != nil {
		return "", err
	}
	second, err := appendLines(d, c)
	if err == nil && first != second {
		return "", fmt.Errorf("%w: first\n%sthen\n%s", errBrokeOnce, first, second)
	}
	return second, err
}

func (d *Driver) append(s eventlog.Stream, events []*v1alpha1.ExecutionEvent) (string, error) {
	stored, err := d.log.Append(d.t.Context(), s, events)
	if err != nil {
		if errors.Is(err, engine.ErrFailed) {
			d.unsure = append(d.unsure, s)
		}
		return said(err), nil
	}
	if len(stored) != len(events) {
		return "", fmt.Errorf("%w: %d results of %d events", errBrokeDurable, len(stored), len(events))
	}
	var out strings.Builder
	for _, e := range stored {
		out.WriteString(brief(e))
	}
	ordered := slices.Clone(stored)
	slices.SortFunc(ordered, func(a, b *v1alpha1.ExecutionEvent) int { return int(a.Seq - b.Seq) })
	return out.String(), d.model.add(s, ordered)
}

func streamArg(c Command) eventlog.Stream {
	task := c.Get("task", "")
	return eventlog.Stream{Namespace: c.Get("ns", "default"), Task: task, UID: types.UID(c.Get("uid", task+"-1"))}
}

func deleteStream(d *Driver, c Command) (string, error) {
	s := streamArg(c)
	err := d.log.DeleteStream(d.t.Context(), s)
	if err == nil {
		if st := d.model.streams[s.UID]; st != nil && !st.deleted {
			d.model.remove(st, d.log.Revision()-uint64(len(st.events))+1)
		}
	}
	return said(err), nil
}

func query(c Command) (eventlog.Query, error) {
	q := eventlog.Query{
		Namespace: c.Get("ns", "default"), Task: c.Get("task", ""), Session: c.Get("session", ""), Name: c.Get("name", ""),
	}
	if q.Namespace == "*" {
		q.Namespace = ""
	}
	for _, t := range split(c.Get("type", "")) {
		q.Types = append(q.Types, v1alpha1.EventType(t))
	}
	for _, s := range split(c.Get("severity", "")) {
		q.Severity = append(q.Severity, v1alpha1.EventSeverity(s))
	}
	var err error
	q.Limit, err = strconv.Atoi(c.Get("limit", "0"))
	if err != nil {
		return q, err
	}
	q.Revision, err = strconv.ParseUint(c.Get("rev", "0"), 10, 64)
	q.NotOlderThan = !c.Has("exact")
	return q, err
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func list(d *Driver, c Command) (string, error) {
	q, err := query(c)
	if err != nil {
		return "", err
	}
	if c.Has("continue") {
		q = d.query
		q.Continue = d.token
	}
	d.query = q
	p, err := d.log.List(d.t.Context(), q)
	if err != nil {
		var expired *eventlog.ExpiredError
		if errors.As(err, &expired) && expired.Continue != "" {
			d.token = expired.Continue
		}
		return said(err), nil
	}
	d.token = p.Continue
	var out strings.Builder
	for _, e := range p.Items {
		out.WriteString(brief(e))
	}
	fmt.Fprintf(&out, "revision %d", p.Revision)
	if p.Continue != "" {
		out.WriteString(" and more")
	}
	if p.Remaining != nil {
		fmt.Fprintf(&out, ": %d", *p.Remaining)
	}
	return out.String() + "\n", nil
}

// walk lists page by page and compares with the model.
func walk(d *Driver, c Command) (string, error) {
	q, err := query(c)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	var got []*v1alpha1.ExecutionEvent
	for pages := 1; ; pages++ {
		p, err := d.log.List(d.t.Context(), q)
		if err != nil {
			return out.String() + said(err), nil
		}
		got = append(got, p.Items...)
		if q.Revision = p.Revision; p.Continue == "" {
			fmt.Fprintf(&out, "%d events on %d pages, revision %d\n", len(got), pages, p.Revision)
			break
		}
		q.Continue = p.Continue
	}
	r := reader{query: q, from: q.Revision, initial: true}
	want := slices.DeleteFunc(r.expected(&d.model), func(h happened) bool { return h.rev > q.Revision })
	if len(want) != len(got) {
		return "", fmt.Errorf("%w: %d events at %d, want %d", errBrokeDurable, len(got), q.Revision, len(want))
	}
	for i, e := range got {
		if e.ResourceVersion != strconv.FormatUint(want[i].rev, 10) {
			return "", fmt.Errorf("%w: item %d is %s, want revision %d", errBrokeDurable, i, brief(e), want[i].rev)
		}
	}
	return out.String(), nil
}

func numbers(c Command) (after int64, limit int, err error) {
	if after, err = strconv.ParseInt(c.Get("after", "0"), 10, 64); err == nil {
		limit, err = strconv.Atoi(c.Get("limit", "0"))
	}
	return after, limit, err
}

func pageText(p *eventlog.StreamPage, err error) string {
	if err != nil {
		return said(err)
	}
	var out strings.Builder
	for _, e := range p.Events {
		out.WriteString(brief(e))
	}
	fmt.Fprintf(&out, "next %d of %d", p.Next, p.Latest)
	if p.Head.Closed {
		out.WriteString(", closed by " + string(p.Head.Terminal))
	}
	return out.String() + "\n"
}

func page(d *Driver, c Command) (string, error) {
	after, limit, err := numbers(c)
	if err != nil {
		return "", err
	}
	q, err := query(c)
	if err != nil {
		return "", err
	}
	return pageText(d.log.TaskPage(d.t.Context(), streamArg(c), after, limit, q.Types)), nil
}

func timeline(d *Driver, c Command) (string, error) {
	after, limit, err := numbers(c)
	if err != nil {
		return "", err
	}
	return pageText(d.log.SessionPage(d.t.Context(), c.Get("ns", "default"), c.Get("session", ""), after, limit)), nil
}

func get(d *Driver, c Command) (string, error) {
	e, err := d.log.Get(d.t.Context(), c.Get("ns", "default"), c.Get("name", ""))
	if err != nil {
		return said(err), nil
	}
	return brief(e), nil
}

func head(d *Driver, c Command) (string, error) {
	h, err := d.log.Head(d.t.Context(), streamArg(c))
	if err != nil {
		return said(err), nil
	}
	return fmt.Sprintf("latest=%d closed=%v terminal=%s deleted=%v\n", h.LatestSeq, h.Closed, h.Terminal, h.Deleted), nil
}

func watchEvents(d *Driver, c Command) (string, error) {
	q, err := query(c)
	if err != nil {
		return "", err
	}
	o := eventlog.WatchOptions{AllowBookmarks: c.Has("bookmarks")}
	if v := c.Get("initial", ""); v != "" {
		o.SendInitialEvents = new(v == "true")
	}
	r := &reader{query: q, from: q.Revision, wake: make(chan struct{}), slow: c.Has("slow")}
	r.initial = q.Revision == 0 && o.SendInitialEvents == nil || ptr.Deref(o.SendInitialEvents, false)
	if r.initial || q.Revision == 0 {
		r.from = d.log.Revision()
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	r.close = cancel
	w, err := d.log.Watch(ctx, q, q.Revision, o)
	if err != nil {
		cancel()
		return said(err), nil
	}
	r.ending.Add(1)
	go r.pumpWatch(ctx, w)
	d.readers[c.word()] = r
	return "", nil
}

func tail(d *Driver, c Command) (string, error) {
	after, _, err := numbers(c)
	if err != nil {
		return "", err
	}
	q, err := query(c)
	if err != nil {
		return "", err
	}
	var t *eventlog.Tail
	if q.Session != "" {
		t, err = d.log.TailSession(q.Namespace, q.Session, after)
	} else {
		t, err = d.log.TailTask(streamArg(c), after, q.Types)
	}
	if err != nil {
		return said(err), nil
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	r := &reader{tail: true, wake: make(chan struct{}), close: cancel, slow: c.Has("slow")}
	r.ending.Add(1)
	go r.pumpTail(ctx, t)
	d.readers[c.word()] = r
	return "", nil
}

func (d *Driver) reader(c Command) (*reader, error) {
	r := d.readers[c.word()]
	if r == nil {
		return nil, fmt.Errorf("no reader %q", c.word())
	}
	return r, nil
}

func recv(d *Driver, c Command) (string, error) {
	r, err := d.reader(c)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(c.Get("n", "0"))
	if err != nil {
		return "", err
	}
	got, ended, err := r.recv(n)
	if err != nil {
		return "", err
	}
	if c.Has("last") && len(got) > 0 {
		got = got[len(got)-1:]
	}
	var out strings.Builder
	for _, g := range got {
		switch {
		case g.event == nil:
			fmt.Fprintf(&out, "%s %s\n", g.kind, g.err)
		case g.kind == watch.Bookmark:
			fmt.Fprintf(&out, "BOOKMARK @%s %v\n", g.event.ResourceVersion, g.event.Annotations)
		default:
			fmt.Fprintf(&out, "%s %s", g.kind, brief(g.event))
		}
	}
	if ended {
		out.WriteString("end\n")
	}
	return out.String(), nil
}

func slow(d *Driver, c Command) (string, error) {
	r, err := d.reader(c)
	if err != nil {
		return "", err
	}
	r.setSlow(true)
	return "", nil
}

func resume(d *Driver, c Command) (string, error) {
	r, err := d.reader(c)
	if err != nil {
		return "", err
	}
	r.setSlow(false)
	return "", nil
}

func stop(d *Driver, c Command) (string, error) {
	r, err := d.reader(c)
	if err != nil {
		return "", err
	}
	r.stop()
	delete(d.readers, c.word())
	return "", nil
}

func step(d *Driver, c Command) (string, error) {
	by, err := time.ParseDuration(c.word())
	if err != nil {
		return "", err
	}
	d.clock.Step(by)
	return "", nil
}

func purge(d *Driver, _ Command) (string, error) {
	n, err := d.log.Purge(d.t.Context())
	if err != nil {
		return said(err), nil
	}
	return fmt.Sprintf("purged %d, floor %d\n", n, d.log.Floor()), nil
}

func floor(d *Driver, _ Command) (string, error) {
	return fmt.Sprintf("floor %d of %d\n", d.log.Floor(), d.log.Revision()), nil
}

func options(d *Driver, c Command) (string, error) {
	number := func(key string) int {
		n, err := strconv.Atoi(c.Get(key, "0"))
		if err != nil {
			return 0
		}
		return n
	}
	d.opts = eventlog.Options{
		PurgeInterval: -1, WatchQueue: number("queue"), MaxWatchLag: int64(number("lag")),
		CachedStreams: number("cache"), ScanBudget: number("budget"),
	}
	if w := c.Get("window", ""); w != "" {
		window, err := time.ParseDuration(w)
		if err != nil {
			return "", err
		}
		d.opts.HistoryWindow = window
	}
	return reopen(d, c)
}

func reopen(d *Driver, _ Command) (string, error) {
	if err := d.close(); err != nil {
		return "", err
	}
	return "", d.open()
}

func crash(d *Driver, c Command) (string, error) {
	unsynced, err := strconv.Atoi(c.Get("unsynced", "0"))
	if err != nil {
		return "", err
	}
	seed, err := strconv.ParseUint(c.Get("seed", "1"), 10, 64)
	if err != nil {
		return "", err
	}
	after := d.disk.Crash(unsynced, seed)
	if err := d.close(); err != nil && d.fatal.Load() == nil && !d.faulty {
		return "", err
	}
	d.faulty = false
	failed := d.fatal.Swap(nil) != nil
	d.disk = after
	if err := d.open(); err != nil {
		return "", err
	}
	if failed {
		return "", d.settle()
	}
	return "", nil
}

// settle learns the outcome of what failed without an answer: it either happened
// or it did not.
func (d *Driver) settle() error {
	unsure := d.unsure
	d.unsure = nil
	for _, s := range unsure {
		if d.model.streams[s.UID] != nil {
			continue
		}
		p, err := d.log.TaskPage(d.t.Context(), s, 0, 100, nil)
		if err != nil {
			return err
		}
		if err := d.model.add(s, p.Events); err != nil {
			return err
		}
	}
	for _, s := range d.model.streams {
		if s.deleted {
			continue
		}
		p, err := d.log.TaskPage(d.t.Context(), s.Stream, int64(len(s.events)), 100, nil)
		if errors.Is(err, eventlog.ErrDeleted) {
			d.model.remove(s, d.log.Revision()-uint64(len(s.events))+1)
			continue
		}
		if err != nil {
			return err
		}
		if err := d.model.add(s.Stream, p.Events); err != nil {
			return err
		}
	}
	return nil
}

// fault lets the next sync of the journal fail, and everything after it.
func fault(d *Driver, _ Command) (string, error) {
	var failing atomic.Bool
	d.faulty = true
	d.disk.Fail(func(op enginetest.Op) error {
		if op.Log() && op.Kind == enginetest.Sync {
			failing.Store(true)
		}
		if failing.Load() {
			return enginetest.ErrInjected
		}
		return nil
	})
	return "", nil
}
