// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
)

// resume opens a stream as a client that reconnects does.
func (s *site) resume(path, last string) *client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), kit.Patience)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set(sse.LastEventID, last)
	resp, err := s.transport().RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, resp.Status)
	}
	return &client{t: s.t, cancel: cancel, frames: sse.NewReader(resp.Body, sse.Options{})}
}

// TestAhead: a position that a timeline has not reached comes from another one, so its events all come, after a gap that says so.
func TestAhead(t *testing.T) {
	bothProtocols(t, func() options { return options{} }, func(s *site) {
		f := planted(s)
		joined(s)
		s.add("a", v1alpha1.EventTaskStarted)
		const gap = `0 gap {"fromSeq":2,"toSeq":50,"reason":"ahead"}`
		for path, c := range map[string]*client{
			"a parameter": s.open("/task/a?after=50"), "a header": s.resume("/task/a", "50"), "a filter": s.open("/task/a?after=50&type=TaskStarted&type=TaskSucceeded"),
			"a session": s.open("/session/s?after=50"),
		} {
			s.t.Log(path)
			c.want(gap, "1 TaskStarted")
		}
		c := s.resume("/task/a", "50")
		c.want(gap, "1 TaskStarted")
		s.add("a", v1alpha1.EventTaskSucceeded)
		c.want("2 TaskSucceeded", `2 stream_complete {"lastSeq":2,"type":"TaskSucceeded"}`)

		// The stream has ended, which the client must learn, too.
		const ended = `0 gap {"fromSeq":3,"toSeq":50,"reason":"ahead"}`
		for _, c := range []*client{s.open("/task/a?after=50"), s.resume("/task/a", "50")} {
			c.want(ended, "1 TaskStarted", "2 TaskSucceeded", `2 stream_complete {"lastSeq":2,"type":"TaskSucceeded"}`)
		}
		s.open("/task/a?after=2").want(`2 stream_complete {"lastSeq":2,"type":"TaskSucceeded"}`)
		s.open("/task/none?after=3").want(`0 gap {"fromSeq":1,"toSeq":3,"reason":"ahead"}`)

		// In a stream of several, one part begins anew.
		s.add("b", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage)
		s.resume("/task/b?tasks=a", "1.9").want(`1.0 gap {"streamType":"task","streamID":"a","fromSeq":3,"toSeq":9,"reason":"ahead"}`)

		// Positions of a tree are revisions.
		f.child("b", false)
		revision := int64(s.log.Revision())
		tree := s.open("/task/a?tree=true&after=123456789")
		if text, err := tree.next(); err != nil || text != gapText(revision+1, 123456789) {
			t.Errorf("the tree: %s %v, want %s", text, err, gapText(revision+1, 123456789))
		}
		tree.types("TaskStarted TaskSucceeded")

		for query, want := range map[string]string{
			"after=50":         "1 2 gap=3-50",
			"after=50&limit=1": "1 gap=3-50",
			"after=3":          "1 2 gap=3-3",
			"after=2":          "after=2",
			"before=50":        "2 1 before=50 oldest=1",
		} {
			p, err := s.server.Page(pageRequest(t, query), timelineOf("/task/a"))
			if err != nil || brief(p) != want || p.StreamUID != "uid-a" {
				t.Errorf("%s: %s %s %v, want %s", query, brief(p), p.StreamUID, err, want)
			}
		}
	})
}

func gapText(from, to int64) string {
	return fmt.Sprintf(`0 gap {"fromSeq":%d,"toSeq":%d,"reason":"ahead"}`, from, to)
}

// TestFramesHaveUIDs: every frame says which object it is about; in the stream of a tree, the task that the event is of.
func TestFramesHaveUIDs(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	f := planted(s)
	joined(s)
	f.child("b", false)
	s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage)
	f.say("b", v1alpha1.EventTaskSucceeded)
	s.add("a", v1alpha1.EventTaskSucceeded)
	for path, want := range map[string][]types.UID{
		"/task/a":           {"uid-a", "uid-a", "uid-a", "uid-a"},
		"/task/a?after=9":   {"uid-a", "uid-a", "uid-a", "uid-a", "uid-a"},
		"/task/a?tree=true": {"uid-a", "uid-a", "uid-b", "uid-a", "uid-a"},
		"/session/s":        {"uid-s", "uid-s"},
		"/task/b?tasks=a:3": {"", ""},
	} {
		c := s.open(path)
		for i, uid := range want {
			frame, err := c.frames.Next()
			if err != nil {
				t.Fatal(path, err)
			}
			var got struct {
				StreamID  string
				StreamUID types.UID
			}
			if err := json.Unmarshal([]byte(frame.Data), &got); err != nil {
				t.Fatal(path, err)
			}
			if uid == "" {
				uid = types.UID("uid-" + got.StreamID)
			}
			if got.StreamUID != uid {
				t.Errorf("%s: frame %d has the UID %q, want %q: %s", path, i, got.StreamUID, uid, frame.Data)
			}
		}
	}
}
