// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// eventFlags select events of a stream.
type eventFlags struct {
	after int64
	types []string
}

func (e *eventFlags) add(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&e.after, "after", 0, "only events after this sequence")
	cmd.Flags().StringSliceVar(&e.types, "type", nil, "only events of this type; repeatable")
	offerTypes(cmd, "type")
}

// partFlags select a part of a stream.
type partFlags struct {
	eventFlags
	limit, last, before int64
	search              string
}

// defaultLast is how many events --before prints without --last.
const defaultLast = 50

func (p *partFlags) add(cmd *cobra.Command) {
	p.eventFlags.add(cmd)
	cmd.Flags().Int64Var(&p.limit, "limit", 0, "at most this many; 0 is all")
	cmd.Flags().Int64Var(&p.last, "last", 0, "only this many of the last ones, without reading the others")
	cmd.Flags().Int64Var(&p.before, "before", 0, "the last events before this sequence, 50 unless --last says otherwise")
	cmd.Flags().StringVar(&p.search, "search", "", "only events with this text, in any letter case")
}

// check refuses flags that contradict each other.
func (p *partFlags) check(cmd *cobra.Command) error {
	f := cmd.Flags()
	for _, name := range []string{"last", "before"} {
		if !f.Changed(name) {
			continue
		}
		if n, err := f.GetInt64(name); err != nil || n < 1 {
			return errors.New("--" + name + ": must be at least 1")
		}
		if f.Changed("after") || f.Changed("limit") {
			return errors.New("--" + name + ": cannot be combined with --after and --limit, which read from the beginning")
		}
	}
	if p.before > 0 && p.last == 0 {
		p.last = defaultLast
	}
	return nil
}

func taskEvents(api *server, term *terminal) *cobra.Command {
	cmd := eventsOf(api, term, "tasks", "events TASK", "Print the events of a task")
	cmd.Example = "  platform task events report --last 50\n" +
		"  platform task events report --last 50 --before 1200\n" +
		"  platform task events report --search 'permission denied' --last 1\n" +
		"  platform task events report --count --periods 24"
	return cmd
}

// eventsOf returns a command that prints events of a task or a session.
func eventsOf(api *server, term *terminal, resource, use, short string) *cobra.Command {
	var p partFlags
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(resource)}
	p.add(cmd)
	var n countFlags
	n.add(cmd)
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := errors.Join(n.check(cmd), p.check(cmd)); err != nil {
			return err
		}
		if n.count {
			return printEventCounts(cmd.Context(), api, term, resource, args[0], p.types, n.periods, *f)
		}
		if p.last > 0 {
			return printLastEvents(cmd.Context(), api, term, resource, args[0], p, *f)
		}
		return printEvents(cmd.Context(), api, term, resource, args[0], p, *f)
	}
	return cmd
}

// pageSize is how many events are read at a time. It is the maximum that the server returns.
const pageSize = 1000

// page reads a page of a stream, of limit events at most.
func (p *partFlags) page(ctx context.Context, r *rest.Request, limit int64) (*v1alpha1.ExecutionEventPage, error) {
	r = r.SubResource("events").Param("limit", strconv.FormatInt(min(limit, pageSize), 10))
	for _, t := range p.types {
		r = r.Param("type", t)
	}
	if p.search != "" {
		r = r.Param("q", p.search)
	}
	page := &v1alpha1.ExecutionEventPage{}
	return page, r.Do(ctx).Into(page)
}

// printEvents prints events page by page, so that a long stream is not held in memory. JSON output has one object per line,
// YAML output one document per event.
func printEvents(ctx context.Context, api *server, term *terminal, resource, name string, p partFlags, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	lines := &timeline{terminal: term, out: term.Out, session: resource == "sessions"}
	for left := p.limit; ; {
		n := int64(pageSize)
		if p.limit > 0 {
			n = left
		}
		r := c.RESTClient().Get().Namespace(namespace).Resource(resource).Name(name)
		page, err := p.page(ctx, r.Param("after", strconv.FormatInt(p.after, 10)), n)
		if err != nil {
			return err
		}
		if page.Gap != nil && f == asTable {
			lines.gap(*page.Gap)
		}
		for i := range page.Events {
			if err := printEvent(term, lines, &page.Events[i], f); err != nil {
				return err
			}
			p.after = page.Events[i].Seq
		}
		p.after = max(p.after, page.NextSeq)
		left -= int64(len(page.Events))
		if p.after >= page.LatestSeq || p.limit > 0 && left <= 0 || len(page.Events) == 0 && page.NextSeq == 0 {
			return nil
		}
	}
}

// printLastEvents prints the last events of a stream, or the last ones before a position, in order. It reads no others,
// unless it searches.
func printLastEvents(ctx context.Context, api *server, term *terminal, resource, name string, p partFlags, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	var found []v1alpha1.ExecutionEvent
	for {
		r := c.RESTClient().Get().Namespace(namespace).Resource(resource).Name(name).Param("order", "desc")
		if p.before > 0 {
			r = r.Param("before", strconv.FormatInt(p.before, 10))
		}
		page, err := p.page(ctx, r, p.last-int64(len(found)))
		if err != nil {
			return err
		}
		found = append(found, page.Events...)
		if p.before = page.PrevSeq; p.before == 0 || int64(len(found)) >= p.last {
			break
		}
	}
	lines := &timeline{terminal: term, out: term.Out, session: resource == "sessions"}
	slices.Reverse(found)
	for i := range found {
		if err := printEvent(term, lines, &found[i], f); err != nil {
			return err
		}
	}
	return nil
}
