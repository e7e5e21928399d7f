// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

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

// walk lists page by page and compares the items with the model.
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
	for _, i := range items(p) {
		if i.kind == gapKind {
			fmt.Fprintf(&out, "gap %d-%d\n", i.gap.From, i.gap.To)
			continue
		}
		out.WriteString(brief(i.event))
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
	q, err := query(c)
	if err != nil {
		return "", err
	}
	return pageText(d.log.SessionPage(d.t.Context(), q.Namespace, q.Session, after, limit, q.Types)), nil
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
	return fmt.Sprintf("latest=%d oldest=%d closed=%v terminal=%s/%d deleted=%v\n", h.LatestSeq, h.Oldest, h.Closed, h.Terminal, h.TerminalSeq, h.Deleted), nil
}
