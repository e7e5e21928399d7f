// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report collects the figures of a benchmark run, prints each as it
// arrives, as a line of a table, and writes all of them as JSON.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Better is the direction in which a figure improves.
type Better string

// Directions.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Row is one figure, beside the alternative measured in the same run where there is one.
type Row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Better Better  `json:"better"`
	Ours   float64 `json:"ours"`
	// Other is the alternative's figure, or an aim where OtherName says so. It counts if OtherName is set.
	Other     float64 `json:"other"`
	OtherName string  `json:"otherName"`
	// Within is by how many percent the figure may be worse than Other, by our aim; 0 if there is none.
	Within int `json:"within,omitempty"`
	// Times is how many times better than Other the figure should be, by our aim; 0 if there is none.
	Times float64 `json:"times,omitempty"`
	// Ratio above 1 means that ours is better; Add computes it. It is 0 if there is nothing to compare.
	Ratio float64 `json:"ratio"`
}

// Report is a table of rows. It is not safe for concurrent use.
type Report struct {
	out   io.Writer
	rows  []Row
	title bool
}

// New returns a report that prints to out.
func New(out io.Writer) *Report { return &Report{out: out} }

const line = "%-46s %14s %-12s %14s %-16s %8s  %s\n"

// Add computes the ratio, prints the row and keeps it.
func (r *Report) Add(row Row) error {
	switch {
	case row.Other == 0 || row.Ours == 0:
	case row.Better == Lower:
		row.Ratio = row.Other / row.Ours
	default:
		row.Ratio = row.Ours / row.Other
	}
	r.rows = append(r.rows, row)
	if !r.title {
		r.title = true
		if _, err := fmt.Fprintf(r.out, line, "", "ours", "", "other", "", "ratio", "aim"); err != nil {
			return err
		}
	}
	var other, ratio string
	if row.OtherName != "" {
		other = number(row.Other)
	}
	if row.Ratio != 0 {
		ratio = number(row.Ratio) + "x"
	}
	_, err := fmt.Fprintf(r.out, line, row.Name, number(row.Ours), row.Unit, other, row.OtherName, ratio, row.aim())
	return err
}

// aim says what is aimed at, and whether it is met.
func (r Row) aim() string {
	words := map[bool]string{true: "met", false: "missed"}
	part := float64(r.Within) / 100
	switch {
	case r.Within > 0 && r.Better == Lower:
		return fmt.Sprintf("within %d %%: %s", r.Within, words[r.Ours <= r.Other*(1+part)])
	case r.Within > 0:
		return fmt.Sprintf("within %d %%: %s", r.Within, words[r.Ours >= r.Other*(1-part)])
	case r.Times > 0:
		return fmt.Sprintf("%gx: %s", r.Times, words[r.Ratio >= r.Times])
	case strings.HasPrefix(r.OtherName, "(aim"):
		return words[r.Ratio >= 1]
	}
	return ""
}

// number prints three significant digits, or whole units.
func number(f float64) string {
	switch {
	case f >= 1e6:
		return fmt.Sprintf("%.2fM", f/1e6)
	case f >= 1e4:
		return fmt.Sprintf("%.1fk", f/1e3)
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	default:
		return fmt.Sprintf("%.3g", f)
	}
}

// Write stores the rows as a JSON list, making the folder where needed.
func (r *Report) Write(path string) error {
	data, err := json.MarshalIndent(r.rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
