// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// page is a Markdown text under construction.
type page struct{ out []byte }

func (p *page) add(s string) { p.out = append(p.out, s...) }

// String returns the text so far.
func (p *page) String() string { return string(p.out) }

// heading starts a section.
func (p *page) heading(level int, title string) {
	p.out = fmt.Appendf(p.out, "\n%s %s\n", strings.Repeat("#", level), title)
}

// text adds a paragraph.
func (p *page) text(format string, args ...any) {
	p.out = fmt.Appendf(p.out, "\n"+format+"\n", args...)
}

// table adds a table. Columns that are empty in every row are left out.
func (p *page) table(columns []string, rows [][]string) {
	var shown []int
	for i := range columns {
		for _, row := range rows {
			if row[i] != "" {
				shown = append(shown, i)
				break
			}
		}
	}
	line := func(cells []string) {
		for _, i := range shown {
			p.add("| " + strings.ReplaceAll(cells[i], "|", `\|`) + " ")
		}
		p.add("|\n")
	}
	p.add("\n")
	line(columns)
	p.add(strings.Repeat("|---", len(shown)) + "|\n")
	for _, row := range rows {
		line(row)
	}
}

// code formats text as code; empty text stays empty.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// prose returns a doc comment as one line, with characters escaped that
// Markdown would take for HTML.
func prose(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(strings.Join(strings.Fields(s), " "))
}
