// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
)

func call(t *testing.T, tl tool.Tool, arguments map[string]any, out any) tool.Result {
	t.Helper()
	c, err := tool.NewCatalogue(tl)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Call(t.Context(), tl.Definition().Name, string(raw))
	envelope := struct{ Data any }{out}
	if err := json.Unmarshal([]byte(r.Text), &envelope); err != nil {
		t.Fatal(err)
	}
	return r
}

// site answers every path with the type and body that its query asks for, and
// redirects /hop/N that many times.
func site(t *testing.T) (base string, guard egress.Guard) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/hop/")); err == nil && n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/hop/%d", n-1), http.StatusFound)
			return
		}
		q := r.URL.Query()
		if to := q.Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if q.Get("type") != "" {
			w.Header().Set("Content-Type", q.Get("type"))
		}
		if s, err := strconv.Atoi(q.Get("status")); err == nil {
			w.WriteHeader(s)
		}
		_, _ = w.Write([]byte(strings.Repeat(q.Get("body"), max(1, len(q.Get("times"))))))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, egress.Guard{Allow: []string{srv.Listener.Addr().String()}}
}

func TestFetch(t *testing.T) {
	base, guard := site(t)
	page := "<html><head><title>T</title><script>alert(1)</script><style>p{}</style></head><body><h1>Head</h1><p>One <a href='/x'>link</a></p></body></html>"
	tests := map[string]struct {
		query string
		args  map[string]any
		want  FetchResult
	}{
		"html": {
			"type=text/html%3Bcharset=utf-8&body=" + escape(page), nil,
			FetchResult{Status: 200, Content: "# Head\n\nOne [link](/x)", Length: 22, Extractor: "markdown"},
		},
		"raw": {
			"type=text/html&body=" + escape("<p>é</p>"),
			map[string]any{"raw": true},
			FetchResult{Status: 200, Content: "<p>é</p>", Length: 8, Extractor: "raw"},
		},
		"json":  {"type=application/problem%2Bjson&body=" + escape(`{"a":[1]}`), nil, FetchResult{Status: 200, Content: "{\n  \"a\": [\n    1\n  ]\n}", Length: 22, Extractor: "json"}},
		"text":  {"type=text/plain&body=hello", nil, FetchResult{Status: 200, Content: "hello", Length: 5, Extractor: "text"}},
		"error": {"type=text/plain&status=404&body=gone", nil, FetchResult{Status: 404, Content: "gone", Length: 4, Extractor: "text"}},
		"mark":  {"type=application/json&body=%EF%BB%BF" + escape(`{"a":1}`), nil, FetchResult{Status: 200, Content: "{\n  \"a\": 1\n}", Length: 12, Extractor: "json"}},
		"wide":  {"type=text/plain&body=%FF%FEa%00%E4%00", nil, FetchResult{Status: 200, Content: "aä", Length: 2, Extractor: "text"}},
		"late":  {"type=text/plain&body=" + escape(strings.Repeat("a", 2000)+"ä"), nil, FetchResult{Status: 200, Content: strings.Repeat("a", 2000) + "ä", Length: 2001, Extractor: "text"}},
		"latin": {"type=text/plain%3Bcharset=iso-8859-1&body=caf%E9", nil, FetchResult{Status: 200, Content: "café", Length: 4, Extractor: "text"}},
		"no type": {
			"body=" + escape("<!DOCTYPE html><p>hi</p>"), nil,
			FetchResult{Status: 200, Content: "hi", Length: 2, Extractor: "markdown"},
		},
		"limit": {
			"type=text/plain%3Bcharset=utf-8&body=" + escape("äöü😀x"),
			map[string]any{"max_chars": 4},
			FetchResult{Status: 200, Content: "äöü😀", Length: 5, Truncated: true, Extractor: "text"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args := map[string]any{"url": base + "/p?" + tt.query}
			maps.Copy(args, tt.args)
			var got FetchResult
			r := call(t, Fetch(guard), args, &got)
			tt.want.URL = base + "/p?" + tt.query
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, r.Text)
			}
		})
	}
}

func escape(s string) string {
	return strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "'", "%27", `"`, "%22", "{", "%7B", "}", "%7D", "é", "%C3%A9",
		"ä", "%C3%A4", "ö", "%C3%B6", "ü", "%C3%BC", "😀", "%F0%9F%98%80").Replace(s)
}

func TestRedirects(t *testing.T) {
	base, guard := site(t)
	var got FetchResult
	if r := call(t, Fetch(guard), map[string]any{"url": base + "/hop/5"}, &got); r.Failed() || got.URL != base+"/hop/0" {
		t.Errorf("got %s", r.Text)
	}
	if r := call(t, Fetch(guard), map[string]any{"url": base + "/hop/6"}, &got); r.ErrorType != tool.TypeLimitReached {
		t.Errorf("got %s", r.Text)
	}
}

// TestAddresses tries to reach what a web tool must not, directly and through
// a redirect of a page that is allowed.
func TestAddresses(t *testing.T) {
	base, guard := site(t)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("internal")) }))
	defer inside.Close()
	for target, want := range map[string]tool.ErrorType{
		inside.URL: tool.TypePermissionDenied,
		strings.Replace(inside.URL, "127.0.0.1", "localhost", 1): tool.TypePermissionDenied,
		"http://169.254.169.254/latest/meta-data":                tool.TypePermissionDenied,
		"http://[::1]:1/":                   tool.TypePermissionDenied,
		"http://10.0.0.1/":                  tool.TypePermissionDenied,
		"http://[::ffff:192.168.0.1]/":      tool.TypePermissionDenied,
		"http://0.0.0.0:1/":                 tool.TypePermissionDenied,
		"file:///etc/passwd":                tool.TypeInvalidArguments,
		"ftp://127.0.0.1/":                  tool.TypeInvalidArguments,
		"http://user:hunter22@example.com/": tool.TypeInvalidArguments,
		"/relative":                         tool.TypeInvalidArguments,
	} {
		for _, u := range []string{target, base + "/?to=" + target} {
			if u != target && target == "/relative" {
				continue
			}
			r := call(t, Fetch(guard), map[string]any{"url": u}, &FetchResult{})
			if r.ErrorType != want || strings.Contains(r.Text, "internal\"") || strings.Contains(r.Text, "hunter22") {
				t.Errorf("%s: got %s", u, r.Text)
			}
		}
	}
}

func TestFetchFailures(t *testing.T) {
	base, guard := site(t)
	if r := call(t, Fetch(guard), map[string]any{"url": base + "/?type=image/png&body=x"}, &FetchResult{}); r.ErrorType != tool.TypeInvalidArguments {
		t.Errorf("got %s", r.Text)
	}
	const address = "127.0.0.1:1"
	guard.Allow = append(guard.Allow, address)
	r := call(t, Fetch(guard), map[string]any{"url": "http://" + address + "/?token=abc"}, &FetchResult{})
	if r.ErrorType != tool.TypeUnavailable || strings.Contains(r.Text, "abc") {
		t.Errorf("got %s", r.Text)
	}
}

func TestSearch(t *testing.T) {
	const key = "search-key-123"
	reply := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key || r.URL.Query().Get("q") != "go & kubernetes" || r.URL.Query().Get("limit") != "2" || r.URL.Query().Get("lang") != "en" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(reply))
	}))
	defer srv.Close()
	search := Search(SearchConfig{URL: srv.URL + "/s?lang=en", Key: key})
	args := map[string]any{"query": "go & kubernetes", "limit": 2}
	hits := []SearchHit{{"A", "http://a", "first"}, {"B", "http://b", "second"}}
	for _, reply = range []string{
		`[{"title":"A","url":"http://a","snippet":"first"},{"title":"B","url":"http://b","snippet":"second"},{"title":"C"}]`,
		`{"results":[{"title":"A","url":"http://a","snippet":"first"},{"title":"B","url":"http://b","snippet":"second"}]}`,
	} {
		var got []SearchHit
		if r := call(t, search, args, &got); r.Failed() || !cmp.Equal(hits, got) {
			t.Errorf("got %s", r.Text)
		}
	}
	for _, reply = range []string{"<html>", `{"other":1}`, "null"} {
		if r := call(t, search, args, &struct{}{}); r.ErrorType != tool.TypeUnavailable {
			t.Errorf("%s: got %s", reply, r.Text)
		}
	}
	reply = "[]"
	if r := call(t, search, args, &[]SearchHit{}); r.Text != `{"success":true,"data":[]}` {
		t.Errorf("got %s", r.Text)
	}
	if r := call(t, search, map[string]any{"query": "other"}, &struct{}{}); r.ErrorType != tool.TypeUnavailable || strings.Contains(r.Text, key) {
		t.Errorf("got %s", r.Text)
	}
	// Without a service the tool returns an error that says that it is not set up.
	if r := call(t, Search(SearchConfig{}), args, &struct{}{}); r.ErrorType != tool.TypeUnavailable || !strings.Contains(r.Text, "not set up") {
		t.Errorf("got %s", r.Text)
	}
}

// TestCutPage: a page that is longer than what is read ends with a whole character, in whatever charset.
func TestCutPage(t *testing.T) {
	for kind, body := range map[string]string{"text/plain; charset=utf-8": "a\xc3", "text/plain; charset=shift_jis": "a\x82", "text/plain": "a\xc3\xa4\xf0\x9f"} {
		text, _, err := extract([]byte(body), kind, false, true)
		if err != nil || strings.Contains(text, "\uFFFD") {
			t.Errorf("%s: %q, %v", kind, text, err)
		}
		if text, _, _ = extract([]byte(body), kind, false, false); !strings.HasSuffix(text, "\uFFFD") && kind != "text/plain" {
			t.Errorf("%s, whole: %q", kind, text)
		}
	}
}
