// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	human "k8s.io/apimachinery/pkg/util/duration"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/visible"
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
func (term *terminal) paint(s style, text string) string {
	if !term.Color || s == plain || text == "" {
		return text
	}
	return term.screen.Paint(string(s), text)
}

// clean puts the text of somebody else on one line. What it must not do to a terminal, Out and Err prevent for all text.
func clean(text string) string { return visible.Line(text) }

// age formats how long ago a time was, as kubectl does.
func (term *terminal) age(at time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return human.HumanDuration(term.clock.Since(at))
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

// took says how long a task took, or has run until now; empty if that is not known. Tables, trees, descriptions and traces say this.
func took(start, end *metav1.Time, phase v1alpha1.TaskPhase, now time.Time) string {
	if d, known := v1alpha1.Lasted(start, end, phase, now); known {
		return length(d)
	}
	return ""
}

// length formats a duration that is in whole seconds.
func length(d time.Duration) string {
	switch {
	case d < time.Second:
		return "<1s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return duration(d)
}

// count formats a number in groups of three digits.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// many is a number of things, in words.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(int64(n)) + " " + thing
}

// tokens formats a number of tokens, which may not have been reported.
func tokens(n *int64) string {
	if n == nil {
		return "?"
	}
	return count(*n)
}
