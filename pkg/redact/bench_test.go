// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// texts returns the inputs of the benchmarks, about 200 KB each.
func texts() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	var lines, build, mixed, dense, minified, paths strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "2026-11-21T04:12:%02d.123Z INFO build: compiling pkg/storage/engine/file_%d.go (id=%d, took: 1.2s) -> ok\n", i%60, i, i)
	}
	for i := range 2000 {
		if fmt.Fprintf(&mixed, "2026-11-21T04:12:%02d.123Z INFO build: compiling pkg/storage/engine/file_%d.go (id=%d, took: 1.2s) -> ok\n", i%60, i, i); i%100 == 50 {
			fmt.Fprintf(&mixed, "export SERVICE_%d_TOKEN=%016x%016x\n", i, r.Uint64(), r.Uint64())
		}
	}
	for i := range 400 {
		fmt.Fprintf(&build, "[%d/400] c++ -O2 -DNDEBUG -Iinclude -std=c++20 -MD -MF obj/a_%d.o.d -c ../src/net/http2_frame_%d.cc -o obj/a_%d.o\n", i, i, i, i)
		fmt.Fprintf(&build, "go: downloading example.com/module/part_%d v1.%d.2-0.20261121041207-%012x\n", i, i%9, r.Uint64()>>16)
		fmt.Fprintf(&build, "#%d sha256:%016x%016x%016x%016x 12.3MB / 45.6MB 1.2s\n", i, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
		fmt.Fprintf(&build, "--- PASS: TestRoundTrip/case_%d (0.0%ds)\n    codec_test.go:%d: decoded 12 of 12 values, left=0, took: 3.4ms\n", i, i%9, i)
		fmt.Fprintf(&build, "npm warn deprecated package-%d@1.2.3: This version is no longer supported, see https://example.com/docs/%d\n", i, i)
		fmt.Fprintf(&dense, "export SERVICE_%d_TOKEN=%016x%016x\nAuthorization: Bearer %016x\nhttps://bob:%08x@git.example.com/a.git?x=%d\n", i, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint32(), i)
		fmt.Fprintf(&minified, `!function(e,t){"use strict";var n=e.document,r=[].slice;for(var o=0;o<n.length;++o)t[o]&&r.push({key:n[o],value:t[o]||%d})}(this,x);`, i)
		fmt.Fprintf(&paths, "/usr/lib/node_modules/package-%d/dist/cjs/internal/operators/some-long-name.js.map\n", i)
	}
	data := make([]byte, 150_000)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return map[string]string{
		"lines": lines.String(), "build log": build.String(), "lines and secrets": mixed.String(), "credentials": dense.String(), "minified": minified.String(), "paths": paths.String(),
		"base64": base64.StdEncoding.EncodeToString(data), "base64 of text": base64.StdEncoding.EncodeToString([]byte(lines.String()[:150_000])), "hex": fmt.Sprintf("%x", data[:100_000]),
	}
}

func BenchmarkText(b *testing.B) {
	for name, s := range texts() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				if _, changed := Text(s); changed != (name == "credentials" || name == "lines and secrets") {
					b.Fatalf("changed is %v", changed)
				}
			}
		})
	}
}

// BenchmarkSeen removes what a run has removed before from texts that have none of it.
func BenchmarkSeen(b *testing.B) {
	for _, n := range []int{1, 32, seenCount} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(5, 6))
			var seen Seen
			for range n {
				seen.add([]string{fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())})
			}
			s := texts()["build log"]
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				if seen.Remove(s) != s {
					b.Fatal("it has none")
				}
			}
		})
	}
}

func BenchmarkJSON(b *testing.B) {
	s := texts()["build log"]
	var events []any
	for i := range 200 {
		events = append(events, map[string]any{"type": "ToolCallCompleted", "summary": "done", "content": map[string]any{"exit_code": 0, "output": s[i*200 : i*200+900], "inputTokens": i}})
	}
	raw, err := json.Marshal(events)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, changed, err := JSON(raw); changed || err != nil {
			b.Fatal(changed, err)
		}
	}
}

// BenchmarkKnown removes what a run was given from texts that have none of it.
func BenchmarkKnown(b *testing.B) {
	known := KnownOf("swordfish", "correct horse battery staple", strings.Repeat("0123456789 a line of a file that is secret\n", 100)+"end")
	all := texts()
	for _, name := range []string{"build log", "minified", "base64"} {
		s := all[name]
		for kind, remove := range map[string]func() string{"text": func() string { return known.Remove(s) }, "JSON": func() string { return known.JSON(quote(s)) }} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				for b.Loop() {
					if strings.Contains(remove(), Marker) {
						b.Fatal("it has none")
					}
				}
			})
		}
	}
}
