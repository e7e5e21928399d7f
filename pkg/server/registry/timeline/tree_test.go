// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// forest is the tree of the task "a".
type forest struct {
	*site
	mu    sync.Mutex
	below map[types.UID]string
	left  map[types.UID]bool
	deny  error
}

func planted(s *site) *forest {
	f := &forest{site: s, below: map[types.UID]string{}, left: map[types.UID]bool{}}
	s.server.JoinTrees(func(_ context.Context, _, name string) (*Tree, error) {
		if name != "a" {
			return nil, apierrors.NewBadRequest("no root")
		}
		return &Tree{
			Allowed:  func(context.Context) error { f.mu.Lock(); defer f.mu.Unlock(); return f.deny },
			Leftover: func(uid types.UID) bool { f.mu.Lock(); defer f.mu.Unlock(); return f.left[uid] },
			Below:    func() map[types.UID]string { f.mu.Lock(); defer f.mu.Unlock(); return maps.Clone(f.below) },
		}, nil
	})
	return f
}

// say adds events of a task below a.
func (f *forest) say(task string, types ...v1alpha1.EventType) {
	f.t.Helper()
	of := stream(task)
	of.Root = "a"
	var events []*v1alpha1.ExecutionEvent
	for _, typ := range types {
		events = append(events, &v1alpha1.ExecutionEvent{Type: typ})
	}
	if _, err := f.log.Append(f.t.Context(), of, events); err != nil {
		f.t.Fatal(err)
	}
}

func (f *forest) child(task string, left bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[stream(task).UID] = left
	if !left {
		f.below[stream(task).UID] = task
	}
}

// types reads the types of the next frames, and returns the id of the last.
func (c *client) types(want string) (last string) {
	c.t.Helper()
	var got []string
	for range strings.FieldsSeq(want) {
		text, err := c.next()
		if err != nil {
			c.t.Fatal(err)
		}
		id, typ, _ := strings.Cut(text, " ")
		got, last = append(got, strings.Fields(typ)[0]), id
	}
	if text := strings.Join(got, " "); text != want {
		c.t.Fatalf("got %s, want %s", text, want)
	}
	return last
}

// The stream of a tree has the events of all its tasks in one order, resumes from any of them, and ends after the last.
func TestTree(t *testing.T) {
	bothProtocols(t, func() options { return options{} }, func(s *site) {
		f := planted(s)
		f.child("b", false)
		f.child("old", true)
		s.add("a", v1alpha1.EventTaskStarted)
		f.say("old", v1alpha1.EventModelMessage) // of a tree that another task of that name had
		f.say("b", v1alpha1.EventTaskStarted)
		s.add("other", v1alpha1.EventTaskStarted)
		s.add("a", v1alpha1.EventModelMessage)
		c := s.open("/task/a?tree=true")
		first := c.types("TaskStarted TaskStarted ModelMessage")
		f.child("c", false)
		f.say("c", v1alpha1.EventTaskStarted, v1alpha1.EventTaskSucceeded)
		f.say("b", v1alpha1.EventTaskFailed)
		c.types("TaskStarted TaskSucceeded TaskFailed")
		s.add("a", v1alpha1.EventTaskSucceeded)
		last := c.types("TaskSucceeded stream_complete")
		if _, err := c.next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
		again := s.open("/task/a?tree=true&after=" + first)
		again.types("TaskStarted TaskSucceeded TaskFailed TaskSucceeded")
		if text, err := again.next(); err != nil || text != fmt.Sprintf(`%s stream_complete {"lastSeq":%s,"type":"TaskSucceeded"}`, last, last) {
			t.Errorf("the last frame: %s %v", text, err)
		}
		some := s.open("/task/a?tree=1&type=TaskFailed")
		some.types("TaskFailed stream_complete")
		if text := s.refused(t, "/task/a?tree=true", last, http.StatusNoContent); text != "" {
			t.Errorf("a reconnect with everything: %s", text)
		}
	})
}

// A tree goes on after its root while a task that was detached runs, and a stream of it ends when that is deleted.
func TestTreeOutlivesRoot(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	s := start(t, "HTTP/2.0", options{Options: Options{Clock: fake, WriteTimeout: time.Hour}})
	f := planted(s)
	f.child("b", false)
	f.say("b", v1alpha1.EventTaskStarted)
	s.add("a", v1alpha1.EventTaskSucceeded)
	c := s.open("/task/a?tree=true")
	c.types("TaskStarted TaskSucceeded")
	f.say("b", v1alpha1.EventModelMessage)
	c.types("ModelMessage")
	f.mu.Lock()
	delete(f.below, stream("b").UID)
	f.mu.Unlock()
	of := stream("b")
	of.Root = "a"
	if err := s.log.DeleteStream(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	c.types("stream_complete")
}

// A stream of a tree ends with its root, and when the right to read it is gone.
func TestTreeEnds(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	f := planted(s)
	s.add("a", v1alpha1.EventTaskStarted)
	denied := s.open("/task/a?tree=true")
	denied.types("TaskStarted")
	f.mu.Lock()
	f.deny = apierrors.NewForbidden(v1alpha1.Resource("executionevents"), "", errors.New("no longer"))
	f.mu.Unlock()
	s.add("a", v1alpha1.EventModelMessage)
	if text, err := denied.next(); err != nil || !strings.Contains(text, "no longer") || !strings.HasPrefix(text, event.FrameError) {
		t.Errorf("without the right: %s %v", text, err)
	}
	f.mu.Lock()
	f.deny = nil
	f.mu.Unlock()
	left := s.open("/task/a?tree=true")
	left.types("TaskStarted ModelMessage")
	s.server.Deleted(stream("a").UID)
	if text, err := left.next(); err != nil || !strings.Contains(text, `"type":"TaskDeleted"`) {
		t.Errorf("without the root: %s %v", text, err)
	}
}

// What is wrong with a request is said before anything is sent.
func TestTreeQueries(t *testing.T) {
	s := start(t, "HTTP/1.1", options{})
	f := planted(s)
	joined(s)
	s.add("a", v1alpha1.EventTaskStarted)
	for query, want := range map[string]string{
		"/task/a?tree=maybe": `tree: "maybe": must be true or false`, "/task/a?tree=true&tasks=b": "cannot be combined",
		"/task/b?tree=true": "no root", "/task/a?tree=true&after=x": "must be a number", "/task/a?tree=true&type=Nonsense": "is not an event type",
	} {
		if text := s.refused(t, query, "", http.StatusBadRequest); !strings.Contains(text, want) {
			t.Errorf("%s: %s", query, text)
		}
	}
	f.deny = apierrors.NewForbidden(v1alpha1.Resource("executionevents"), "", errors.New("not allowed"))
	s.refused(t, "/task/a?tree=true", "", http.StatusForbidden)
	f.deny = nil
	s.open("/task/a?tree=false").want("1 TaskStarted")
}
