// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// timeline prints events, one line each, with the time since the first.
type timeline struct {
	*terminal
	out   io.Writer
	first time.Time
	// session shows the task of each event.
	session bool
}

// Columns of a line: sequence, time of day, time since the first event, type.
const (
	seqColumns, clockColumns, sinceColumns, typeColumns = 5, 12, 8, 27
	lineIndent                                          = seqColumns + clockColumns + sinceColumns + typeColumns + 4
)

func (t *timeline) print(e *v1alpha1.ExecutionEvent) error {
	if t.first.IsZero() {
		t.first = e.CreatedAt.Time
	}
	since := "+" + duration(e.CreatedAt.Sub(t.first))
	what := clean(e.Summary)
	if t.session {
		what = e.TaskName + ": " + what
	}
	if t.Width > 0 {
		what = fit(what, max(20, t.Width-lineIndent))
	}
	line := fmt.Sprintf("%*d %s %s %s %s", seqColumns, e.Seq, t.paint(dim, timeOfDay(e.CreatedAt)),
		t.paint(dim, fmt.Sprintf("%*s", sinceColumns, since)), t.paint(styleOf(e), pad(string(e.Type), typeColumns)), what)
	_, err := fmt.Fprintln(t.out, strings.TrimRight(line, " "))
	return err
}

func (t *timeline) gap(g v1alpha1.EventGap) {
	if g.Reason == v1alpha1.GapAhead {
		note(t.out, t.paint(yellow, fmt.Sprintf("      there is no event %d: this is not the stream that it was of, and it is shown from its beginning", g.ToSeq)))
		return
	}
	note(t.out, t.paint(yellow, fmt.Sprintf("      events %d to %d are no longer kept (%s)", g.FromSeq, g.ToSeq, g.Reason)))
}

func timeOfDay(at metav1.MicroTime) string { return at.Local().Format("15:04:05.000") }

// styleOf returns the style that distinguishes problems, ends and less
// important events.
func styleOf(e *v1alpha1.ExecutionEvent) style {
	switch {
	case e.Type == v1alpha1.EventTaskSucceeded, e.Type == v1alpha1.EventApprovalApproved:
		return green
	case e.Severity == v1alpha1.SeverityError:
		return red
	case e.Severity == v1alpha1.SeverityWarning, e.Type == v1alpha1.EventApprovalRequested:
		return yellow
	case e.Severity == v1alpha1.SeverityDebug:
		return dim
	case e.Type == v1alpha1.EventModelMessage:
		return cyan
	}
	return plain
}
