// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
)

// joined lets streams have the timelines of all tasks and sessions but of one.
func joined(s *site) {
	s.server.Join(func(_ context.Context, kind v1alpha1.StreamType, namespace, name string) (*Timeline, error) {
		if namespace != "default" || name == "secret" {
			return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks"), name, errors.New("not allowed"))
		}
		return timelineOf("/" + string(kind) + "/" + name), nil
	})
}

// A stream of several tasks and sessions has the events of all, each with the positions in all, and resumes from any of
// its frames.
func TestTogether(t *testing.T) {
	bothProtocols(t, func() options { return options{} }, func(s *site) {
		joined(s)
		s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage)
		s.add("c", v1alpha1.EventTaskStarted)
		c := s.open("/task/a?after=1&tasks=b,c:1&type=ModelMessage&type=TaskSucceeded")
		c.want("2.0.1 ModelMessage")
		s.add("b", v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage)
		c.want("2.2.1 ModelMessage")
		s.add("c", v1alpha1.EventModelMessage)
		c.want("2.2.2 ModelMessage")
		s.add("b", v1alpha1.EventTaskSucceeded)
		c.want("2.3.2 TaskSucceeded", `2.3.2 stream_complete {"streamType":"task","streamID":"b","lastSeq":3,"type":"TaskSucceeded"}`)
		s.add("a", v1alpha1.EventTaskSucceeded)
		c.want("3.3.2 TaskSucceeded", `3.3.2 stream_complete {"streamType":"task","streamID":"a","lastSeq":3,"type":"TaskSucceeded"}`)
		s.add("b", v1alpha1.EventTaskForkRequested) // a late event: its stream is over
		s.add("c", v1alpha1.EventTaskSucceeded)
		c.want("3.3.3 TaskSucceeded", `3.3.3 stream_complete {"streamType":"task","streamID":"c","lastSeq":3,"type":"TaskSucceeded"}`)
		if _, err := c.next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last part: %v", err)
		}
		if text := s.refused(t, "/task/a?tasks=c", "3.3", http.StatusNoContent); text != "" {
			t.Errorf("a reconnect with everything: %s", text)
		}
		s.add("d", v1alpha1.EventTaskStarted)
		mixed := s.open("/session/s?after=8&tasks=d:1")
		mixed.want("9.1 TaskForkRequested", "10.1 TaskSucceeded", "11.1 TaskStarted")
	})
}

// The end of one task does not end the stream of the others.
func TestTogetherDeleted(t *testing.T) {
	s := start(t, "HTTP/2.0", options{})
	joined(s)
	s.add("a", v1alpha1.EventTaskStarted)
	s.add("b", v1alpha1.EventTaskStarted)
	c := s.open("/task/a?after=1&tasks=b:1")
	s.add("a", v1alpha1.EventModelMessage)
	c.want("2.1 ModelMessage")
	if err := s.log.DeleteStream(t.Context(), stream("b")); err != nil {
		t.Fatal(err)
	}
	s.server.Deleted("uid-b")
	c.want(`2.1 stream_complete {"streamType":"task","streamID":"b","lastSeq":1,"type":"TaskDeleted"}`)
	s.add("a", v1alpha1.EventModelMessage)
	c.want("3.1 ModelMessage")
}

// What is wrong with a request is said before anything is sent.
func TestTogetherQueries(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	joined(s)
	s.add("a", v1alpha1.EventTaskStarted)
	for query, want := range map[string]string{
		"tasks=a": "tasks: \"a\": is named twice", "tasks=b,b": "is named twice", "sessions=s:x": "sessions: s: \"x\": must be a number from 0",
		"tasks=" + strings.Repeat("x,", 2): "is named twice", "tasks=secret": "not allowed", "tasks=b&type=Nonsense": "type",
	} {
		code := http.StatusBadRequest
		if strings.Contains(query, "secret") {
			code = http.StatusForbidden
		}
		if text := s.refused(t, "/task/a?"+query, "", code); !strings.Contains(text, want) {
			t.Errorf("%s: %s", query, text)
		}
	}
	var many strings.Builder
	for i := range maxParts {
		many.WriteString("t" + strings.Repeat("x", i) + ",")
	}
	if text := s.refused(t, "/task/a?tasks="+many.String(), "", http.StatusBadRequest); !strings.Contains(text, "at most 64") {
		t.Error(text)
	}
	for id, want := range map[string]string{"1": "must have 2 positions", "1.2.3": "must have 2 positions", "1.x": "must be a number"} {
		if text := s.refused(t, "/task/a?tasks=b", id, http.StatusBadRequest); !strings.Contains(text, want) {
			t.Errorf("%s: %s", id, text)
		}
	}
}

// refused returns the body of an answer that is no stream.
func (s *site) refused(t *testing.T, path, last string, code int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set(sse.LastEventID, last)
	}
	resp, err := (&http.Client{Transport: s.transport()}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != code {
		t.Errorf("%s: %s, want %d", path, resp.Status, code)
		return ""
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
