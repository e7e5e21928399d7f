// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/kit"
)

func open(t *testing.T, path string) (*File, []string) {
	t.Helper()
	f, pending, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var texts []string
	for _, r := range pending {
		texts = append(texts, string(r.Data))
	}
	return f, texts
}

func add(t *testing.T, f *File, text string) int64 {
	t.Helper()
	end, err := f.Append([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// TestTornAtEachByte cuts a file after each of its bytes, as a crash may: every complete record
// is found, and new ones are appended after them.
func TestTornAtEachByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, _ := open(t, path)
	records := []string{"first", "", "third, which is longer", "x"}
	var ends []int64
	for _, r := range records {
		ends = append(ends, add(t, f, r)+headerBytes)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		torn := filepath.Join(t.TempDir(), "torn")
		if err := os.WriteFile(torn, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i, end := range ends {
			if int64(cut) >= end {
				want = append(want, records[i])
			}
		}
		f, got := open(t, torn)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("cut after %d bytes: %s", cut, diff)
		}
		add(t, f, "new")
		if _, got := open(t, torn); !cmp.Equal(got, append(want, "new")) {
			t.Fatalf("cut after %d bytes: then %q", cut, got)
		}
	}
}

// TestAcknowledged: a random history of appends, marks and openings gives back
// what was not acknowledged, in order, and the file stays small.
func TestAcknowledged(t *testing.T) {
	seeds := uint64(3)
	if kit.Offered(kit.Minutes) {
		seeds = 10
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "f")
		f, _ := open(t, path)
		var want []string
		var ends []int64
		for i := range 400 {
			switch random.IntN(10) {
			case 0:
				var got []string
				if f, got = open(t, path); !cmp.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %d records, want %d", seed, i, len(got), len(want))
				}
			case 1, 2, 3:
				if n := random.IntN(len(want) + 1); n > 0 {
					if err := f.Acknowledge(ends[n-1]); err != nil {
						t.Fatal(err)
					}
					want, ends = want[n:], ends[n:]
				}
				if len(want) == 0 {
					want = nil
				}
			default:
				text := fmt.Sprint(i, string(bytes.Repeat([]byte("."), random.IntN(20000))))
				want, ends = append(want, text), append(ends, add(t, f, text))
			}
			if f.Pending() != (len(want) > 0) {
				t.Fatalf("seed %d, step %d: pending %v with %d records", seed, i, f.Pending(), len(want))
			}
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 2*rewriteBytes+int64(len(want))*20100 {
			t.Errorf("seed %d: %d bytes with %d records, %v", seed, info.Size(), len(want), err)
		}
	}
}

// TestAMarkThatIsNone: after an invalid mark everything is sent again.
func TestAMarkThatIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, _ := open(t, path)
	end := add(t, f, "one")
	add(t, f, "two")
	if err := f.Acknowledge(end); err != nil {
		t.Fatal(err)
	}
	if _, got := open(t, path); !cmp.Equal(got, []string{"two"}) {
		t.Fatalf("%q", got)
	}
	for _, mark := range []int64{end + 1, 1 << 60, -1} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copy(raw, header(0, mark))
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, got := open(t, path); !cmp.Equal(got, []string{"one", "two"}) {
			t.Errorf("mark %d: %q", mark, got)
		}
	}
	if f.Acknowledge(1<<40) == nil {
		t.Error("a mark after the end was taken")
	}
}

func TestTooLargeRecord(t *testing.T) {
	f, _ := open(t, filepath.Join(t.TempDir(), "f"))
	if _, err := f.Append(make([]byte, MaxRecord+1)); err == nil || f.Pending() {
		t.Errorf("%v", err)
	}
}

// FuzzParse: any content of a file is parsed without a crash, and the records are the same
// after the file was repaired.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(header(5, 5))
	f.Add(header(0, recordHeader+3)) // where the record that is added below ends
	f.Add(append(header(0, 0), 3, 0, 0, 0, 1, 2, 3, 4, 'a', 'b', 'c'))
	path := filepath.Join(f.TempDir(), "seed")
	s, _, err := OpenFile(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"one", "", "three"} {
		if _, err := s.Append([]byte(text)); err != nil {
			f.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		first, pending := open(t, path)
		add(t, first, "new")
		if _, again := open(t, path); !cmp.Equal(again, append(pending, "new")) {
			t.Errorf("%q, then %q", pending, again)
		}
	})
}

func openSpool(t *testing.T, dir string) *Spool {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSpool follows a spool from its worker to the one that delivers it.
func TestSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	if Undelivered(dir) || Ended(dir) {
		t.Error("a run without a spool has something to deliver")
	}
	s := openSpool(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second worker: %v", err)
	}
	if Undelivered(dir) {
		t.Error("an empty spool has something to deliver")
	}
	end := add(t, s.Events, "event")
	add(t, s.Log, "line")
	if err := s.Events.Acknowledge(end); err != nil {
		t.Fatal(err)
	}
	if !Undelivered(dir) || Ended(dir) {
		t.Error("a line of log is not seen")
	}
	want := End{Result: "text", Termination: runspec.Termination{Reason: "Completed"}, Content: map[string]any{"exitCode": 0.0}}
	if err := s.Keep(want); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openSpool(t, dir)
	got, err := ReadEnd(dir)
	if err != nil || !cmp.Equal(*got, want) || !Ended(dir) || !Undelivered(dir) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(s.PendingEvents) != 0 || len(s.PendingLog) != 1 || string(s.PendingLog[0].Data) != "line" {
		t.Errorf("%v %v", s.PendingEvents, s.PendingLog)
	}
	if err := s.Delivered(); err != nil || Undelivered(dir) {
		t.Errorf("still undelivered: %v", err)
	}
}

// TestEndIsWhole: an incomplete end does not count.
func TestEndIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := openSpool(t, dir)
	if err := os.WriteFile(filepath.Join(dir, endName+".new"), []byte(`{"result":"ha`), 0o600); err != nil {
		t.Fatal(err)
	}
	if end, err := ReadEnd(dir); end != nil || err != nil || Ended(dir) || Undelivered(dir) {
		t.Errorf("%+v, %v", end, err)
	}
	if err := s.Keep(End{Result: "half"}); err != nil {
		t.Fatal(err)
	}
	if end, err := ReadEnd(dir); err != nil || end.Result != "half" {
		t.Errorf("%+v, %v", end, err)
	}
	// A program of the run may put anything there. What is not a regular file is ignored.
	if err := os.Remove(filepath.Join(dir, endName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, endName)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEnd(dir); err == nil || Ended(dir) {
		t.Errorf("a link was followed: %v", err)
	}
}
