// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/visible"
)

// Limits of what an agent says, in bytes and in findings.
const (
	maxSaid     = 512 << 10
	maxSummary  = 4096
	maxFindings = 50
	// maxObjects is how many braces are tried as the beginning of an object.
	maxObjects = 2000
)

// saidReview is what a reviewer says, as JSON.
type saidReview struct {
	Verdict  v1alpha1.MonitorVerdict   `json:"verdict"`
	Summary  string                    `json:"summary"`
	Findings []v1alpha1.MonitorFinding `json:"findings"`
}

// reviewOf returns what a reviewer said; false if that cannot be read. The verdict is one that a reviewer may give.
func reviewOf(said string) (saidReview, bool) {
	var r saidReview
	ok := lastObject(said, func(raw []byte) bool {
		var one saidReview
		if json.Unmarshal(raw, &one) != nil {
			return false
		}
		switch one.Verdict {
		case v1alpha1.MonitorVerdictPassed, v1alpha1.MonitorVerdictNeedsChanges, v1alpha1.MonitorVerdictNeedsHuman, v1alpha1.MonitorVerdictSecuritySensitive:
			r = one
			return true
		}
		return false
	})
	if !ok {
		return r, false
	}
	r.Summary = clip.Marked(visible.Plain(r.Summary), maxSummary)
	r.Findings = r.Findings[:min(len(r.Findings), maxFindings)]
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Path, f.Title, f.Body = clip.Text(visible.Line(f.Path), 1024), clip.Marked(visible.Line(f.Title), 512), clip.Marked(visible.Plain(f.Body), maxSummary)
		f.Line = max(f.Line, 0)
		if priorityOf(f.Priority) < 0 {
			f.Priority = v1alpha1.MonitorP3
		}
	}
	return r, true
}

// priorityOf returns how much a finding matters, 0 most; -1 for what is no priority.
func priorityOf(p v1alpha1.MonitorPriority) int {
	return slices.Index([]v1alpha1.MonitorPriority{v1alpha1.MonitorP0, v1alpha1.MonitorP1, v1alpha1.MonitorP2, v1alpha1.MonitorP3}, p)
}

// saidPlan is what a planner says, as JSON.
type saidPlan struct {
	Risk v1alpha1.MonitorRisk `json:"risk"`
	Plan string               `json:"plan"`
}

// planOf returns what a planner said; false if that cannot be read.
func planOf(said string) (saidPlan, bool) {
	var p saidPlan
	ok := lastObject(said, func(raw []byte) bool {
		var one saidPlan
		if json.Unmarshal(raw, &one) != nil || strings.TrimSpace(one.Plan) == "" {
			return false
		}
		switch one.Risk {
		case v1alpha1.MonitorRiskLow, v1alpha1.MonitorRiskMedium, v1alpha1.MonitorRiskHigh:
			p = one
			return true
		}
		return false
	})
	p.Plan = clip.Marked(visible.Plain(p.Plan), maxPlan)
	return p, ok
}

// lastObject finds the last JSON object in a text that take takes. Agents surround what they were asked for with words.
func lastObject(text string, take func(raw []byte) bool) bool {
	text = text[max(0, len(text)-maxSaid):]
	found, tries := false, 0
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		at += i
		if tries++; tries > maxObjects {
			break
		}
		d := json.NewDecoder(strings.NewReader(text[at:]))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			at++
			continue
		}
		if take(bytes.TrimSpace(raw)) {
			found = true
		}
		at += int(d.InputOffset())
	}
	return found
}
