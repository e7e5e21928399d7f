// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// brief describes a page by the seqs of its events and its positions.
func brief(p *v1alpha1.ExecutionEventPage) string {
	var b strings.Builder
	for i := range p.Events {
		fmt.Fprintf(&b, "%d ", p.Events[i].Seq)
	}
	for _, at := range []struct {
		name string
		seq  int64
	}{{"after", p.AfterSeq}, {"before", p.BeforeSeq}, {"next", p.NextSeq}, {"prev", p.PrevSeq}, {"oldest", p.OldestSeq}} {
		if at.seq > 0 {
			fmt.Fprintf(&b, "%s=%d ", at.name, at.seq)
		}
	}
	if p.Gap != nil {
		fmt.Fprintf(&b, "gap=%d-%d ", p.Gap.FromSeq, p.Gap.ToSeq)
	}
	return strings.TrimSpace(b.String())
}

// Pages can be read from any position in both directions, and say where their neighbours begin.
func TestPages(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage, v1alpha1.EventToolCallStarted, v1alpha1.EventModelMessage)
	s.addText("a", "the Answer", v1alpha1.EventModelMessage, v1alpha1.EventToolCallStarted)
	s.add("a", v1alpha1.EventTaskSucceeded)
	if err := s.log.Trim(t.Context(), stream("a"), 3); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                                   "3 4 5 6 7 gap=1-2",
		"after=4&limit=2":                    "5 6 after=4",
		"order=desc&limit=2":                 "7 6 prev=6 oldest=3",
		"before=6&limit=2":                   "5 4 before=6 prev=4 oldest=3",
		"before=4":                           "3 before=4 oldest=3 gap=1-2",
		"before=2":                           "before=2 oldest=3 gap=1-1",
		"before=9223372036854775807&limit=1": "7 before=4611686018427387904 prev=7 oldest=3",
		"around=5&limit=3":                   "4 5 6 after=3 prev=4 oldest=3",
		"around=5":                           "3 4 5 6 7 oldest=3 gap=1-2",
		"around=5&limit=1":                   "5 after=4 prev=5",
		"around=99&limit=4":                  "6 7 after=5 prev=6 oldest=3",
		"q=ANSWER":                           "5 6 next=7 gap=1-2",
		"q=ANSWER&order=desc&limit=1":        "6 prev=6 oldest=3",
		"q=the answer&order=desc&type=ModelMessage": "5 oldest=3 gap=1-2",
		"type=ModelMessage&order=desc&limit=1":      "5 prev=5 oldest=3",
	} {
		p, err := s.server.Page(pageRequest(t, query), timelineOf("/task/a"))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if d := cmp.Diff(want, brief(p)); d != "" || p.LatestSeq != 7 || p.Events == nil {
			t.Errorf("%s (-want +got): %s", query, d)
		}
	}
	p, err := s.server.Page(pageRequest(t, "order=desc&limit=3"), timelineOf("/session/s"))
	if err != nil || brief(p) != "7 6 5 prev=5" || p.Events[0].TaskSeq != 7 {
		t.Errorf("the session: %s %v", brief(p), err)
	}
}

// What is wrong with a query is said by the name of its parameter.
func TestPageQueries(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	for query, want := range map[string]string{
		"before=0": "before:", "before=x": "before:", "before=": "before:", "around=-1": "around:", "order=up": "order: \"up\": must be asc or desc", "order=": "order:",
		"q=": "q: must be a text", "q=+": "q: must be a text", "q=" + strings.Repeat("x", 257): "q: must be a text of 1 to 256 bytes",
		"before=1&after=1": "before: cannot be combined with after", "around=1&before=1": "around: cannot be combined with before",
		"around=1&q=x": "around: cannot be combined with q", "order=asc&before=2": "before: cannot be combined with order=asc",
		"order=desc&after=2": "after: cannot be combined with order=desc", "around=1&order=asc": "around: cannot be combined with order", "limit=0": "limit:",
	} {
		if _, err := s.server.Page(pageRequest(t, query), timelineOf("/task/a")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

func pageRequest(t *testing.T, query string) *http.Request {
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+values.Encode(), nil)
}
