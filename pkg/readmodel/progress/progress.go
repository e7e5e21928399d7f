// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress turns the plan that an agent keeps while it works into an event, and such events back into the
// plan. The newest event of type PlanUpdated in a task's stream is the plan of the task. The package has no clock and
// no store.
//
// A plan is stored nowhere else, so that one commit makes it durable, ordered and visible to watchers. It counts towards the
// limits of the task's events, although the server writes it. An event carries all of it: its document is the text of the event,
// which holds as many characters as a document may have, and the other fields are its content. A plan that an event could only hold
// in part is refused, so that no part of a plan is ever lost unnoticed.
package progress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Limits of a plan, in characters.
const (
	MaxSummaryChars  = event.MaxSummaryChars
	MaxDocumentChars = event.MaxContentTextChars
)

// content is the content of a PlanUpdated event.
type content struct {
	Summary      string `json:"summary,omitempty"`
	ProgressPct  *int32 `json:"progressPct,omitempty"`
	GoalComplete bool   `json:"goalComplete"`
	Iteration    int32  `json:"iteration"`
}

// Check returns why a plan cannot be stored, and nil if it can. The error names the field and the rule.
func Check(p *v1alpha1.TaskPlan) error {
	switch n, m := utf8.RuneCountInString(p.Summary), utf8.RuneCountInString(p.PlanDocument); {
	case m == 0:
		return fmt.Errorf("planDocument: is required")
	case m > MaxDocumentChars:
		return fmt.Errorf("planDocument: must be at most %d characters, and has %d", MaxDocumentChars, m)
	case n > MaxSummaryChars:
		return fmt.Errorf("summary: must be at most %d characters, and has %d", MaxSummaryChars, n)
	}
	if pct := p.ProgressPct; pct != nil && (*pct < 0 || *pct > 100) {
		return fmt.Errorf("progressPct: must be from 0 to 100, not %d", *pct)
	}
	return nil
}

// Event returns the event that stores a plan which Check accepts. The event is sanitized: it has no secrets. The error
// says that the plan is too long without its secrets, whose replacements can be longer than they are.
func Event(p *v1alpha1.TaskPlan, iteration int32) (*v1alpha1.ExecutionEvent, error) {
	about := map[string]any{"goalComplete": p.GoalComplete, "iteration": iteration}
	if p.Summary != "" {
		about["summary"] = p.Summary
	}
	if p.ProgressPct != nil {
		about["progressPct"] = *p.ProgressPct
	}
	e := event.New(v1alpha1.EventPlanUpdated, v1alpha1.SeverityInfo, "", line(p), about)
	e.ContentText = p.PlanDocument
	if r := event.Sanitize(e); r.Truncated && (e.Truncation.ContentTextTruncated || e.Truncation.ContentJSONTruncated) {
		return nil, fmt.Errorf("planDocument: must be at most %d characters after its secrets were removed", MaxDocumentChars)
	}
	return e, nil
}

// line is the summary of the event.
func line(p *v1alpha1.TaskPlan) string {
	s := "plan updated"
	if p.ProgressPct != nil {
		s += fmt.Sprintf(", %d%%", *p.ProgressPct)
	}
	if p.GoalComplete {
		s += ", goal complete"
	}
	if p.Summary != "" {
		s += ": " + prefix(p.Summary, MaxSummaryChars-len(s)-2)
	}
	return s
}

func prefix(s string, chars int) string {
	for i := range s {
		if chars == 0 {
			return s[:i]
		}
		chars--
	}
	return s
}

// Of returns the plan that a PlanUpdated event holds. first is the first such event of the task. Fields that an event
// of another producer lacks are empty.
func Of(first, newest *v1alpha1.ExecutionEvent) *v1alpha1.TaskPlan {
	p := &v1alpha1.TaskPlan{PlanDocument: newest.ContentText, CreatedAt: &first.CreatedAt, UpdatedAt: &newest.CreatedAt}
	p.Name, p.Namespace = newest.TaskName, newest.StreamNamespace
	var c content
	if newest.Content != nil {
		_ = json.Unmarshal(newest.Content.Raw, &c) // content of another form has none of the fields
	}
	p.Summary, p.ProgressPct, p.GoalComplete, p.Iteration = c.Summary, c.ProgressPct, c.GoalComplete, c.Iteration
	return p
}

// Same reports whether two sanitized PlanUpdated events hold the same plan.
func Same(a, b *v1alpha1.ExecutionEvent) bool {
	return a.ContentText == b.ContentText && a.Content != nil && b.Content != nil && bytes.Equal(a.Content.Raw, b.Content.Raw)
}
