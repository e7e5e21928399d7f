// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/visible"
)

// Arguments returns the arguments of a call on one line: JSON without secrets, escaped by visible.Exact. It is empty if the
// request has no preview.
func Arguments(s *v1alpha1.ApprovalSpec) string {
	v, ok := arguments(s)
	if !ok {
		return ""
	}
	return visible.Exact(string(encode(v)))
}

// Lines returns the arguments of a call as a person reads them before a decision: JSON without secrets, a line for each member,
// escaped by visible.Exact. A text of several lines is shown as these lines, and how many there are. Emptiness that would move
// the rest out of view is folded, with words that say how much it is. There are none if the request has no preview.
func Lines(s *v1alpha1.ApprovalSpec) []string {
	v, ok := arguments(s)
	if !ok {
		return nil
	}
	p := &page{}
	p.value("", "", v, "")
	return p.lines
}

// arguments decodes the preview, in which numbers keep their digits.
func arguments(s *v1alpha1.ApprovalSpec) (v any, ok bool) {
	if s.TargetArgsPreview == nil || len(s.TargetArgsPreview.Raw) == 0 {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(s.TargetArgsPreview.Raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(s.TargetArgsPreview.Raw), true
	}
	return v, true
}

// page is what a person reads.
type page struct{ lines []string }

const step = "  "

// value adds a value after the beginning of its line, and what ends it.
func (p *page) value(indent, begin string, v any, end string) {
	switch t := v.(type) {
	case map[string]any:
		if len(t) == 0 {
			p.add(indent, begin+"{}"+end)
			return
		}
		p.add(indent, begin+"{")
		names := slices.Sorted(maps.Keys(t))
		for i, name := range names {
			p.value(indent+step, string(encode(name))+": ", t[name], comma(i, len(names)))
		}
		p.add(indent, "}"+end)
	case []any:
		if len(t) == 0 {
			p.add(indent, begin+"[]"+end)
			return
		}
		p.add(indent, begin+"[")
		for i := range t {
			p.value(indent+step, "", t[i], comma(i, len(t)))
		}
		p.add(indent, "]"+end)
	case string:
		if strings.Contains(t, "\n") {
			p.text(indent, begin, t)
			return
		}
		p.add(indent, begin+string(encode(t))+end)
	default:
		p.add(indent, begin+string(encode(v))+end)
	}
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// fewBlank is how many blank lines are shown as they are.
const fewBlank = 3

// text adds a text of several lines.
func (p *page) text(indent, begin, text string) {
	lines := strings.Split(text, "\n")
	about := fmt.Sprintf("%d lines", len(lines))
	if n := Blank(lines); n > 0 {
		about += fmt.Sprintf(", %d of them blank", n)
	}
	p.add(indent, begin+"("+about+")")
	for i := 0; i < len(lines); i++ {
		to := i
		for to < len(lines) && Blank(lines[to:to+1]) == 1 {
			to++
		}
		if to-i > fewBlank {
			p.add(indent+step, fmt.Sprintf("(%d blank lines)", to-i))
			i = to - 1
			continue
		}
		p.add(indent+step, "| "+lines[i])
	}
}

// Blank returns how many lines have nothing to see.
func Blank(lines []string) (n int) {
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			n++
		}
	}
	return n
}

// spaces are more than a line's indentation needs.
var spaces = regexp.MustCompile(` {80,}`)

func (p *page) add(indent, line string) {
	line = spaces.ReplaceAllStringFunc(line, func(s string) string { return fmt.Sprintf("⟨%d spaces⟩", len(s)) })
	p.lines = append(p.lines, indent+visible.Exact(line))
}

// Exact reports whether the preview shows the complete arguments: no secret was removed and no text was
// cut, so the digest of the preview is the one that the approval is for.
func Exact(s *v1alpha1.ApprovalSpec) bool {
	if s.TargetArgsPreview == nil {
		return false
	}
	digest, err := Digest(s.TargetArgsPreview.Raw)
	return err == nil && digest == s.TargetArgsDigest
}
