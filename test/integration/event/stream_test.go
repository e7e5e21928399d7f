// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const sessionsPath = "/apis/core.platform.ai/v1alpha1/namespaces/default/sessions"

var sessions = schema.GroupVersionResource{Group: "core.platform.ai", Version: "v1alpha1", Resource: "sessions"}

func session(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Session", "metadata": map[string]any{"name": name},
	}}
}

// streams is a server and a client of it that speaks one version of HTTP.
type streams struct {
	*standalone.Server
	t       *testing.T
	client  *http.Client
	metrics *prometheus.Registry
}

// overHTTP runs a test with HTTP/1.1 and with HTTP/2.
func overHTTP(t *testing.T, test func(s *streams), configure ...func(*standalone.Options)) {
	for proto, offers := range map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2.0": nil} {
		t.Run(proto, func(t *testing.T) {
			metrics := prometheus.NewRegistry()
			configure := append([]func(*standalone.Options){func(o *standalone.Options) { o.Metrics = metrics }}, configure...)
			s := &streams{Server: standalone.Start(t, configure...), t: t, metrics: metrics}
			s.connect(offers)
			test(s)
		})
	}
}

func (s *streams) connect(offers []string) {
	c := s.Server.Config()
	c.NextProtos = offers
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.client = h
	s.t.Cleanup(h.CloseIdleConnections)
}

// task creates a task, of session where one is given.
func (s *streams) task(name, session string) *unstructured.Unstructured {
	s.t.Helper()
	u := standalone.Task(name)
	if session != "" {
		u = standalone.Task(name, "sessionRef", map[string]any{"name": session})
	}
	u, err := s.In(s.t, standalone.Tasks).Create(s.t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// add appends one event per type, as one commit.
func (s *streams) add(task string, types ...v1alpha1.EventType) {
	s.t.Helper()
	list := v1alpha1.ExecutionEventList{}
	list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "ExecutionEventList"
	for i, typ := range types {
		list.Items = append(list.Items, v1alpha1.ExecutionEvent{Type: typ, Summary: fmt.Sprintf("%s %d", task, i), DedupKey: fmt.Sprintf("%s %d", typ, i)})
	}
	body, err := json.Marshal(list)
	if err != nil {
		s.t.Fatal(err)
	}
	if code, answer := s.do(http.MethodPost, standalone.TasksPath+"/"+task+"/events", string(body)); code != http.StatusCreated {
		s.t.Fatalf("append to %s: %d %s", task, code, answer)
	}
}

func (s *streams) request(method, path, body string) *http.Request {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), kit.Patience)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

func (s *streams) do(method, path, body string) (int, string) {
	s.t.Helper()
	resp, err := s.client.Do(s.request(method, path, body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// stream is an open stream of events.
type stream struct {
	t      *testing.T
	resp   *http.Response
	frames *sse.Reader
	beats  int
}

// open opens a stream; header is name and value, in turn.
func (s *streams) open(path string, header ...string) *stream {
	s.t.Helper()
	req := s.request(http.MethodGet, path, "")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("%s: %s %s", path, resp.Status, b)
	}
	st := &stream{t: s.t, resp: resp}
	st.frames = sse.NewReader(resp.Body, sse.Options{Comment: func(string) { st.beats++ }})
	return st
}

// none expects that a request for a stream is answered with 204.
func (s *streams) none(path string, header ...string) {
	s.t.Helper()
	req := s.request(http.MethodGet, path, "")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		s.t.Errorf("%s: %s", path, resp.Status)
	}
}

// streamUID is the member of a frame that says whose stream it is of.
var streamUID = regexp.MustCompile(`,"streamUID":"[0-9a-f-]{36}"`)

// next returns the next frame in words: "3 ModelMessage", "3 stream_complete {…}", "EOF".
func (s *stream) next() string {
	s.t.Helper()
	f, err := s.frames.Next()
	if errors.Is(err, io.EOF) {
		return "EOF"
	}
	if err != nil {
		return err.Error()
	}
	if f.Type != "execution_event" {
		return f.ID + " " + f.Type + " " + streamUID.ReplaceAllString(f.Data, "")
	}
	var e v1alpha1.ExecutionEvent
	if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
		s.t.Fatalf("%q: %v", f.Data, err)
	}
	if fmt.Sprint(e.Seq) != f.ID {
		s.t.Errorf("event %d has the id %s", e.Seq, f.ID)
	}
	return f.ID + " " + string(e.Type)
}

func (s *stream) want(frames ...string) {
	s.t.Helper()
	var got []string
	for range frames {
		got = append(got, s.next())
		if got[len(got)-1] == "EOF" {
			break
		}
	}
	if d := cmp.Diff(frames, got); d != "" {
		s.t.Fatalf("frames (-want +got):\n%s", d)
	}
}

// A stream sends what is stored, then new events, and ends once, with the task.
func TestTaskStream(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		s.task("a", "")
		live := s.open(standalone.TasksPath + "/a/stream") // before there is an event
		if got := live.resp.Proto; !strings.HasSuffix(s.t.Name(), strings.TrimPrefix(got, "HTTP/")) {
			t.Fatalf("the test speaks %s", got)
		}
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"} {
			if got := live.resp.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventWorkerStarted)
		live.want("1 TaskStarted", "2 WorkerStarted")
		s.add("a", v1alpha1.EventModelMessage)
		live.want("3 ModelMessage")
		middle := s.open(standalone.TasksPath + "/a/stream?after=1")
		middle.want("2 WorkerStarted", "3 ModelMessage")
		filtered := s.open(standalone.TasksPath + "/a/stream?type=WorkerStarted&type=ModelMessage&after=2")
		filtered.want("3 ModelMessage")
		s.add("a", v1alpha1.EventResultSubmitted, v1alpha1.EventTaskSucceeded)
		complete := `5 stream_complete {"lastSeq":5,"type":"TaskSucceeded"}`
		live.want("4 ResultSubmitted", "5 TaskSucceeded", complete, "EOF")
		middle.want("4 ResultSubmitted", "5 TaskSucceeded", complete, "EOF")
		filtered.want(complete, "EOF")
		// A client that reconnects after the end gets stream_complete again.
		s.open(standalone.TasksPath+"/a/stream?after=5").want(complete, "EOF")
		s.open(standalone.TasksPath+"/a/stream?after=999&type=ResultSubmitted").want(`0 gap {"fromSeq":6,"toSeq":999,"reason":"ahead"}`, "4 ResultSubmitted", complete, "EOF")
		s.open(standalone.TasksPath+"/a/stream", sse.LastEventID, "4").want("5 TaskSucceeded", complete, "EOF")
		// A browser that has everything is told not to connect again.
		s.none(standalone.TasksPath+"/a/stream", sse.LastEventID, "5")
		s.none(standalone.TasksPath+"/a/stream?after=1&type=TaskStarted", sse.LastEventID, "5")
		// A browser reconnects with its original URL, so the header takes precedence.
		s.open(standalone.TasksPath+"/a/stream?after=1", sse.LastEventID, "4").want("5 TaskSucceeded", complete, "EOF")
		s.open(standalone.TasksPath+"/a/stream?after=4", sse.LastEventID, "3").want("4 ResultSubmitted", "5 TaskSucceeded", complete, "EOF")
		s.open(standalone.TasksPath+"/a/stream?type=TaskStarted").want("1 TaskStarted", complete, "EOF")
	})
}

// TestStreamOfATaskThatIsBeingDeleted: the stream of a task that is deleted while it runs says that the task is gone, and not only
// that it was cancelled, which is how a deletion begins.
func TestStreamOfATaskThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		tasks := s.Core(t).Tasks("default")
		kit.Must[*v1alpha1.Task](t)(tasks.Create(t.Context(), &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/hold"}},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
		}, metav1.CreateOptions{}))
		s.add("a", v1alpha1.EventTaskStarted)
		live := s.open(standalone.TasksPath + "/a/stream")
		live.want("1 TaskStarted")
		if err := tasks.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.add("a", v1alpha1.EventTaskCancelled)
		live.want("2 TaskCancelled")
		again := s.open(standalone.TasksPath+"/a/stream", sse.LastEventID, "1")
		again.want("2 TaskCancelled")
		kit.Must[*v1alpha1.Task](t)(tasks.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		for _, c := range []*stream{live, again} {
			c.want(`2 stream_complete {"lastSeq":2,"type":"TaskDeleted"}`, "EOF")
		}
	})
}

// The JSON of an event is the object without the parts that are specific to the Kubernetes API.
func TestRowsOfEvents(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		if _, err := s.In(t, sessions).Create(t.Context(), session("s"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.task("a", "s")
		s.task("b", "s")
		s.add("a", v1alpha1.EventTaskStarted)
		s.add("b", v1alpha1.EventTaskStarted)
		s.add("a", v1alpha1.EventModelMessage)
		want := map[string]any{
			"namespace": "default", "streamType": "session", "streamID": "s", "seq": 3.0, "type": "ModelMessage", "severity": "info",
			"taskName": "a", "rootTask": "a", "sessionName": "s", "summary": "a 0", "taskSeq": 2.0, "taskStreamID": "a",
		}
		check := func(where string, row map[string]any) {
			t.Helper()
			if row["id"] == "" || row["createdAt"] == nil {
				t.Errorf("%s: id %v, createdAt %v", where, row["id"], row["createdAt"])
			}
			delete(row, "id")
			delete(row, "createdAt")
			if d := cmp.Diff(want, row); d != "" {
				t.Errorf("%s (-want +got):\n%s", where, d)
			}
		}
		f, err := s.open(sessionsPath + "/s/stream?after=2").frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if err := json.Unmarshal([]byte(f.Data), &row); err != nil {
			t.Fatal(err)
		}
		if row["streamUID"] == "" {
			t.Error("the frame has no UID of its stream")
		}
		delete(row, "streamUID")
		check("stream", row)
		_, body := s.do(http.MethodGet, sessionsPath+"/s/events?after=2", "")
		var page struct{ Events []map[string]any }
		if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Events) != 1 {
			t.Fatalf("%s: %v", body, err)
		}
		check("page", page.Events[0])
		_, body = s.do(http.MethodGet, sessionsPath+"/s/events/counts?buckets=2&type=TaskStarted", "")
		var counts v1alpha1.ExecutionEventCounts
		if err := json.Unmarshal([]byte(body), &counts); err != nil {
			t.Fatal(err)
		}
		inBuckets := int64(0)
		for _, b := range counts.Buckets {
			inBuckets += b.Total
		}
		if counts.StreamType != v1alpha1.StreamSession || counts.StreamID != "s" || counts.OldestSeq != 1 || counts.LatestSeq != 3 || counts.Total != 2 || inBuckets != 2 || counts.Types[v1alpha1.EventModelMessage] != 1 {
			t.Errorf("counts: %s", body)
		}
	})
}

func (s *streams) page(path string) *v1alpha1.ExecutionEventPage {
	s.t.Helper()
	code, body := s.do(http.MethodGet, path, "")
	p := &v1alpha1.ExecutionEventPage{}
	if err := json.Unmarshal([]byte(body), p); code != http.StatusOK || err != nil {
		s.t.Fatalf("%s: %d %s", path, code, body)
	}
	if p.Kind != "ExecutionEventPage" || p.APIVersion != "core.platform.ai/v1alpha1" || p.StreamNamespace != "default" || p.Events == nil {
		s.t.Errorf("%s: %s", path, body)
	}
	return p
}

func TestEventPages(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		if _, err := s.In(t, sessions).Create(t.Context(), session("s"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.task("a", "s")
		empty := s.page(standalone.TasksPath + "/a/events")
		if empty.LatestSeq != 0 || empty.NextSeq != 0 || len(empty.Events) != 0 || empty.StreamType != "task" || empty.StreamID != "a" {
			t.Errorf("page of an empty stream: %+v", empty)
		}
		for range 11 { // 1100 messages, each after one tool call
			var types []v1alpha1.EventType
			for range 100 {
				types = append(types, v1alpha1.EventToolCallStarted, v1alpha1.EventModelMessage)
			}
			s.addFresh("a", types...)
		}
		for _, tc := range []struct {
			query             string
			n                 int
			first, last, next int64
		}{
			{"", 100, 1, 100, 0},
			{"?limit=7", 7, 1, 7, 0},
			{"?limit=1000", 1000, 1, 1000, 0},
			{"?limit=1001", 1000, 1, 1000, 0},
			{"?limit=99999999999999999999", 1000, 1, 1000, 0},
			{"?after=2150&limit=1000", 50, 2151, 2200, 0},
			{"?after=2200", 0, 0, 0, 0},
			{"?after=2200", 0, 0, 0, 0},
			{"?after=5000", 100, 1, 100, 0}, // a position of another stream: this one from its beginning, after a gap
			{"?after=2195&type=ModelMessage&limit=3", 3, 2196, 2200, 0},
			{"?type=ModelMessage&limit=3", 3, 2, 6, -1},
			{"?type=ModelMessage&type=ToolCallStarted&limit=3", 3, 1, 3, 0},
			{"?type=TaskStarted", 0, 0, 0, 2200},
		} {
			for _, of := range []string{standalone.TasksPath + "/a", sessionsPath + "/s"} {
				p := s.page(of + "/events" + tc.query)
				var first, last int64
				if n := len(p.Events); n > 0 {
					first, last = p.Events[0].Seq, p.Events[n-1].Seq
				}
				if len(p.Events) != tc.n || first != tc.first || last != tc.last || tc.next >= 0 && p.NextSeq != tc.next || p.LatestSeq != 2200 {
					t.Errorf("%s%s: %d events, %d to %d, next %d, latest %d; want %+v", of, tc.query, len(p.Events), first, last, p.NextSeq, p.LatestSeq, tc)
				}
				if tc.next < 0 && p.NextSeq != 0 && p.NextSeq != 7 { // the next match is 8
					t.Errorf("%s%s: next %d", of, tc.query, p.NextSeq)
				}
			}
		}
	})
}

// addFresh appends without keys, so that nothing counts as a repetition.
func (s *streams) addFresh(task string, types ...v1alpha1.EventType) {
	s.t.Helper()
	var items []string
	for _, typ := range types {
		items = append(items, fmt.Sprintf(`{"type":%q}`, typ))
	}
	body := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEventList","items":[` + strings.Join(items, ",") + `]}`
	if code, answer := s.do(http.MethodPost, standalone.TasksPath+"/"+task+"/events", body); code != http.StatusCreated {
		s.t.Fatalf("append to %s: %d %s", task, code, answer)
	}
}

// A request that cannot be answered gets an error before the first byte, for pages and streams alike.
func TestBadRequestsForEvents(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		if _, err := s.In(t, sessions).Create(t.Context(), session("s"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.task("a", "gone") // a session without an object
		for path, want := range map[string]struct {
			code int
			text string
		}{
			"/a/events?limit=0":                      {400, `limit: \"0\"`},
			"/a/events?limit=-1":                     {400, "limit"},
			"/a/events?limit=x":                      {400, "limit"},
			"/a/events?limit=":                       {400, "limit"},
			"/a/events?limit=%2B1":                   {400, "limit"},
			"/a/events?after=-1":                     {400, `after: \"-1\"`},
			"/a/events?after=latest":                 {400, "after"},
			"/a/events?after=":                       {400, "after"},
			"/a/events?type=Nonsense":                {400, "is not an event type"},
			"/a/events?type=":                        {400, "is not an event type"},
			"/a/stream?after=x":                      {400, "after"},
			"/a/stream?type=Nonsense":                {400, "is not an event type"},
			"/b/events":                              {404, `tasks.core.platform.ai \"b\" not found`},
			"/b/stream":                              {404, `tasks.core.platform.ai \"b\" not found`},
			"/../sessions/gone/events":               {404, `sessions.core.platform.ai \"gone\" not found`},
			"/../sessions/gone/stream":               {404, `sessions.core.platform.ai \"gone\" not found`},
			"/../sessions/s/events?type=Nonsense":    {400, "is not an event type"},
			"/../sessions/s/events/counts?buckets=0": {400, "from 1 to 500"},
			"/../sessions/s/events/sums":             {404, `sessions/events.core.platform.ai \"sums\" not found`},
			"/a/events/sums":                         {404, `tasks/events.core.platform.ai \"sums\" not found`},
			"/../sessions/gone/events/counts":        {404, `sessions.core.platform.ai \"gone\" not found`},
			"/../sessions/s/stream?type=Nonsense":    {400, "is not an event type"},
			"/../sessions/s/stream?after=1.5":        {400, "after"},
		} {
			path = strings.Replace(standalone.TasksPath+path, "/tasks/..", "", 1)
			if code, body := s.do(http.MethodGet, path, ""); code != want.code || !strings.Contains(body, want.text) || !strings.Contains(body, `"kind":"Status"`) {
				t.Errorf("%s: %d %s, want %+v", path, code, body, want)
			}
		}
		req := s.request(http.MethodGet, standalone.TasksPath+"/a/stream", "")
		req.Header.Set(sse.LastEventID, "0x1")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a bad Last-Event-ID: %s", resp.Status)
		}
	})
}

// A session's stream has the events of all its tasks, outlives these tasks, and ends with the session.
func TestSessionStream(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		c := s.In(t, sessions)
		if _, err := c.Create(t.Context(), session("s"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.task("a", "s")
		s.task("b", "s")
		s.task("alone", "")
		live := s.open(sessionsPath + "/s/stream")
		s.add("a", v1alpha1.EventTaskStarted)
		s.add("alone", v1alpha1.EventTaskStarted)
		s.add("b", v1alpha1.EventTaskStarted, v1alpha1.EventTaskSucceeded)
		s.add("a", v1alpha1.EventTaskFailed)
		live.want("1 TaskStarted", "2 TaskStarted", "3 TaskSucceeded", "4 TaskFailed")
		s.task("c", "s")
		s.add("c", v1alpha1.EventTaskStarted)
		live.want("5 TaskStarted")
		filtered := s.open(sessionsPath + "/s/stream?after=1&type=TaskStarted")
		filtered.want("2 TaskStarted", "5 TaskStarted")
		if err := c.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		live.want(`5 stream_complete {"lastSeq":5,"type":"SessionDeleted"}`, "EOF")
		filtered.want(`5 stream_complete {"lastSeq":5,"type":"SessionDeleted"}`, "EOF")
	})
}

// Deleting a task ends its streams, whether it has events or not. A new task of the same name starts from the beginning.
func TestStreamOfADeletedTask(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		s.task("a", "")
		s.task("b", "")
		s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventWorkerStarted)
		a, b := s.open(standalone.TasksPath+"/a/stream"), s.open(standalone.TasksPath+"/b/stream")
		a.want("1 TaskStarted", "2 WorkerStarted")
		for _, name := range []string{"a", "b"} {
			if err := s.In(t, standalone.Tasks).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		a.want(`2 stream_complete {"lastSeq":2,"type":"TaskDeleted"}`, "EOF")
		b.want(` stream_complete {"lastSeq":0,"type":"TaskDeleted"}`, "EOF")
		s.task("a", "")
		again := s.open(standalone.TasksPath + "/a/stream")
		s.add("a", v1alpha1.EventTaskStarted)
		again.want("1 TaskStarted")
	})
}

// A server that stops ends its streams cleanly, without a last frame, and clients resume where they were.
func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		s.task("a", "")
		s.add("a", v1alpha1.EventTaskStarted)
		live := s.open(standalone.TasksPath + "/a/stream")
		live.want("1 TaskStarted")
		s.Stop(t)
		live.want("EOF")
		s.StartAgain(t)
		s.connect(nil)
		s.add("a", v1alpha1.EventWorkerStarted)
		s.open(standalone.TasksPath+"/a/stream", sse.LastEventID, "1").want("2 WorkerStarted")
	})
}

// The whole server, with its handler chain, also disconnects a client that reads nothing. The test runs alone, because it
// needs the processors to write more than the buffers hold. The deadlines of sockets pass in real time; TestSlowClientIsCut of
// pkg/server/registry/timeline shows the exact time.
func TestSlowStreamIsCut(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	overHTTP(t, func(s *streams) {
		s.task("a", "")
		slow := s.open(standalone.TasksPath + "/a/stream")
		item := `{"type":"ModelMessage","contentText":"` + strings.Repeat("x y ", 8<<10) + `"}`
		body := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEventList","items":[` + strings.Repeat(item+",", 49) + item + `]}`
		for range 10 { // 16 MB: more than all buffers on the way
			if code, answer := s.do(http.MethodPost, standalone.TasksPath+"/a/events", body); code != http.StatusCreated {
				t.Fatalf("append: %d %s", code, answer)
			}
		}
		kit.Await(s.t, "stream that was cut", func() bool { return s.metric("stream_errors_total", "write", "task") == 1 })
		last := "0"
		for {
			f, err := slow.frames.Next()
			if errors.Is(err, io.EOF) {
				t.Error("the cut stream looks as if it had ended in good order")
			}
			if err != nil {
				break
			}
			last = f.ID
		}
		n, err := strconv.Atoi(last)
		if err != nil || n == 0 || n == 500 {
			t.Fatalf("the slow client got events up to %s", last)
		}
		s.open(standalone.TasksPath+"/a/stream", sse.LastEventID, last).want(fmt.Sprintf("%d ModelMessage", n+1))
		if n := s.metric("stream_connections_current", "task"); n != 1 {
			t.Errorf("%v streams are open", n)
		}
		if n := s.metric("stream_reconnects_total", "task"); n != 1 {
			t.Errorf("%v reconnects", n)
		}
	}, func(o *standalone.Options) { o.StreamWriteTimeout = 10 * time.Second })
}

// Pages are counted as requests, with their outcome.
func TestPagesAreCounted(t *testing.T) {
	t.Parallel()
	overHTTP(t, func(s *streams) {
		s.task("a", "")
		s.page(standalone.TasksPath + "/a/events")
		s.page(standalone.TasksPath + "/a/events?after=5")
		s.do(http.MethodGet, standalone.TasksPath+"/a/events?limit=0", "")
		for result, want := range map[string]float64{"success": 2, "error": 1} {
			if n := s.metric("list_requests_total", result, "task_api"); n != want {
				t.Errorf("%s: %v, want %v", result, n, want)
			}
		}
	})
}

// metric returns the value of a counter or gauge about events, by the values of its labels in the order of their names.
func (s *streams) metric(name string, labels ...string) float64 {
	s.t.Helper()
	return standalone.Measured(s.t, s.metrics, "platform_execution_event_"+name, labels...)
}
