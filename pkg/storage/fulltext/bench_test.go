// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/storage/fulltext"
)

// vocabulary makes texts whose words are as unequally common as those of a language.
type vocabulary struct {
	random *rand.Rand
	zipf   *rand.Zipf
	text   []byte
}

func newVocabulary() *vocabulary {
	random := rand.New(rand.NewPCG(1, 2))
	return &vocabulary{random: random, zipf: rand.NewZipf(random, 1.1, 4, 50_000)}
}

func (v *vocabulary) sentence(words int) string {
	v.text = v.text[:0]
	for range words {
		v.text = append(strconv.AppendUint(append(v.text, 'w'), v.zipf.Uint64(), 10), ' ')
	}
	return string(v.text)
}

// measure reports the time that one of a hundred searches exceeds, and the processor's time for each, which does not
// depend on what else the machine does.
func measure(b *testing.B, search func() error) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var took []time.Duration
	before := threadTime(b)
	for b.Loop() {
		began := time.Now()
		if err := search(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began)) // a benchmark measures
	}
	b.ReportMetric(float64((threadTime(b)-before).Microseconds())/float64(len(took)), "cpu-µs/op")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func threadTime(b *testing.B) time.Duration {
	b.Helper()
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMemories measures searches among 100,000 documents of a namespace, half of them for one agent, by queries of
// one rare, one common, and many words, for a task of that agent.
func BenchmarkMemories(b *testing.B) {
	e, x := open(b)
	v := newVocabulary()
	fill(b, e, x, 100_000, func(i int) *fulltext.Document {
		return &fulltext.Document{Space: "ns", Group: strings.Repeat("a", i%2), Name: fmt.Sprintf("mem-%d", i), Rank: uint64(i), Text: v.sentence(40)}
	})
	for _, c := range []struct {
		name  string
		words func() string
	}{
		{"rare", func() string { return fmt.Sprintf("w%d", 20_000+v.random.IntN(20_000)) }},
		{"common", func() string { return "w0" }},
		{"prompt", func() string { return v.sentence(40) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			measure(b, func() error {
				_, err := x.Search(fulltext.Query{Space: "ns", Groups: []string{"", "a"}, Text: c.words(), Limit: 100})
				return err
			})
		})
	}
}

// BenchmarkUnspaced measures searches among 100,000 documents of 60 letters that are written without spaces, as BenchmarkMemories
// does: by a question of 12 letters and by a prompt of 400.
func BenchmarkUnspaced(b *testing.B) {
	for name, letters := range map[string]struct {
		first rune
		many  uint64
	}{"Han": {0x4E00, 3000}, "Thai": {0x0E01, 46}} {
		e, x := open(b)
		zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 4, letters.many-1)
		text := func(n int) string {
			out := make([]rune, n)
			for i := range out {
				out[i] = letters.first + rune(zipf.Uint64())
			}
			return string(out)
		}
		fill(b, e, x, 100_000, func(i int) *fulltext.Document {
			return &fulltext.Document{Space: "ns", Group: strings.Repeat("a", i%2), Name: fmt.Sprintf("mem-%d", i), Rank: uint64(i), Text: text(60)}
		})
		for query, n := range map[string]int{"question": 12, "prompt": 400} {
			b.Run(name+"-"+query, func(b *testing.B) {
				measure(b, func() error {
					_, err := x.Search(fulltext.Query{Space: "ns", Groups: []string{"", "a"}, Text: text(n), Limit: 100})
					return err
				})
			})
		}
	}
}

// BenchmarkTranscripts measures searches in one session, as a task makes them, and in all sessions, as a person does,
// by queries of five words. FULLTEXT_MESSAGES is how many messages there are in 100 sessions; by default 10,000 and
// 100,000.
func BenchmarkTranscripts(b *testing.B) {
	sizes := []int{10_000, 100_000}
	if n, err := strconv.Atoi(os.Getenv("FULLTEXT_MESSAGES")); err == nil {
		sizes = []int{n}
	}
	for _, size := range sizes {
		e, x := open(b)
		v := newVocabulary()
		fill(b, e, x, size, func(i int) *fulltext.Document {
			return &fulltext.Document{Space: "ns", Group: fmt.Sprintf("s%d", i%100), Name: strconv.Itoa(i / 100), Rank: uint64(i / 100), Text: v.sentence(12)}
		})
		for name, groups := range map[string][]string{"session": {"s7"}, "all": nil} {
			b.Run(fmt.Sprintf("%s-%d", name, size), func(b *testing.B) {
				measure(b, func() error {
					_, err := x.Search(fulltext.Query{Space: "ns", Groups: groups, Text: v.sentence(5)})
					return err
				})
			})
		}
	}
}
