// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestTailKeepsTheLastLines(t *testing.T) {
	for _, tc := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 2, ""},
		{"a", 2, "a"},
		{"a\nb\n", 2, "a\nb\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc", 2, "b\nc"},
		{"a\n\n\n", 2, "\n\n"},
		{"a\nb", 1, "b"},
	} {
		for n := 1; n <= len(tc.text)+1; n++ {
			var out bytes.Buffer
			e := &tail{w: &out, lines: tc.lines}
			for rest := tc.text; rest != ""; rest = rest[min(n, len(rest)):] {
				_, _ = e.Write([]byte(rest[:min(n, len(rest))]))
			}
			if err := e.Close(); err != nil || out.String() != tc.want {
				t.Errorf("%q in parts of %d: %q, %v, want %q", tc.text, n, out.String(), err, tc.want)
			}
		}
	}
	var out bytes.Buffer
	long := &tail{w: &out, lines: 3}
	for range 30 {
		_, _ = long.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	if err := long.Close(); err != nil || out.Len() != maxTailBytes {
		t.Errorf("%d bytes are kept, want %d: %v", out.Len(), maxTailBytes, err)
	}
}

func TestLinesBecomeEvents(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	var out bytes.Buffer
	l := newLines(&out, c, logView{after: 100})
	take := func(text, want string) {
		t.Helper()
		out.Reset()
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		if out.String() != want {
			t.Errorf("%q became %q, want %q", text, out.String(), want)
		}
	}
	take("a\nb\r\n", "id: 102\ndata: a\n\nid: 105\ndata: b\n\n")
	take("half", "")
	take(" line\n\n", "id: 115\ndata: half line\n\nid: 116\ndata: \n\n")
	take("1%\r2%\n", "id: 122\ndata: 1%\ndata: 2%\n\n")
	c.Step(heartbeat - 1)
	take("", "")
	c.Step(1)
	take("", ": heartbeat\n\n")
	take("", "")
	c.Step(heartbeat)
	take("x\n", "id: 124\ndata: x\n\n")
	take(strings.Repeat("y", maxLine+1), fmt.Sprintf("id: %d\ndata: %s\n\n", 124+maxLine+1, strings.Repeat("y", maxLine+1)))
	take("end", "")
	out.Reset()
	if err := l.Close(); err != nil || out.String() != fmt.Sprintf("id: %d\ndata: end\n\n", 124+maxLine+4) {
		t.Errorf("at the end: %q %v", out.String(), err)
	}
}
