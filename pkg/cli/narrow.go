// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/visible"
)

const (
	// columnGap is the number of blanks between columns, and narrowest what a column with its gap takes, as in kubectl's tables.
	columnGap, narrowest = 3, 6
	// leastCell and leastName are how many characters a cell keeps, and one with a name.
	leastCell, leastName = 5, 20
)

// limits returns how many characters the cells of each column may have, so that rows fit on a screen. The widest columns give way
// first, and those with names, which come first and are needed to go on, last.
func limits(rows [][]string, screen, names int) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := func() int {
		n := 0
		for i, w := range widths {
			if i < len(widths)-1 {
				w = max(w+columnGap, narrowest)
			}
			n += w
		}
		return n
	}
	shrink := func(from, to, least int) {
		for total() > screen && from < to {
			i := from + slices.Index(widths[from:to], slices.Max(widths[from:to]))
			if widths[i] <= least {
				return
			}
			widths[i]--
		}
	}
	names = min(names, len(widths))
	shrink(names, len(widths), leastCell)
	shrink(0, names, leastName)
	return widths
}

// narrow shortens cells so that rows fit on the screen, if there is one.
func (term *terminal) narrow(rows [][]string, names int) [][]string {
	if term.Width > 0 {
		most := limits(rows, term.Width, names)
		for _, row := range rows {
			for i := range row {
				row[i] = fit(row[i], most[i])
			}
		}
	}
	return rows
}

// narrowPrinter prints tables of the server so that they fit on the screen. Rows of a watch are below those that were printed before.
type narrowPrinter struct {
	screen     int
	namespaced bool
	columns    []metav1.TableColumnDefinition
	headed     bool
	// widths are those of the columns so far.
	widths []int
}

// PrintObj prints a table.
func (p *narrowPrinter) PrintObj(obj runtime.Object, out io.Writer) error {
	t, ok := obj.(*metav1.Table)
	if !ok {
		return fmt.Errorf("the server answered with %T and not with a table", obj)
	}
	if len(t.ColumnDefinitions) > 0 {
		p.columns = t.ColumnDefinitions
	}
	names, rows := 1, make([][]string, 0, len(t.Rows)+1)
	if p.namespaced {
		names = 2
	}
	if !p.headed {
		rows = append(rows, p.row("NAMESPACE", func(i int) any { return strings.ToUpper(p.columns[i].Name) }))
	}
	for _, r := range t.Rows {
		rows = append(rows, p.row(namespaceOf(r.Object.Object), func(i int) any {
			if i < len(r.Cells) {
				return r.Cells[i]
			}
			return nil
		}))
	}
	before := make([]string, len(p.widths))
	for i, w := range p.widths {
		before[i] = strings.Repeat(" ", w)
	}
	p.headed, p.widths = true, limits(append([][]string{before}, rows...), p.screen, names)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(pad(fit(cell, p.widths[i]), max(p.widths[i]+columnGap, narrowest)))
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// row returns the cells that are shown.
func (p *narrowPrinter) row(namespace string, cell func(i int) any) []string {
	var cells []string
	if p.namespaced {
		cells = append(cells, namespace)
	}
	for i, c := range p.columns {
		if c.Priority != 0 {
			continue
		}
		text := "<none>" // as kubectl shows it
		if v := cell(i); v != nil {
			text = visible.Line(fmt.Sprint(v))
		}
		cells = append(cells, text)
	}
	return cells
}

// namespaceOf returns the namespace of a row's object.
func namespaceOf(o runtime.Object) string {
	if m, ok := o.(metav1.Object); ok {
		return m.GetNamespace()
	}
	return ""
}

// columns prints rows of cells below each other, of which the first is that of the headings and the first column has names.
func (term *terminal) columns(rows [][]string) error { return term.wholeColumns(term.narrow(rows, 1)) }

// wholeColumns prints them however wide they are.
func (term *terminal) wholeColumns(rows [][]string) error {
	w := tabwriter.NewWriter(term.Out, 0, 0, columnGap, ' ', 0)
	for _, r := range rows {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(r, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}
