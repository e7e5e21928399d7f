// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/test/corpus"
)

// TestStream passes all canaries between lines of a log through a Stream, in pieces of different sizes.
// None may survive, and nothing else may be lost.
func TestStream(t *testing.T) {
	var log strings.Builder
	canaries := corpus.Canaries()
	for i, c := range canaries {
		for range i % 7 {
			log.WriteString("2026-11-21T04:12:07.123Z INFO build: compiling pkg/storage/file.go -> ok\n")
		}
		log.WriteString("control-line\n\n" + c.Text + "\n\n")
	}
	text := log.String()
	for _, size := range []int{1 << 20, 5000, 80, 33} {
		var s redact.Stream
		var out strings.Builder
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			out.WriteString(s.Write(rest[:n]))
			rest = rest[n:]
		}
		out.WriteString(s.Flush(true))
		got := out.String()
		for _, c := range canaries {
			for _, secret := range c.Secrets {
				if strings.Contains(got, secret) {
					t.Errorf("pieces of %d: %s: %q survives", size, c.Name, secret)
				}
			}
		}
		want, _ := redact.Text(text)
		if n, m := strings.Count(got, "control-line"), strings.Count(want, "control-line"); n < m || m < len(canaries)*9/10 {
			t.Errorf("pieces of %d: %d lines stayed, %d without a stream", size, n, m)
		}
	}
}

func TestStreamFlush(t *testing.T) {
	var s redact.Stream
	if got := s.Write("one\n") + s.Flush(false); got != "one\n" {
		t.Errorf("flushed %q", got)
	}
	block := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("aB3d", 16)+"\n", 4)
	got := s.Write("two\n"+block) + s.Flush(false)
	got += s.Write(strings.Repeat("cD5e", 16)+"\n-----END PRIVATE KEY-----\nthree\n") + s.Flush(true)
	if want := "two\n" + redact.Marker + "\nthree\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Write(block) + s.Flush(true); got != redact.Marker {
		t.Errorf("at the end: %q", got)
	}
}

func BenchmarkStream(b *testing.B) {
	line := "2026-11-21T04:12:07.123Z INFO build: compiling pkg/storage/engine/file.go (id=12, took: 1.2s) -> ok\n"
	var s redact.Stream
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_ = s.Write(line)
	}
}
