// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/transcript"
	"github.com/platform-ai/platform/test/kit"
)

type message = v1alpha1.SessionMessage

func open(t testing.TB, dir string, o transcript.Options) *transcript.Store {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return transcript.New(e, o)
}

func user(id, text string) message {
	return message{ID: id, Role: v1alpha1.RoleUser, Content: text}
}

func assistant(id, text string) message {
	return message{ID: id, Role: v1alpha1.RoleAssistant, Content: text}
}

func mustAppend(t testing.TB, s *transcript.Store, uid types.UID, limit int64, m ...message) []message {
	t.Helper()
	out, err := s.Append(t.Context(), uid, limit, m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// texts returns the contents of a page.
func texts(p transcript.Page, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var all []string
	for _, m := range p.Messages {
		all = append(all, fmt.Sprintf("%d:%s", m.Order, m.Content))
	}
	if p.More {
		all = append(all, "more")
	}
	return strings.Join(all, " ")
}

func TestAppendAndRead(t *testing.T) {
	dir, clock := t.TempDir(), clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 999, time.UTC))
	s, ctx := open(t, dir, transcript.Options{Clock: clock, NewID: func() string { return "made" }}), t.Context()
	whole := message{
		ID: "t", Order: 77, Role: v1alpha1.RoleTool, Content: "Ω \x00", Name: "web_fetch", ToolCallID: "c1",
		Input: &apiextensionsv1.JSON{Raw: []byte(`{ "url": "x" }`)}, SourceType: "task", SourceRef: "a", Metadata: map[string]string{"k": "v"},
	}
	calls := message{Role: v1alpha1.RoleAssistant, ToolCalls: []v1alpha1.MessageToolCall{{ID: "c1", Name: "web_fetch", Arguments: `{"url":"x"}`}}}
	got := mustAppend(t, s, "u", 0, user("u1", "hello"), calls, whole)
	if got[1].ID != "made" || got[2].Order != 3 || got[2].Timestamp.Unix() != clock.Now().Unix() {
		t.Errorf("stored: %+v", got)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	mustAppend(t, s, "u", 0, assistant("a1", "bye"))
	mustAppend(t, s, "ux", 0, user("", "other"))
	all, err := s.Page(ctx, "u", 0, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	whole.Order, whole.Timestamp, whole.Input = 3, got[2].Timestamp, &apiextensionsv1.JSON{Raw: []byte(`{"url":"x"}`)}
	if d := cmp.Diff(whole, all.Messages[2]); d != "" {
		t.Errorf("as stored (-want +got):\n%s", d)
	}
	if d := cmp.Diff(got, all.Messages[:3]); d != "" {
		t.Errorf("as told (-append +page):\n%s", d)
	}
	if all.Info.Messages != 4 || all.Info.Last != 4 || all.Info.Truncated() || all.More {
		t.Errorf("info %+v, more %v", all.Info, all.More)
	}
	for _, tc := range []struct{ name, got, want string }{
		{"first", texts(s.Page(ctx, "u", 0, 1, "")), "1:hello more"},
		{"last", texts(s.Page(ctx, "u", 3, 5, "")), "4:bye"},
		{"up to", texts(s.Page(ctx, "u", 0, 2, "made")), "1:hello 2:"},
		{"up to the first", texts(s.Page(ctx, "u", 0, 9, "u1")), "1:hello"},
		{"up to what is before", texts(s.Page(ctx, "u", 2, 9, "u1")), ""},
		{"up to nothing", texts(s.Page(ctx, "u", 0, 9, "ghost")), `error: message "ghost": no such message`},
		{"as far as numbers go", texts(s.Page(ctx, "u", math.MaxInt64, 5, "")), ""},
		{"behind the end", texts(s.Page(ctx, "u", 9, 5, "")), ""},
		{"newest", texts(s.Newest(ctx, "u", 1, "")), "4:bye"},
		{"newest two", texts(s.Newest(ctx, "u", 2, "made")), "1:hello 2:"},
		{"more than there are", texts(s.Newest(ctx, "u", 9, "u1")), "1:hello"},
		{"no such message", texts(s.Newest(ctx, "u", 9, "ghost")), `error: message "ghost": no such message`},
		{"no transcript", texts(s.Newest(ctx, "none", 9, "")), ""},
		{"none, paged", texts(s.Page(ctx, "none", 0, 9, "")), ""},
		{"no uid", texts(s.Page(ctx, "", 0, 9, "")), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}

func TestAppendOfAnIDIsOnce(t *testing.T) {
	s, ctx := open(t, t.TempDir(), transcript.Options{}), t.Context()
	first := mustAppend(t, s, "u", 0, user("1", "a"), assistant("2", "b"))
	again := mustAppend(t, s, "u", 0, user("1", "a"), assistant("2", "b"), user("3", "c"), user("3", "c"))
	if d := cmp.Diff(first, again[:2]); d != "" {
		t.Errorf("repeated (-first +again):\n%s", d)
	}
	if again[2].Order != 3 || again[3].Order != 3 {
		t.Errorf("in one append: %+v", again[2:])
	}
	for _, m := range [][]message{
		{user("4", "d"), user("1", "x")},
		{assistant("1", "a")},
		{user("4", "d"), user("4", "e")},
	} {
		if _, err := s.Append(ctx, "u", 0, m); !errors.Is(err, transcript.ErrTaken) {
			t.Errorf("%v: %v", m, err)
		}
	}
	if got := texts(s.Page(ctx, "u", 0, 9, "")); got != "1:a 2:b 3:c" {
		t.Errorf("a refused append left something: %q", got)
	}
	// A repeated append does not bring back removed messages.
	mustAppend(t, s, "u", 1, user("5", "e"))
	if again := mustAppend(t, s, "u", 1, assistant("2", "b")); again[0].Order != 2 {
		t.Errorf("repeated after it left: %+v", again)
	}
	if got := texts(s.Page(ctx, "u", 0, 9, "")); got != "1:a 4:e" {
		t.Errorf("after truncation: %q", got)
	}
	for id, want := range map[string]error{"a\x00b": transcript.ErrName, "ghp_abcdefghijklmnopqrstuvwxyz0123456789": transcript.ErrSecretID} {
		if _, err := s.Append(ctx, "u", 0, []message{user(id, "x")}); !errors.Is(err, want) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if _, err := s.Append(ctx, "", 0, []message{user("", "x")}); !errors.Is(err, transcript.ErrName) {
		t.Errorf("no uid: %v", err)
	}
}

// model is what a transcript must be: all messages, and the rule by which they are removed.
type model struct {
	all  []message
	size []int64
	gone map[int64]bool
}

func (m *model) append(t *testing.T, limit int64, in []message) {
	t.Helper()
	for _, n := range in {
		n.Order = 0
		about := n
		about.Content = ""
		b, err := json.Marshal(about)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, "\n"+n.Content...)
		m.all = append(m.all, n)
		m.size = append(m.size, int64(len(b)))
	}
	total, first := int64(0), -1
	for i := range m.all {
		if first < 0 && m.all[i].Role == v1alpha1.RoleUser {
			first = i
		}
		if !m.gone[int64(i+1)] {
			total += m.size[i]
		}
	}
	for i := 0; i < len(m.all)-1 && limit > 0 && total > limit; i++ {
		if i != first && !m.gone[int64(i+1)] {
			m.gone[int64(i+1)] = true
			total -= m.size[i]
		}
	}
}

func (m *model) page(after int64, limit int, through int64) string {
	var out []string
	for i := after; i < through; i++ {
		if m.gone[i+1] {
			continue
		}
		if len(out) == limit {
			return strings.Join(append(out, "more"), " ")
		}
		out = append(out, fmt.Sprintf("%d:%s", i+1, m.all[i].Content))
	}
	return strings.Join(out, " ")
}

func (m *model) newest(n int, through int64) string {
	var out []string
	for i := through; i > 0 && len(out) < n; i-- {
		if !m.gone[i] {
			out = append(out, fmt.Sprintf("%d:%s", i, m.all[i-1].Content))
		}
	}
	slices.Reverse(out)
	return strings.Join(out, " ")
}

// For random appends and limits, pages from both ends must equal those of the model.
func TestRandomAppendsAndPages(t *testing.T) {
	seeds := uint64(5)
	if kit.Offered(kit.Minutes) {
		seeds = 30
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, ctx := open(t, t.TempDir(), transcript.Options{}), t.Context()
		m := model{gone: map[int64]bool{}}
		limit := int64(0)
		for step := range 40 {
			if rng.IntN(4) == 0 {
				limit = int64(rng.IntN(3000))
			}
			var in []message
			for i := range 1 + rng.IntN(4) {
				n := message{ID: fmt.Sprintf("%d-%d", step, i), Role: v1alpha1.RoleAssistant, Content: strings.Repeat("x", rng.IntN(300))}
				if rng.IntN(3) == 0 {
					n.Role = v1alpha1.RoleUser
				}
				in = append(in, n)
			}
			m.append(t, limit, mustAppend(t, s, "u", limit, in...))
			info, err := s.Info(ctx, "u")
			var bytes int64
			for i, n := range m.size {
				if !m.gone[int64(i+1)] {
					bytes += n
				}
			}
			if want := (transcript.Info{Messages: int64(len(m.all) - len(m.gone)), Bytes: bytes, Last: int64(len(m.all))}); err != nil || info != want {
				t.Fatalf("seed %d: info %+v, %v, want %+v", seed, info, err, want)
			}
			after, n := rng.Int64N(int64(len(m.all)+1)), 1+rng.IntN(20)
			if got, want := texts(s.Page(ctx, "u", after, n, "")), m.page(after, n, int64(len(m.all))); got != want {
				t.Fatalf("seed %d: %d behind %d:\n got %s\nwant %s", seed, n, after, got, want)
			}
			through := 1 + rng.Int64N(int64(len(m.all)))
			// More is not exact if the messages that would follow were removed.
			got, want := texts(s.Page(ctx, "u", after, n, m.all[through-1].ID)), m.page(after, n, through)
			if strings.TrimSuffix(got, " more") != strings.TrimSuffix(want, " more") || strings.HasSuffix(want, " more") && got != want {
				t.Fatalf("seed %d: %d behind %d through %d:\n got %s\nwant %s", seed, n, after, through, got, want)
			}
			if got, want := texts(s.Newest(ctx, "u", n, m.all[through-1].ID)), m.newest(n, through); got != want {
				t.Fatalf("seed %d: newest %d through %d:\n got %s\nwant %s", seed, n, through, got, want)
			}
			if got, want := texts(s.Newest(ctx, "u", n, "")), m.newest(n, int64(len(m.all))); got != want {
				t.Fatalf("seed %d: newest %d:\n got %s\nwant %s", seed, n, got, want)
			}
		}
	}
}

func TestPagesOfLongMessagesAreShort(t *testing.T) {
	s, ctx := open(t, t.TempDir(), transcript.Options{}), t.Context()
	long := strings.Repeat("lorem ipsum ", 3<<20/12)
	for range 5 {
		mustAppend(t, s, "u", 0, user("", long))
	}
	for name, get := range map[string]func() (transcript.Page, error){
		"page":   func() (transcript.Page, error) { return s.Page(ctx, "u", 0, 100, "") },
		"newest": func() (transcript.Page, error) { return s.Newest(ctx, "u", 100, "") },
	} {
		if p, err := get(); err != nil || len(p.Messages) != 3 {
			t.Errorf("%s: %d messages, %v", name, len(p.Messages), err)
		}
	}
}

func TestConcurrentAppendsAreDense(t *testing.T) {
	s, ctx := open(t, t.TempDir(), transcript.Options{}), t.Context()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := s.Append(ctx, "u", 0, []message{user(fmt.Sprintf("%d-%d", w, i), "q"), assistant(fmt.Sprintf("%d-%d-a", w, i), "a")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p, err := s.Page(ctx, "u", 0, 1000, "")
	if err != nil || len(p.Messages) != 160 {
		t.Fatalf("%d messages, %v", len(p.Messages), err)
	}
	for i, m := range p.Messages {
		if m.Order != int64(i+1) || i%2 == 1 && m.ID != p.Messages[i-1].ID+"-a" {
			t.Errorf("message %d: %+v", i, m)
		}
	}
}

func TestDeleteTakesOneSession(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir, transcript.Options{})
	for _, uid := range []types.UID{"a", "ab", "b"} {
		mustAppend(t, s, uid, 0, user("", string(uid)))
	}
	if err := errors.Join(s.Delete(ctx, "a"), s.Delete(ctx, "never")); err != nil {
		t.Fatal(err)
	}
	var owners []types.UID
	if err := s.Owners(ctx, func(uid types.UID) error { owners = append(owners, uid); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]types.UID{"ab", "b"}, owners); d != "" {
		t.Errorf("owners (-want +got):\n%s", d)
	}
	if got := texts(s.Page(ctx, "a", 0, 9, "")) + texts(s.Page(ctx, "ab", 0, 9, "")); got != "1:ab" {
		t.Errorf("left: %q", got)
	}
	if got := mustAppend(t, s, "a", 0, user("", "anew")); got[0].Order != 1 {
		t.Errorf("anew: %+v", got)
	}
}

// No file of the store contains a secret from a message.
func TestSecretsAreNotStored(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	dir := t.TempDir()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m := user("1", "the token is "+secret)
	m.Name, m.SourceRef, m.ToolCallID = secret, secret, secret
	m.Input = &apiextensionsv1.JSON{Raw: []byte(`{"password":"plain-words-of-a-secret"}`)}
	m.ToolCalls = []v1alpha1.MessageToolCall{{ID: "c", Name: "x", Arguments: `{"api_key":"plain-words-of-a-secret"}`}, {ID: "d", Name: "x", Arguments: `{"broken": "` + secret}}
	m.Metadata = map[string]string{"password": "plain-words-of-a-secret", "note": secret, "fine": "kept"}
	out := mustAppend(t, transcript.New(e, transcript.Options{}), "u", 0, m)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if out[0].Metadata["fine"] != "kept" || !strings.HasPrefix(out[0].Content, "the token is ") {
		t.Errorf("too much went: %+v", out[0])
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		read += len(b)
		for _, s := range []string{secret, "plain-words-of-a-secret"} {
			if strings.Contains(string(b), s) {
				t.Errorf("%s holds %q", f, s)
			}
		}
	}
	if read == 0 {
		t.Error("no file was read")
	}
}

// The power fails at any moment: an append is stored as a whole or not at all, everything acknowledged is
// stored, and a repeated append completes it.
func TestCrash(t *testing.T) {
	for seed := range uint64(20) {
		disk, ctx := localtest.NewDisk(), t.Context()
		run := func(d *localtest.Disk, f func(*transcript.Store)) {
			t.Helper()
			e, err := local.Open(ctx, local.Options{Dir: localtest.Dir, FS: d.FS()})
			if err != nil {
				t.Fatal(err)
			}
			f(transcript.New(e, transcript.Options{}))
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		const limit = 360
		crashed := disk
		turn := func(n int) []message {
			return []message{user(fmt.Sprintf("%d:user", n), fmt.Sprintf("q%d", n)), assistant(fmt.Sprintf("%d:assistant", n), fmt.Sprintf("a%d", n))}
		}
		run(disk, func(s *transcript.Store) {
			mustAppend(t, s, "u", limit, turn(1)...)
			mustAppend(t, s, "u", limit, turn(2)...)
			// The third turn, with which the first one's answer leaves, is on its way when the power goes.
			var once sync.Once
			disk.Fail(func(op localtest.Op) error {
				if op.Log() && op.Kind == localtest.Sync {
					once.Do(func() { crashed = disk.Crash(50, seed) })
				}
				return nil
			})
			mustAppend(t, s, "u", limit, turn(3)...)
			if crashed == disk {
				t.Fatal("nothing was synced")
			}
		})
		run(crashed, func(s *transcript.Store) {
			const without, with = "1:q1 2:a1 3:q2 4:a2", "1:q1 3:q2 4:a2 5:q3 6:a3"
			if got := texts(s.Page(ctx, "u", 0, 9, "")); got != without && got != with {
				t.Errorf("seed %d: after the crash %q", seed, got)
			}
			mustAppend(t, s, "u", limit, turn(3)...)
			mustAppend(t, s, "u", limit, turn(3)...)
			if got := texts(s.Page(ctx, "u", 0, 9, "")); got != with {
				t.Errorf("seed %d: repeated %q", seed, got)
			}
		})
	}
}
