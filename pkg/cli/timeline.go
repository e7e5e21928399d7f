// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// style is an ANSI style; plain output has none.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	blue   style = "34"
	cyan   style = "36"
)

// paint applies a style to text if colours are allowed.
func (a *app) paint(s style, text string) string {
	if !a.Color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// clean makes text of events safe to show on one line of a terminal: control
// characters, which could change the terminal's state, become spaces.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// fit shortens text to a number of columns, with an ellipsis.
func fit(text string, columns int) string {
	if columns < 1 || utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

// pad extends text to a number of columns.
func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-utf8.RuneCountInString(text)))
}

// duration formats a duration in about three digits.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// count formats a number in groups of three digits.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// tokens formats a number of tokens, which may not have been reported.
func tokens(n *int64) string {
	if n == nil {
		return "?"
	}
	return count(*n)
}

// timeline prints events, one line each, with the time since the first.
type timeline struct {
	*app
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
