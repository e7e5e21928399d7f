// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestPages: what is longer than the terminal is read screen by screen before the question, and a reader who stops has not decided.
func TestPages(t *testing.T) {
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	lines[8] = ""
	text := strings.Join(lines, "\n") + "\n"
	const first, second = "-- 6 more lines, 5 not blank: Enter goes on, q ends -- ", "-- 2 more lines, 1 not blank: Enter goes on, q ends -- "
	for _, c := range []struct {
		in, asked string
		height    int
		shown     int
		err       error
	}{
		{"", "", 0, 10, nil},
		{"", "", 12, 10, nil},
		{"\n\n", first + second, 6, 10, nil},
		{"\nq\n", first + second, 6, 8, errNotConfirmed},
		{"", first + "\n", 6, 4, errNotConfirmed},
	} {
		var out, asked strings.Builder
		term := &terminal{Streams: Streams{In: strings.NewReader(c.in), Out: &out, Err: &asked, Width: 80, Height: c.height}}
		if err := term.page(t.Context(), &out, text); !errors.Is(err, c.err) || asked.String() != c.asked || out.String() != strings.Join(lines[:c.shown], "\n")+"\n" {
			t.Errorf("height %d, %q: %v\n%s%s", c.height, c.in, err, &out, &asked)
		}
	}
	var out, asked strings.Builder
	term := &terminal{Streams: Streams{In: strings.NewReader("\n\n"), Out: &out, Err: &asked, Width: 10, Height: 6}}
	if err := term.page(t.Context(), &out, "begin\n"+strings.Repeat("x", 35)+"\nend\n"); err != nil || !strings.HasPrefix(asked.String(), "-- 2 more lines") || !strings.Contains(asked.String(), "-- 1 more line, ") {
		t.Errorf("a long line takes several rows: %v %s", err, &asked) // one screen has four
	}
}
