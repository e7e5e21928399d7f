// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// all reads a stream to its end.
func all(r io.Reader, o Options) (events []Event, comments []string, last *Reader, err error) {
	o.Comment = func(text string) { comments = append(comments, text) }
	last = NewReader(r, o)
	for {
		e, err := last.Next()
		if err != nil {
			return events, comments, last, err
		}
		events = append(events, *e)
	}
}

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []Event
	}{
		{"empty", "", nil},
		{"one", "data: a\n\n", []Event{{"", "message", "a"}}},
		{"whole", "id: 7\nevent: x\ndata: a\n\n", []Event{{"7", "x", "a"}}},
		{"lines", "data: a\ndata:\ndata:  b\n\n", []Event{{"", "message", "a\n\n b"}}},
		{"empty data", "data\n\ndata\ndata\n\n", []Event{{"", "message", ""}, {"", "message", "\n"}}},
		{"crlf", "id: 7\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []Event{{"7", "message", "a"}, {"7", "message", "b"}}},
		{"cr", "id: 7\rdata: a\r\rdata: b\r\r", []Event{{"7", "message", "a"}, {"7", "message", "b"}}},
		{"mixed", "data: a\r\ndata: b\rdata: c\n\r\n", []Event{{"", "message", "a\nb\nc"}}},
		{"byte order mark", "\ufeffdata: a\n\n", []Event{{"", "message", "a"}}},
		{"only the first mark", "\ufeff\ufeffdata: a\n\ndata: b\n\n", []Event{{"", "message", "b"}}},
		{"no mark on later lines", "\n\ufeffdata: a\n\n", nil},
		{"cut off", "data: a\n\ndata: b\n", []Event{{"", "message", "a"}}},
		{"cut off in a line", "data: a\n\ndata: b\n\ndata: c", []Event{{"", "message", "a"}, {"", "message", "b"}}},
		{"the type is of one event", "event: x\n\ndata: a\n\nevent: y\ndata: b\n\ndata: c\n\n", []Event{{"", "message", "a"}, {"", "y", "b"}, {"", "message", "c"}}},
		{"the id stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []Event{{"1", "message", "a"}, {"1", "message", "b"}, {"", "message", "c"}}},
		{"an id with NUL is ignored", "id: 1\ndata: a\n\nid: 2\x00\ndata: b\n\n", []Event{{"1", "message", "a"}, {"1", "message", "b"}}},
		{"unknown fields", "foo: a\ndata\u00a0: x\nDATA: b\n data: c\n\n", nil},
		{"colons", "data:a:b\ndata::\n\n", []Event{{"", "message", "a:b\n:"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, _, err := all(strings.NewReader(tc.in), Options{})
			if d := cmp.Diff(tc.want, got); d != "" || !errors.Is(err, io.EOF) {
				t.Errorf("error %v (-want +got):\n%s", err, d)
			}
			slow, _, _, _ := all(iotest.OneByteReader(strings.NewReader(tc.in)), Options{})
			if d := cmp.Diff(tc.want, slow); d != "" {
				t.Errorf("byte by byte (-want +got):\n%s", d)
			}
		})
	}
}

func TestReadAside(t *testing.T) {
	got, comments, r, err := all(strings.NewReader(": heartbeat\n\n:\nid: 9\n\nretry: 1500\nretry: 9x\nretry: 99999999999999999999\n\n"), Options{})
	if len(got) > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("events %v, error %v", got, err)
	}
	if d := cmp.Diff([]string{"heartbeat", ""}, comments); d != "" {
		t.Errorf("comments (-want +got):\n%s", d)
	}
	if r.LastID() != "9" || r.Retry() != 1500*time.Millisecond {
		t.Errorf("last id %q, retry %v", r.LastID(), r.Retry())
	}
}

// A frame is returned as soon as its last line ends, even if it ends in CR, which an LF might follow.
func TestReadDoesNotWaitForMore(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	r := NewReader(in, Options{})
	for _, frame := range []string{"data: a\r\r", "\ndata: b\n\n", "data: c\r\n\r\n"} {
		go io.WriteString(out, frame) //nolint:errcheck // then the read fails
		if e, err := r.Next(); err != nil || !strings.Contains(frame, "data: "+e.Data) {
			t.Fatalf("%q gave %v, %v", frame, e, err)
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	line := "data: " + strings.Repeat("x", 100_000) + "\n"
	for _, tc := range []struct {
		name, in string
		opts     Options
		want     error
	}{
		{"line", line + "\n", Options{MaxLine: len(line) - 2}, ErrTooLong},
		{"line fits", line + "\n", Options{MaxLine: len(line) - 1}, io.EOF},
		{"line without end", line[:90_000], Options{MaxLine: 80_000}, ErrTooLong},
		{"data", line + line + "\n", Options{MaxData: 200_000}, ErrTooLong},
		{"data fits", line + line + "\n", Options{MaxData: 200_001}, io.EOF},
		{"defaults", strings.Repeat(line, 40) + "\n", Options{}, io.EOF},
		{"too much by default", strings.Repeat(line, 42) + "\n", Options{}, ErrTooLong},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, _, _, err := all(strings.NewReader(tc.in), tc.opts)
			if !errors.Is(err, tc.want) || (len(events) == 1) != errors.Is(tc.want, io.EOF) {
				t.Errorf("%d events, error %v, want %v", len(events), err, tc.want)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	var b []byte
	b = AppendComment(b, "heart\nbeat")
	b = Append(b, "4", "x", []byte("a\r\nb\rc\n"))
	b = Append(b, "5\n6", "y\r\x00z", nil)
	want := ": heart beat\n\nid: 4\nevent: x\ndata: a\ndata: b\ndata: c\ndata: \n\nid: 56\nevent: yz\ndata: \n\n"
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Everything written is read back unchanged, no matter how it is split on arrival.
func FuzzRoundTrip(f *testing.F) {
	f.Add("1", "execution_event", `{"seq":1}`)
	f.Add("", "", "a\r\n\nb\r")
	f.Add("\x00\n", "\ufeff", "\ufeffid: 3\n\n")
	f.Fuzz(func(t *testing.T, id, event, data string) {
		b := AppendComment(nil, data)
		b = Append(b, id, event, []byte(data))
		b = Append(b, "end", "", nil)
		clean := strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace
		want := []Event{{clean(id), clean(event), strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)}, {"end", "message", ""}}
		if want[0].Type == "" {
			want[0].Type = "message"
		}
		o := Options{MaxLine: 1 << 30, MaxData: 1 << 30}
		for _, in := range []io.Reader{strings.NewReader(string(b)), iotest.OneByteReader(strings.NewReader(string(b)))} {
			got, _, _, err := all(in, o)
			if d := cmp.Diff(want, got); d != "" || !errors.Is(err, io.EOF) {
				t.Fatalf("error %v (-want +got):\n%s", err, d)
			}
		}
	})
}

// Any input terminates without a panic and gives the same events, no matter how it is split.
func FuzzRead(f *testing.F) {
	f.Add("id: 1\nevent: x\rdata: a\r\n\r\n: c\n\nretry: 5\n\n")
	f.Add("\ufeff\r\n\ndata\n\ndata")
	f.Fuzz(func(t *testing.T, in string) {
		o := Options{MaxLine: 64, MaxData: 128}
		whole, c1, r1, err1 := all(strings.NewReader(in), o)
		parts, c2, r2, err2 := all(iotest.OneByteReader(strings.NewReader(in)), o)
		if d := cmp.Diff(whole, parts) + cmp.Diff(c1, c2); d != "" || r1.LastID() != r2.LastID() || errors.Is(err1, ErrTooLong) != errors.Is(err2, ErrTooLong) {
			t.Fatalf("errors %v and %v (-whole +parts):\n%s", err1, err2, d)
		}
		for _, e := range whole {
			if len(e.Data) > o.MaxData {
				t.Fatalf("data of %d bytes", len(e.Data))
			}
		}
	})
}
