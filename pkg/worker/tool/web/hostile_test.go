// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/test/kit"
)

// TestHostilePages: a page can neither fill the memory nor keep the run waiting, and what a model reads of it is bounded.
func TestHostilePages(t *testing.T) {
	// soon ends what would never end by itself, so that it can be short.
	const long, soon = kit.Patience, 100 * time.Millisecond
	filler := []byte(strings.Repeat("x ", 32<<10))
	page := func(html string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(html))
		}
	}
	data := func(json string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(json))
		}
	}
	nest := func(depth int, open, inner, end string) string {
		return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
	}
	alike := []string{"lists", "as deep as allowed"} // take seconds, as quotations do
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		limit  time.Duration
		// want is a part of the answer.
		want string
		// length is the greatest number of characters of the whole text.
		length int
	}{
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for {
				if _, err := w.Write(filler); err != nil {
					return
				}
			}
		}, long, `"truncated":true`, maxBody},
		"decompression bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 10_000 { // 640 MB
				if _, err := z.Write(filler); err != nil {
					return
				}
			}
			_ = z.Close()
		}, long, `"truncated":true`, maxBody},
		"drip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for {
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(10 * time.Millisecond): // the drip; whatever its pace, the answer never ends
				}
			}
		}, soon, `"errorType":"timeout"`, 0},
		"no answer":               {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, soon, `"errorType":"timeout"`, 0},
		"long header":             {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 300<<10)) }, long, "could not be fetched", 0},
		"deep":                    {page(nest(100_000, "<div>", "x", "</div>")), long, `"extractor":"raw"`, maxBody},
		"as deep as allowed":      {page(nest(200, "<div>", strings.Repeat("a<br>", 100_000), "</div>")), long, `"extractor":"markdown"`, maxConverted},
		"quotations":              {page(nest(400, "<blockquote>", strings.Repeat("a<br>", 900_000), "</blockquote>")), long, `"extractor":"raw"`, maxBody},
		"a few quotations":        {page(nest(3, "<blockquote>", "a<br>b", "</blockquote>")), long, `"length":17,"truncated":false,"extractor":"markdown"`, 17},
		"lists":                   {page(nest(150, "<ul><li>", strings.Repeat("a<br>", 900_000), "</li></ul>")), long, `"extractor":"raw"`, maxBody},
		"long quoted listing":     {page(nest(30, "<blockquote>", "<pre>"+strings.Repeat("a\n", 2_000_000)+"</pre>", "</blockquote>")), long, `"extractor":"raw"`, maxBody},
		"many attributes":         {page("<p " + strings.Repeat("a=b ", 1_000_000) + ">x</p>"), long, `"extractor":"markdown"`, 10},
		"formatting":              {page(strings.Repeat("<b><i><a href=x>", 300_000)), long, `"extractor":`, maxBody},
		"never closed":            {page("<!--" + strings.Repeat("<p", 2_000_000)), long, `"extractor":`, maxBody},
		"JSON without an end":     {data(strings.Repeat("[", 4<<20)), long, `"extractor":"text"`, maxBody},
		"deep JSON":               {data("[" + strings.Repeat(nest(9_000, "[", "1", "]")+",", 250) + "1]"), long, `"extractor":"text"`, maxBody},
		"wide JSON":               {data(nest(500, "[", strings.Repeat("1,", 2_000_000)+"1", "]")), long, `"extractor":"text"`, maxBody},
		"brackets in JSON's text": {data(`["` + strings.Repeat(`[{\"`, 100_000) + `"]`), long, `"extractor":"json"`, maxBody},
	} {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(alike, name) {
				kit.Needs(t, kit.Minutes)
			}
			srv := httptest.NewServer(tc.answer)
			t.Cleanup(srv.Close)
			f := &fetcher{client: client(egress.Guard{Allow: []string{srv.Listener.Addr().String()}}, checkRedirect)}
			f.client.Timeout = tc.limit
			var got FetchResult
			r := call(t, f.tool(), map[string]any{"url": srv.URL, "max_chars": 1000}, &got)
			if !strings.Contains(r.Text, tc.want) || got.Length > tc.length || len(r.Text) > 8<<10 {
				t.Errorf("%d characters of %d: %.300s", len(r.Text), got.Length, r.Text)
			}
		})
	}
}
