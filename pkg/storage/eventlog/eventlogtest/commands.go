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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
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
			d.model.remove(st, d.log.Revision()-st.kept()+1)
		}
	}
	return said(err), nil
}

func trim(d *Driver, c Command) (string, error) {
	s := streamArg(c)
	before, err := strconv.ParseInt(c.Get("before", ""), 10, 64)
	if err != nil {
		return "", err
	}
	err = d.log.Trim(d.t.Context(), s, before)
	if err == nil {
		d.model.trim(d.model.streams[s.UID], before, d.log.Revision())
	}
	return said(err), nil
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
		t, err = d.log.TailSession(q.Namespace, q.Session, after, q.Types)
	} else {
		t, err = d.log.TailTask(streamArg(c), after, q.Types)
	}
	if err != nil {
		return said(err), nil
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	r := &reader{tail: true, query: q, after: after, wake: make(chan struct{}), close: cancel, slow: c.Has("slow")}
	if q.Session == "" {
		r.stream = streamArg(c).UID
	}
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
		case g.kind == gapKind:
			fmt.Fprintf(&out, "GAP %d-%d\n", g.gap.From, g.gap.To)
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
