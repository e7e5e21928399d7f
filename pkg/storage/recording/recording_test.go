// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/test/kit"
)

// place is a log with recordings in a folder.
type place struct {
	t     *testing.T
	store *recording.Store
	log   *eventlog.Log
	engine.Engine
	close func()
}

func open(t *testing.T, dir string, l recording.Limits) *place {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, store: recording.New(e, l), Engine: e}
	if p.log, err = eventlog.Open(t.Context(), e, eventlog.Options{Clock: clock.RealClock{}, Projections: []eventlog.Projection{p.store}}); err != nil {
		t.Fatal(err)
	}
	p.close = func() {
		if err := p.log.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	return p
}

// append appends one event of a task and attempt with what is recorded beside it, and returns its seq.
func (p *place) append(uid types.UID, attempt int32, key string, mode v1alpha1.RecordingMode, r v1alpha1.EventRecording) int64 {
	p.t.Helper()
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestStarted, Attempt: attempt, DedupKey: key}
	prepared, err := recording.Prepare(e, &r, mode)
	if err != nil {
		p.t.Fatal(err)
	}
	clean := eventlog.Sanitize([]*v1alpha1.ExecutionEvent{e})
	stored, err := p.log.AppendSanitized(eventlog.WithNote(p.t.Context(), recording.Given{clean.Events()[0]: prepared}),
		eventlog.Stream{Namespace: "n", Task: "t-" + string(uid), UID: uid}, clean)
	if err != nil {
		p.t.Fatal(err)
	}
	return stored[0].Seq
}

func said(texts ...string) (parts []v1alpha1.RecordedPart) {
	for _, text := range texts {
		parts = append(parts, v1alpha1.RecordedPart{Message: &v1alpha1.RecordedMessage{Role: "user", Text: text}})
	}
	return parts
}

// conversation returns what an entry shows of a request: texts, or why they are not there.
func (p *place) conversation(uid types.UID, seq int64) string {
	p.t.Helper()
	e, err := p.store.Entry(p.t.Context(), uid, seq)
	if err != nil {
		p.t.Fatal(err)
	}
	if e == nil {
		return "nothing"
	}
	var out []string
	for _, c := range e.Conversation {
		switch {
		case c.Omitted != "":
			out = append(out, fmt.Sprintf("%s:%d:%t", c.Omitted, c.Bytes, c.Digest != ""))
		default:
			out = append(out, c.Message.Text)
		}
	}
	return strings.Join(out, " ")
}

// TestRecordings: an event shows what it named, by the numbers of its attempt, also after the store was opened again; what a repeated
// append brings is not stored; what goes with the task leaves nothing.
func TestRecordings(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir, recording.Limits{})
	from := func(pairs ...int32) (list []v1alpha1.RecordedRange) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, v1alpha1.RecordedRange{From: pairs[i], To: pairs[i+1]})
		}
		return list
	}
	first := p.append("a", 1, "1", "", v1alpha1.EventRecording{Parts: said("one", "two"), Conversation: from(0, 1)})
	second := p.append("a", 1, "2", "", v1alpha1.EventRecording{First: 2, Parts: said("three"), Conversation: from(0, 0, 2, 3)})
	again := p.append("a", 1, "1", "", v1alpha1.EventRecording{Parts: said("other"), Conversation: from(0, 0)})
	retry := p.append("a", 2, "3", "", v1alpha1.EventRecording{Parts: said("anew"), Conversation: from(0, 0)})
	other := p.append("b", 1, "1", v1alpha1.RecordingDigests, v1alpha1.EventRecording{Parts: said("hidden"), Conversation: from(0, 0)})
	if again != first {
		t.Errorf("the repeated append is event %d, not %d", again, first)
	}
	lie := p.append("a", 1, "4", "", v1alpha1.EventRecording{Parts: said("changed"), Conversation: from(0, 0)})
	for i := range 3 {
		if i == 2 { // as a store was written before there were rows of numbers
			if err := p.Commit(withoutNumbers("a")); err != nil {
				t.Fatal(err)
			}
		}
		for seq, want := range map[int64]string{first: "one two", second: "one three Missing:0:false", retry: "anew", lie: "one", 99: "nothing"} {
			if got := p.conversation("a", seq); got != want {
				t.Errorf("event %d: %q, want %q", seq, got, want)
			}
		}
		if got := p.conversation("b", other); !strings.HasPrefix(got, recording.DigestsOnly) || !strings.HasSuffix(got, "true") {
			t.Errorf("digests alone: %q", got)
		}
		p.close()
		p = open(t, dir, recording.Limits{})
	}
	defer p.close()
	page, bytes, next, err := p.store.Page(t.Context(), "a", 0, 2)
	if err != nil || len(page) != 2 || bytes == 0 || next != page[1].Seq {
		t.Fatalf("%v, %d bytes, next %d, %v", page, bytes, next, err)
	}
	if page, _, next, err = p.store.Page(t.Context(), "a", next, 10); err != nil || len(page) != 2 || next != 0 {
		t.Fatalf("%v, next %d, %v", page, next, err)
	}
	if page, _, next, err = p.store.Page(t.Context(), "a", 0, 10, v1alpha1.EventModelRequestCompleted); err != nil || len(page) != 0 || next != 0 {
		t.Fatalf("of another type: %v, next %d, %v", page, next, err)
	}
	for range 2 {
		if err := p.store.Delete("a"); err != nil {
			t.Fatal(err)
		}
	}
	if page, bytes, _, err := p.store.Page(t.Context(), "a", 0, 10); err != nil || len(page) != 0 || bytes != 0 {
		t.Errorf("after the deletion: %v, %d bytes, %v", page, bytes, err)
	}
	if got := p.conversation("b", other); got == "nothing" {
		t.Error("the other task lost its recording")
	}
}

// withoutNumbers is the commit that removes the rows of numbers of a task.
type withoutNumbers string

func (u withoutNumbers) Need() engine.Need { return engine.Free }
func (u withoutNumbers) Publish()          {}
func (u withoutNumbers) Sequence(b engine.Batch) error {
	return b.DeleteRange([]byte("r"+u+"\x00n"), []byte("r"+u+"\x00o"))
}

// TestPages: pages go forwards from a seq and backwards to one, and a search finds what was new with an event, in any case, once.
func TestPages(t *testing.T) {
	p := open(t, t.TempDir(), recording.Limits{})
	defer p.close()
	texts := []string{"Alpha", "beta", "GAMMA alpha\nand more", "Ähre", "beta"}
	for i, text := range texts {
		p.append("a", 1, strconv.Itoa(i), "", v1alpha1.EventRecording{
			First: int32(i), Parts: said(text), Conversation: []v1alpha1.RecordedRange{{From: 0, To: int32(i)}},
		})
	}
	p.append("b", 1, "other", "", v1alpha1.EventRecording{Parts: said("alpha of another"), Conversation: []v1alpha1.RecordedRange{{From: 0, To: 0}}})
	seqs := func(list []v1alpha1.RecordedEntry) (out []int64) {
		for i := range list {
			out = append(out, list[i].Seq)
		}
		return out
	}
	for before, want := range map[int64][]int64{math.MaxInt64: {5, 4}, 5: {4, 3}, 2: {1}, 1: nil, 0: nil} {
		page, _, prev, err := p.store.Before(t.Context(), "a", 0, before, 2)
		if got := seqs(page); err != nil || !slices.Equal(got, want) || (prev > 0) != (before > 3) {
			t.Errorf("before %d: %v, previous %d (%v), want %v", before, got, prev, err, want)
		}
	}
	for _, c := range []struct {
		text        string
		after       int64
		limit       int
		want        []int64
		next        int64
		first, name string
	}{
		{"ALPHA", 0, 10, []int64{1, 3}, 0, "Alpha", "in any case"},
		{"alpha", 0, 1, []int64{1}, 1, "Alpha", "a page"},
		{"alpha", 1, 1, []int64{3}, 3, "GAMMA alpha and more", "the next page"},
		{"ähr", 0, 10, []int64{4}, 0, "Ähre", "letters outside ASCII"},
		{".", 0, 10, nil, 0, "", "not a pattern"},
	} {
		found, next, err := p.store.Search(t.Context(), "a", c.text, c.after, math.MaxInt64, c.limit)
		if got := seqs(found); err != nil || !slices.Equal(got, c.want) || next != c.next || len(found) > 0 && found[0].Match != c.first {
			t.Errorf("%s: %v, next %d, %+v (%v)", c.name, got, next, found, err)
		}
	}
}

// TestLimits: what has no room is shown by its size and digest, the events are stored, and a deleted task makes room.
func TestLimits(t *testing.T) {
	p := open(t, t.TempDir(), recording.Limits{Task: 4000, Namespace: 6000})
	defer p.close()
	one := []v1alpha1.RecordedRange{{From: 0, To: 0}}
	long := said(strings.Repeat("x", 3000))
	for i, c := range []struct {
		uid types.UID
		key string
		fit bool
	}{{"a", "1", true}, {"a", "2", false}, {"b", "1", false}} {
		seq := p.append(c.uid, int32(i+1), c.key, "", v1alpha1.EventRecording{Parts: long, Conversation: one})
		if got := p.conversation(c.uid, seq); strings.HasPrefix(got, recording.LimitReached) == c.fit {
			t.Errorf("%v: %.60s", c, got)
		}
	}
	if err := p.store.Delete("a"); err != nil {
		t.Fatal(err)
	}
	seq := p.append("b", 9, "9", "", v1alpha1.EventRecording{Parts: long, Conversation: one})
	if got := p.conversation("b", seq); got != long[0].Message.Text {
		t.Errorf("after the deletion: %.60s", got)
	}
}

// TestLimitsHold: however many events and parts come, what is kept of a task stays within its limit and a quarter.
func TestLimitsHold(t *testing.T) {
	const most = 8000
	p := open(t, t.TempDir(), recording.Limits{Task: most})
	defer p.close()
	for i := range 200 {
		p.append("a", 1, fmt.Sprint(i), "", v1alpha1.EventRecording{First: int32(20 * i), Parts: said(make([]string, 20)...), Conversation: make([]v1alpha1.RecordedRange, 20)})
	}
	page, bytes, _, err := p.store.Page(t.Context(), "a", 0, 1000)
	if err != nil || bytes < most || bytes > most+most/4 || len(page) == 0 || len(page) == 200 {
		t.Errorf("%d bytes of %d events are kept, %v", bytes, len(page), err)
	}
}

// TestHostile: a worker that lies about numbers gets an error or an answer of bounded size.
func TestHostile(t *testing.T) {
	e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestStarted}
	for field, r := range map[string]v1alpha1.EventRecording{
		"recording.first":           {First: -1},
		"recording.conversation[0]": {Conversation: []v1alpha1.RecordedRange{{From: 3, To: 1}}},
		"recording.parts":           {Parts: make([]v1alpha1.RecordedPart, 5000)},
		"recording.conversation":    {Conversation: make([]v1alpha1.RecordedRange, 5000)},

		"recording.parts[0].bytes":        {Parts: []v1alpha1.RecordedPart{{Bytes: -1, Omitted: recording.TooLarge}}},
		"recording.parts[0].message.role": {Parts: []v1alpha1.RecordedPart{{Message: &v1alpha1.RecordedMessage{Role: strings.Repeat("x", 100)}}}},
	} {
		if _, err := recording.Prepare(e, &r, ""); err == nil || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	p := open(t, t.TempDir(), recording.Limits{})
	defer p.close()
	var all []v1alpha1.RecordedRange
	for range 200 {
		all = append(all, v1alpha1.RecordedRange{From: 0, To: 0})
	}
	seq := p.append("a", 1, "1", "", v1alpha1.EventRecording{Parts: said(strings.Repeat("x", 900_000)), Conversation: append(all, v1alpha1.RecordedRange{From: 1, To: 1 << 30})})
	if got := p.conversation("a", seq); len(got) > 40<<20 {
		t.Errorf("the answer has %d bytes", len(got))
	}
	// Two sizes that a worker chose do not make room for more by their sum.
	lie := v1alpha1.RecordedPart{Bytes: math.MaxInt64, Omitted: recording.TooLarge}
	seq = p.append("b", 1, "1", "", v1alpha1.EventRecording{
		Parts:        append([]v1alpha1.RecordedPart{lie, {Bytes: math.MaxInt64, Omitted: recording.TooLarge, Tools: []v1alpha1.RecordedTool{{Name: "x"}}}}, said(strings.Repeat("x", 900_000))...),
		Conversation: append([]v1alpha1.RecordedRange{{From: 0, To: 1}}, slices.Repeat([]v1alpha1.RecordedRange{{From: 2, To: 2}}, 200)...),
	})
	if got := p.conversation("b", seq); len(got) > 40<<20 || !strings.Contains(got, "xxx") {
		t.Errorf("the answer has %d bytes", len(got))
	}
}

// childDir names the folder in which a child of TestKilled records.
const childDir = "RECORDING_TEST_DIR"

// TestKilled: after a kill at any moment, each event of the log has what was recorded beside it, whole, and nothing is recorded beside an
// event that the log does not have.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		record(t, dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	rounds := 1
	if kit.Offered(kit.Minutes) {
		rounds = 3
	}
	for round := 1; round <= rounds; round++ {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$", "-test.v")
		child.Env = append(os.Environ(), childDir+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		var acknowledged int64
		kept := -1
		for lines, n := bufio.NewScanner(out), 0; n < 30*round && lines.Scan(); {
			if seq, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
				acknowledged, _ = strconv.ParseInt(seq, 10, 64)
				n++
			}
			if i, ok := strings.CutPrefix(lines.Text(), "kept "); ok {
				kept, _ = strconv.Atoi(i)
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		p := open(t, dir, recording.Limits{})
		head, err := p.log.Head(t.Context(), eventlog.Stream{Namespace: "n", Task: "t-a", UID: "a"})
		if err != nil || head.LatestSeq < acknowledged {
			t.Fatalf("the log ends at %d, %d were acknowledged (%v)", head.LatestSeq, acknowledged, err)
		}
		for seq := int64(1); seq <= head.LatestSeq; seq++ {
			if got := p.conversation("a", seq); len(got) != 3001 || strings.Trim(got, "x") != " " {
				t.Errorf("event %d of %d: %.40q, %d bytes", seq, head.LatestSeq, got, len(got))
			}
		}
		if page, _, _, err := p.store.Page(t.Context(), "a", head.LatestSeq, 1); err != nil || len(page) != 0 {
			t.Errorf("recorded beside no event: %v, %v", page, err)
		}
		for i := range kept + 2 { // of the last one nobody knows the end
			got, want := p.request(fmt.Sprint(child.Process.Pid, "-", i), day), strings.Join(asked(i), " ")
			if got != want && (i <= kept || got != "nothing") {
				t.Errorf("request %d of %d has %d bytes, want %d", i, kept, len(got), len(want))
			}
		}
		p.close()
	}
}

// record appends recorded events until it is killed.
func record(t *testing.T, dir string) {
	p := open(t, dir, recording.Limits{})
	half := strings.Repeat("x", 1500)
	for i := 0; ; i++ {
		r := v1alpha1.EventRecording{Parts: said(half, half), Conversation: []v1alpha1.RecordedRange{{From: 0, To: 1}}}
		seq := p.append("a", int32(os.Getpid()), fmt.Sprint(os.Getpid(), i), "", r)
		fmt.Println("stored", seq)
		p.keep(asks(fmt.Sprint(os.Getpid(), "-", i), day, "", "", asked(i)...))
		fmt.Println("kept", i)
	}
}

// asked returns what a request of a child says. Some are longer than a commit, and many begin alike.
func asked(i int) (texts []string) {
	for n := range 1 + i%50 {
		texts = append(texts, fmt.Sprint(i/50, "-", n, strings.Repeat("y", 40_000)))
	}
	return texts
}

// TestSecrets: what has the form of a secret is stored nowhere.
func TestSecrets(t *testing.T) {
	p := open(t, t.TempDir(), recording.Limits{})
	defer p.close()
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	seq := p.append("a", 1, "1", "", v1alpha1.EventRecording{
		Parts: []v1alpha1.RecordedPart{{Message: &v1alpha1.RecordedMessage{
			Role: "assistant", Text: "the token is " + secret,
			ToolCalls: []v1alpha1.RecordedToolCall{{ID: "1", Name: "web_fetch", Arguments: `{"headers":{"Authorization":"Bearer ` + secret + `"}}`}},
		}}},
		Message: new(int32(0)), ToolCallID: "1",
	})
	e, err := p.store.Entry(t.Context(), "a", seq)
	if err != nil || e == nil || e.ToolCall == nil || e.ToolCall.Name != "web_fetch" {
		t.Fatalf("%+v, %v", e, err)
	}
	if shown := fmt.Sprint(e.Message.Message, e.ToolCall.Arguments); strings.Contains(shown, secret) || !strings.Contains(shown, "the token is") {
		t.Errorf("%s", shown)
	}
}
