// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func taskTrace(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace TASK", Short: "Show where the time and the tokens of a task went", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Long: "Show where the time and the tokens of a task went: its model requests and tool calls on one time scale, what it waited for, and what went wrong.",
	}
	part := traceFlags{}
	cmd.Flags().Int64Var(&part.spans, "spans", 0, "only a part with about this many spans, 10,000 at most, without its events; 0 is the whole")
	cmd.Flags().Int64Var(&part.after, "after", 0, "with --spans: the part that begins after this sequence")
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case part.spans < 0:
			return errors.New("--spans: must be at least 1")
		case part.after < 0:
			return errors.New("--after: must be at least 0")
		case cmd.Flags().Changed("after") && part.spans == 0:
			return errors.New("--after requires --spans")
		}
		return printTrace(cmd.Context(), api, term, args[0], part, *f)
	}
	return cmd
}

// traceFlags select a part of a trace.
type traceFlags struct{ spans, after int64 }

func printTrace(ctx context.Context, api *server, term *terminal, task string, part traceFlags, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	r := c.RESTClient().Get().Namespace(namespace).Resource("tasks").Name(task).SubResource("trace")
	if f == asTable || part.spans > 0 {
		r = r.Param("timeline", "false") // task events prints it
	}
	if part.spans > 0 {
		r = r.Param("spans", strconv.FormatInt(part.spans, 10)).Param("after", strconv.FormatInt(part.after, 10))
	}
	t := &v1alpha1.TaskTrace{}
	if err := r.Do(ctx).Into(t); err != nil {
		return err
	}
	if f != asTable {
		t.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("TaskTrace"))
		return term.write(t, f)
	}
	var b strings.Builder
	(&tracePrinter{terminal: term, out: &b, spans: part.spans}).print(t)
	_, err = fmt.Fprint(term.Out, b.String())
	return err
}

// tracePrinter draws a trace.
type tracePrinter struct {
	*terminal
	out      *strings.Builder
	spans    int64 // that were asked for; 0: all
	from, to time.Time
	over     bool // the task has ended, at to
}

// Columns of a row: mark, sequence, name, then the bar, the length and the rest.
const (
	nameColumns = 30
	barColumns  = 28
)

// row is a span of any group.
type row struct {
	span        *v1alpha1.TraceSpan
	name, extra string
}

func (p *tracePrinter) line(format string, args ...any) {
	p.out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *tracePrinter) print(t *v1alpha1.TaskTrace) {
	rows := rowsOf(t)
	p.scale(t, rows)
	p.head(t)
	if len(rows) > 0 {
		p.line("")
		for _, r := range rows {
			p.row(r)
		}
	}
	p.path(t.CriticalPath)
	p.notes("Artifacts", len(t.Artifacts), func(i int) (style, string) {
		a := &t.Artifacts[i]
		return plain, fmt.Sprintf("%s %s", a.Name, a.Status)
	})
	p.problems("Errors", red, t.Errors)
	p.problems("Warnings", yellow, t.Warnings)
	p.notes("Ends without a beginning", len(t.RawUnpaired), func(i int) (style, string) {
		e := &t.RawUnpaired[i]
		return dim, fmt.Sprintf("#%d %s %s", e.Seq, e.Type, clean(e.Summary))
	})
	p.line("")
	if t.LatestSeq == 0 {
		p.line("no events yet")
		return
	}
	if part := t.Part; part != nil && (part.AfterSeq > 0 || part.ThroughSeq < t.LatestSeq) {
		p.line("%s", p.paint(yellow, fmt.Sprintf("This part covers events %s to %s of %s.", count(part.AfterSeq+1), count(part.ThroughSeq), count(t.LatestSeq))))
		if part.ThroughSeq < t.LatestSeq {
			p.line("%s", p.paint(dim, fmt.Sprintf("The next part: platform task trace %s --spans %d --after %d", t.Task.Name, p.spans, part.ThroughSeq)))
		}
	}
	p.line("%s", p.paint(dim, fmt.Sprintf("All %s: platform task events %s", many(int(t.LatestSeq), "event"), t.Task.Name)))
}

// rowsOf merges the groups in the order in which the spans began.
func rowsOf(t *v1alpha1.TaskTrace) []row {
	var rows []row
	for i := range t.ModelRequests {
		m := &t.ModelRequests[i]
		extra := ""
		if m.Status != v1alpha1.SpanRunning {
			extra = fmt.Sprintf("%s in, %s out", tokens(m.InputTokens), tokens(m.OutputTokens))
		}
		rows = append(rows, row{&m.TraceSpan, m.Model, extra})
	}
	for i := range t.ToolCalls {
		c := &t.ToolCalls[i]
		extra := ""
		if c.ApprovalID != "" {
			extra = "approval " + fit(c.ApprovalID, 13)
		}
		rows = append(rows, row{&c.TraceSpan, "  " + c.Name, extra})
	}
	for i := range t.ChildTasks {
		c := &t.ChildTasks[i]
		rows = append(rows, row{&c.TraceSpan, c.Kind + " " + c.Name, c.Agent})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.span.StartSeq, b.span.StartSeq) })
	return rows
}

// scale determines the time scale. It goes from the first start to the end of the task or, if the task has not ended,
// to the time of the trace or the latest end, whichever is later. Spans that began after the end of the task, such as
// its fork, are not on the scale.
func (p *tracePrinter) scale(t *v1alpha1.TaskTrace, rows []row) {
	p.to = t.GeneratedAt.Time
	if t.TerminalEvent != nil {
		p.to, p.over = t.TerminalEvent.CreatedAt.Time, true
	}
	for _, r := range rows {
		if at := r.span.StartedAt.Time; p.from.IsZero() || at.Before(p.from) {
			p.from = at
		}
		if end := r.span.EndedAt; !p.over && end != nil && end.After(p.to) {
			p.to = end.Time
		}
	}
	if start := t.Task.StartTime; p.over && p.from.After(p.to) && start != nil {
		p.from = start.Time // all of them came later
	}
}

// late reports whether a span began after the task had ended.
func (p *tracePrinter) late(s *v1alpha1.TraceSpan) bool { return p.over && s.StartedAt.After(p.to) }

func (p *tracePrinter) head(t *v1alpha1.TaskTrace) {
	phase := string(t.Task.Phase)
	if phase == "" {
		phase = "new"
	}
	colour := map[v1alpha1.TaskPhase]style{v1alpha1.TaskSucceeded: green, v1alpha1.TaskFailed: red, v1alpha1.TaskCancelled: yellow}[t.Task.Phase]
	words := []string{p.paint(bold, t.Task.Namespace+"/"+t.Task.Name), p.paint(colour, phase)}
	if took := took(t.Task.StartTime, t.Task.CompletionTime, t.Task.Phase, t.GeneratedAt.Time); took != "" {
		words = append(words, took)
	}
	if t.Task.AgentName != "" {
		words = append(words, "agent "+t.Task.AgentName)
	}
	if t.Task.SessionName != "" {
		words = append(words, "session "+t.Task.SessionName)
	}
	p.line("%s", strings.Join(words, "  "))
	if u := t.Usage; u != nil {
		missing := ""
		if u.UnreportedRequests > 0 {
			missing = fmt.Sprintf(", %d not reported", u.UnreportedRequests)
		}
		p.line("%s: %s tokens in, %s out%s; %s", many(int(u.ModelRequests), "model request"), tokens(u.InputTokens), tokens(u.OutputTokens), missing, many(len(t.ToolCalls), "tool call"))
	}
	if g := t.Gap; g != nil {
		p.line("%s", p.paint(yellow, fmt.Sprintf("events %d to %d are no longer kept (%s)", g.FromSeq, g.ToSeq, g.Reason)))
	}
}

// row draws a span on the time scale.
func (p *tracePrinter) row(r row) {
	s := r.span
	mark, colour := "✓", green
	switch s.Status {
	case v1alpha1.SpanFailed:
		mark, colour = "✗", red
	case v1alpha1.SpanRunning:
		mark, colour = "…", blue
	case v1alpha1.SpanCompleted:
	}
	length, took := p.to.Sub(s.StartedAt.Time), ""
	if s.EndedAt != nil {
		length = s.EndedAt.Sub(s.StartedAt.Time)
		took = duration(length)
	}
	if s.DurationMs != nil {
		took = duration(v1alpha1.Length(*s.DurationMs, time.Millisecond))
	}
	extra := r.extra
	if s.Error != "" {
		extra = clean(s.Error)
	}
	used := 2 + 6 + nameColumns + barColumns + 12
	if p.Width > used {
		extra = fit(extra, p.Width-used)
	}
	bar := p.bar(s.StartedAt.Sub(p.from), length)
	if p.late(s) {
		bar, took = pad("after the end", barColumns), ""
	}
	p.line("%s %5d %s %s %7s  %s", p.paint(colour, mark), s.StartSeq, pad(fit(clean(r.name), nameColumns), nameColumns),
		p.paint(colour, bar), took, p.paint(dim, extra))
}

// bar returns a part of the time scale. A span without duration is still visible.
func (p *tracePrinter) bar(offset, length time.Duration) string {
	total := p.to.Sub(p.from)
	if total <= 0 {
		total = 1
	}
	start := min(int(int64(offset)*barColumns/int64(total)), barColumns-1)
	n := max(1, int((int64(length)*barColumns+int64(total)-1)/int64(total)))
	start = max(0, start)
	n = min(n, barColumns-start)
	return strings.Repeat("·", start) + strings.Repeat("█", n) + strings.Repeat("·", barColumns-start-n)
}

// path sums the critical path by what the task waited for.
func (p *tracePrinter) path(segments []v1alpha1.TraceSegment) {
	var order []string
	sums := map[string]int64{}
	total := int64(0)
	for _, s := range segments {
		key := strings.TrimSpace(s.Kind + " " + s.Name)
		if _, seen := sums[key]; !seen {
			order = append(order, key)
		}
		sums[key] += s.DurationMs
		total += s.DurationMs
	}
	if total == 0 {
		return
	}
	p.line("")
	p.line("%s", p.paint(bold, "What the task waited for"))
	for _, key := range order {
		ms := sums[key]
		p.line("  %s %7s %3d%%", pad(fit(clean(key), nameColumns+4), nameColumns+4), duration(time.Duration(ms)*time.Millisecond), ms*100/total)
	}
}

func (p *tracePrinter) problems(title string, s style, list []v1alpha1.TraceProblem) {
	p.notes(title, len(list), func(i int) (style, string) {
		return s, fmt.Sprintf("#%d %s %s", list[i].Seq, list[i].Type, clean(list[i].Message))
	})
}

// notes prints a list with a title, unless it is empty.
func (p *tracePrinter) notes(title string, n int, text func(int) (style, string)) {
	if n == 0 {
		return
	}
	p.line("")
	p.line("%s", p.paint(bold, title))
	for i := range n {
		s, line := text(i)
		if p.Width > 0 {
			line = fit(line, p.Width-2)
		}
		p.line("  %s", p.paint(s, line))
	}
}
