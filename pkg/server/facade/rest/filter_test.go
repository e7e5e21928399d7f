// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filtered returns a document that passed the filter in parts of n bytes.
func filtered(t testing.TB, doc string, n int, members ...string) string {
	t.Helper()
	var out bytes.Buffer
	f := newFilter(&out, members...)
	for rest := []byte(doc); len(rest) > 0; {
		part := rest[:min(n, len(rest))]
		rest = rest[len(part):]
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestFilter(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`:                 `{}`,
		`[{"kind":"a"}]`:     `[{"kind":"a"}]`,
		`"kind"`:             `"kind"`,
		`{"kind":"a"}`:       `{}`,
		`{"kind":"a","b":1}`: `{"b":1}`,
		`{"b":1,"kind":"a"}`: `{"b":1}`,
		`{"a":1,"kind":{"x":[1,{"y":"}]\""}]},"b":[{"kind":1},{"metadata":{"kind":2,"resourceVersion":3}}]}`: `{"a":1,"b":[{"kind":1},{"metadata":{"kind":2,"resourceVersion":3}}]}`,
		`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[]}`:                                     `{"metadata":{"continue":"c"},"items":[]}`,
		`{"metadata":{"continue":"c","resourceVersion":"7"},"items":[]}`:                                     `{"metadata":{"continue":"c"},"items":[]}`,
		`{"metadata":{"resourceVersion":"7"}}`:                                                               `{"metadata":{}}`,
		`{"a,b":"c:d","e\"kind":"kind","x":{"kind":1,"y":2}}`:                                                `{"a,b":"c:d","e\"kind":"kind","x":{"kind":1,"y":2}}`,
		`{"kind":"a","apiVersion":"b"}`:                                                                      `{"apiVersion":"b"}`,
		"{\n \"kind\" : 1 ,\n \"b\" : { } }\n":                                                               `{"b":{}}`,
	} {
		for _, n := range []int{1, 2, 7, 1000} {
			got := filtered(t, doc, n, "kind", "metadata.resourceVersion")
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(got)); err != nil {
				t.Errorf("%s became %s: %v", doc, got, err)
			} else if compact.String() != want {
				t.Errorf("%s became %s, want %s", doc, compact.String(), want)
			}
		}
	}
}

// The filtered document decodes to the same value as the original without the members.
func FuzzFilter(f *testing.F) {
	f.Add(`{"kind":"a","b":{"c":[1,2,{"kind":null}]},"metadata":{"x":1,"kind":2}}`, 3)
	f.Add("{\"a\" : \"\\\\\" , \"kind\":[[]] }", 1)
	f.Fuzz(func(t *testing.T, doc string, n int) {
		var want any
		if n < 1 || json.Unmarshal([]byte(doc), &want) != nil || strings.Contains(doc, "\\u") {
			return // keys are compared as they are written
		}
		if o, ok := want.(map[string]any); ok {
			delete(o, "kind")
			if m, ok := o["b"].(map[string]any); ok {
				delete(m, "c")
			}
		}
		var got any
		if out := filtered(t, doc, n, "kind", "b.c"); json.Unmarshal([]byte(out), &got) != nil {
			t.Fatalf("%q became %q", doc, out)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	doc := []byte(`{"kind":"List","metadata":{"resourceVersion":"1"},"items":[` + strings.Repeat(`{"metadata":{"name":"a-name","namespace":"default"},"spec":{"prompt":"some text that is a little longer"}},`, 10000) + `{}]}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		f := newFilter(&discard{}, "kind", "apiVersion", "metadata.resourceVersion")
		for rest := doc; len(rest) > 0; rest = rest[min(len(rest), 32<<10):] {
			_, _ = f.Write(rest[:min(len(rest), 32<<10)])
		}
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
