// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

var day = time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC)

// asks returns a request with a conversation and an answer.
func asks(id string, at time.Time, mode v1alpha1.RecordingMode, answer string, texts ...string) *recording.Request {
	r := &recording.Request{Namespace: "n", ID: id, At: at, Mode: mode}
	for _, text := range texts {
		r.Conversation = append(r.Conversation, v1alpha1.RecordedMessage{Role: "user", Text: text})
	}
	if answer != "" {
		r.Answer = &v1alpha1.RecordedMessage{Role: "assistant", Text: answer}
	}
	return r
}

// keep stores a request and returns what is recorded of it, on one line.
func (p *place) keep(r *recording.Request) string {
	p.t.Helper()
	if err := p.store.KeepRequest(r); err != nil {
		p.t.Fatal(err)
	}
	return p.request(r.ID, r.At)
}

func (p *place) request(id string, at time.Time) string {
	p.t.Helper()
	got, err := p.store.Request("n", id, at)
	if err != nil {
		p.t.Fatal(err)
	}
	if got == nil {
		return "nothing"
	}
	var out []string
	show := func(c *v1alpha1.RecordedPart) {
		if c.Omitted != "" {
			out = append(out, c.Omitted)
			return
		}
		out = append(out, c.Message.Text)
	}
	for i := range got.Conversation {
		show(&got.Conversation[i])
	}
	if got.Answer != nil {
		out = append(out, "=", got.Answer.Message.Text)
	}
	return strings.Join(out, " ")
}

// sizeOf returns how many bytes are kept of the namespace.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	p := open(t, dir, recording.Limits{})
	defer p.close()
	row, ok, err := p.Get([]byte("sn"))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return 0
	}
	return int64(binary.BigEndian.Uint64(row))
}

// TestRequests: a request shows its conversation and its answer, also after the store was opened again; a conversation that grows takes the
// space of what is new; days go as a whole.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir, recording.Limits{})
	if got := p.keep(asks("1", day, "", "b", "a")); got != "a = b" {
		t.Error(got)
	}
	if got := p.keep(asks("2", day, "", "", "a", "b", "c")); got != "a b c" {
		t.Error(got)
	}
	if got := p.keep(asks("3", day, "", "", "b", "a")); got != "b a" { // the same parts in another order
		t.Error(got)
	}
	if got := p.keep(asks("4", day, v1alpha1.RecordingDigests, "", "a")); got != recording.DigestsOnly {
		t.Error(got)
	}
	if got := p.keep(asks("5", day.Add(time.Hour), "", "", "a")); got != "a" {
		t.Error(got)
	}
	p.close()
	p = open(t, dir, recording.Limits{})
	for id, want := range map[string]string{"1": "a = b", "2": "a b c", "3": "b a", "9": "nothing", "5": "nothing"} {
		if got := p.request(id, day); got != want {
			t.Errorf("request %s after the store was opened again: %s, want %s", id, got, want)
		}
	}
	for n, before := range []time.Time{day.Add(time.Minute), day.Add(25 * time.Hour)} {
		if n, err := p.store.ExpireRequests(t.Context(), before.Add(time.Duration(n)*time.Hour)); err != nil || n != 1 {
			t.Errorf("%d days went, %v", n, err)
		}
		if got := p.request("1", day); got != "nothing" {
			t.Errorf("after its day: %s", got)
		}
	}
	if got := p.request("5", day.Add(time.Hour)); got != "nothing" {
		t.Errorf("after its day: %s", got)
	}
	p.close()
	if n := sizeOf(t, dir); n != 0 {
		t.Errorf("%d bytes are left", n)
	}

	dir = t.TempDir()
	p = open(t, dir, recording.Limits{})
	var said []string
	total := int64(0)
	for i := range 100 {
		said = append(said, fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)))
		total += 1000
		p.keep(asks(fmt.Sprint(i), day, "", "", said...))
	}
	p.close()
	if n := sizeOf(t, dir); n < total || n > 2*total {
		t.Errorf("a conversation of %d bytes takes %d", total, n)
	}
}

// TestRequestLimits: what has no room is shown by its size, and then not at all; what fits is never wrong.
func TestRequestLimits(t *testing.T) {
	p := open(t, t.TempDir(), recording.Limits{Namespace: 4000})
	defer p.close()
	long := strings.Repeat("x", 2500)
	if got := p.keep(asks("1", day, "", "", long)); got != long {
		t.Errorf("the first: %.60s", got)
	}
	if got := p.keep(asks("2", day, "", "", long, "y"+long)); got != long+" "+recording.LimitReached {
		t.Errorf("the second: %.60s", got[len(long):])
	}
	for i := range 40 {
		switch got := p.keep(asks(fmt.Sprint("n", i), day, "", "", long, fmt.Sprint(i, long))); {
		case got == "nothing":
			return
		case !strings.HasSuffix(got, recording.LimitReached) && !strings.HasSuffix(got, recording.Missing) && !strings.HasPrefix(got, recording.Missing):
			t.Fatalf("%d: %s", i, got)
		}
	}
	t.Error("there is no end")
}
