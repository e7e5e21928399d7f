// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func TestRESTWorkerPaths(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "mine")
	s.RESTTask(t, "other")
	const events = "/internal/v1/events/default/task/mine"
	a := worker.Post(events, `{"type":"ModelMessage","severity":"LOUD","summary":"hello"}`).Want(t, 201)
	stored := host.Decode[map[string]any](t, a)
	if stored["seq"] != 1.0 || stored["id"] == "" || stored["createdAt"] == nil || len(stored) != 3 {
		t.Errorf("stored: %v", stored)
	}
	worker.Post(events, `{"type":"ModelMessage","dedupKey":"k"}`).Want(t, 201, `"seq":2`)
	worker.Post(events, `{"type":"ModelMessage","dedupKey":"k"}`).Want(t, 201, `"seq":2`)
	worker.Post("/internal/v1/events/default/session/mine", `{"type":"ModelMessage"}`).Problem(t, 400, `streamType: "session"`)
	worker.Post(events, `{"type":"Nonsense"}`).Problem(t, 400, "Nonsense")
	worker.Post(events, `{"type":"ModelMessage","colour":"red"}`).Problem(t, 400, `unknown field "colour"`)
	worker.Post(events, `{"kind":"ExecutionEventList","items":[]}`).Problem(t, 400, `unknown field "items"`)
	worker.Post(events, `{"type":"TaskSucceeded"}`).Problem(t, 403, "terminal task and approval events must use controller-owned paths")
	worker.Post("/internal/v1/events/default/task/other", `{"type":"ModelMessage"}`).Problem(t, 403, "another task")
	worker.Post("/internal/v1/events/other/task/mine", `{"type":"ModelMessage"}`).Problem(t, 403, `namespace "other"`)
	worker.Post("/internal/v1/events/default/task/nosuch", `{"type":"ModelMessage"}`).Problem(t, 404, `"nosuch" not found`)
	worker.Post(events, `{"type":"ModelMessage","contentText":"`+strings.Repeat("x", 256<<10)+`"}`).Problem(t, 413, "at most 262144 bytes")
	worker.Get(events).Problem(t, 405, "allowed: POST")

	worker.Post("/internal/v1/results/default/mine", " ").Problem(t, 400, "blank")
	if a := worker.Post("/internal/v1/results/default/mine", "forty-two\n"); a.Code != 204 || a.Body != "" {
		t.Errorf("result: %d %s", a.Code, a.Body)
	}
	worker.Post("/internal/v1/results/default/mine", strings.Repeat("x", 10<<20+1)).Problem(t, 413, "at most 10485760 bytes")
	worker.Post("/internal/v1/results/default/other", "no").Problem(t, 403, "another task")
	worker.With("Content-Type", "text/markdown").Post("/internal/v1/artifacts/default/mine/notes%20one.md", "# hi").Want(t, 201)
	worker.Post("/internal/v1/artifacts/default/mine/a%2Fb", "x").Problem(t, 400, "filename: must be one path element")
	worker.Post("/internal/v1/artifacts/default/mine/"+strings.Repeat("n", 256), "x").Problem(t, 400, "filename: must be at most 255 bytes")
	worker.Post("/internal/v1/nothing", "{}").Problem(t, 404, "nothing at")

	c := s.REST(t, "default", "vi", "view")
	for _, path := range []string{"/api/v1/tasks/mine/result", "/api/v1/nothing", "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks/mine", "/version"} {
		if a := c.Get(path); a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
	// The secure port is for the names of this machine, too.
	evil := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/tasks", nil))
	evil.Header, evil.Host = c.Header.Clone(), "evil.example"
	misled, err := c.HTTP.Do(evil)
	if err != nil {
		t.Fatal(err)
	}
	if _ = misled.Body.Close(); misled.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("for another name: %s", misled.Status)
	}
	c.Get("/api/v1/tasks/mine/result").Want(t, 200)
	if r := host.Decode[map[string]any](t, c.Get("/api/v1/tasks/mine/result")); !cmp.Equal(r, map[string]any{"result": "forty-two\n"}) {
		t.Errorf("result: %v", r)
	}
	c.Get("/api/v1/tasks/other/result").Problem(t, 404, `the result of task "other" is still to come: it is Running`)
	list := host.Decode[struct{ Artifacts []map[string]any }](t, c.Get("/api/v1/tasks/mine/artifacts").Want(t, 200, `{"artifacts":[{`))
	if len(list.Artifacts) != 1 || list.Artifacts[0]["filename"] != "notes one.md" || list.Artifacts[0]["size"] != 4.0 || list.Artifacts[0]["contentType"] != "text/markdown" {
		t.Errorf("artifacts: %v", list)
	}
	c.Get("/api/v1/tasks/other/artifacts").Want(t, 200, `{"artifacts":[]}`)
	file := c.Get("/api/v1/tasks/mine/artifacts/notes%20one.md").Want(t, 200)
	if file.Body != "# hi" || file.Header.Get("Content-Type") != "text/markdown" || !strings.Contains(file.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("artifact: %q %v", file.Body, file.Header)
	}
	c.Get("/api/v1/tasks/mine/artifacts/nosuch").Problem(t, 404, `"nosuch" not found`)
	c.Post("/internal/v1/results/default/mine", "x").Problem(t, 403, "cannot create")
}

func TestRESTChildren(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	tasks := s.Core(t).Tasks("default")
	long := "parent-" + strings.Repeat("x", 100)
	for _, parent := range []string{"parent", long} {
		made, _ := s.RESTTask(t, parent)
		for i := range 4 { // the last one is somebody's who wrote the label
			child := &v1alpha1.Task{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%.10s-%d", parent, i), Labels: map[string]string{v1alpha1.LabelParentTask: v1alpha1.LabelValue(parent)}},
				Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
			}
			if i < 3 {
				child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(made, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
			}
			kit.Must[*v1alpha1.Task](t)(tasks.Create(t.Context(), child, metav1.CreateOptions{}))
		}
	}
	c := s.REST(t, "default", "vi", "view")
	if l := host.Decode[taskList](t, c.Get("/api/v1/tasks/parent/children").Want(t, 200)); l.names() != "parent-0 parent-1 parent-2" {
		t.Errorf("children: %s", l.names())
	}
	page := host.Decode[taskList](t, c.Get("/api/v1/tasks/"+long+"/children?limit=2").Want(t, 200))
	if page.names() != "parent-xxx-0 parent-xxx-1" || page.Metadata.Continue == "" {
		t.Errorf("children: %+v", page)
	}
	c.Get("/api/v1/tasks/parent-0/children").Want(t, 200, `"items":[]`)
	// A filter without a value is none.
	if all, none := c.Get("/api/v1/tasks?labelSelector=x%3Dy"), c.Get("/api/v1/tasks?labelSelector=x%3Dy&phases=&q="); all.Want(t, 200).Body != none.Want(t, 200).Body {
		t.Errorf("without phases: %s\nwith empty ones: %s", all.Body, none.Body)
	}
	c.Get("/api/v1/tasks/nosuch/children").Problem(t, 404, "not found")
}

func TestRESTLogs(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "a")
	admin := s.Core(t).RESTClient()
	write := func(text string) {
		t.Helper()
		if err := admin.Post().AbsPath(standalone.TasksPath, "a", "log").Body([]byte(text)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	c := s.REST(t, "default", "vi", "view")
	c.Get("/api/v1/tasks/a/logs").Problem(t, 404, `task "a" has no logs yet`)
	c.Get("/api/v1/tasks/nosuch/logs").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/tasks/nosuch/logs?follow=true").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/tasks/a/logs?follow=perhaps").Problem(t, 400, "follow: ")
	c.Get("/api/v1/tasks/a/logs?tailLines=0").Problem(t, 400, "tailLines: ")

	var all []string
	for i := range 250 {
		all = append(all, fmt.Sprintf("line %d", i))
	}
	write(strings.Join(all, "\n") + "\n")
	logs := func(path string) []string {
		t.Helper()
		return strings.Split(strings.TrimSuffix(host.Decode[struct{ Logs string }](t, c.Get("/api/v1/tasks/a/logs"+path).Want(t, 200)).Logs, "\n"), "\n")
	}
	if got := logs(""); !cmp.Equal(got, all[150:]) {
		t.Errorf("%d lines, from %s", len(got), got[0])
	}
	if got := logs("?tailLines=249"); !cmp.Equal(got, all[1:]) {
		t.Errorf("%d lines, from %s", len(got), got[0])
	}

	// Followed over both versions of HTTP, while more is written and until the task ends.
	readers := map[string]*sse.Reader{}
	for proto, client := range map[string]*standalone.Client{"HTTP/2.0": c, "HTTP/1.1": c.At(s.RESTURL)} {
		resp := client.Open(t.Context(), "GET", "/api/v1/tasks/a/logs?follow=true", "")
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Proto != proto || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("follow: %s %s %v", resp.Proto, resp.Status, resp.Header)
		}
		readers[proto] = sse.NewReader(resp.Body, sse.Options{})
		for i := range 250 {
			if e, err := readers[proto].Next(); err != nil || e.Data != all[i] || e.Type != "message" {
				t.Fatalf("%s: line %d: %+v %v", proto, i, e, err)
			}
		}
	}
	write("half a")
	write(" line\r\nover\rwritten\nno end")
	// A stored result takes precedence over the log, unless lines of the log are asked for.
	worker.Post("/internal/v1/results/default/a", "the result").Want(t, 204)
	if got := logs(""); !cmp.Equal(got, []string{"the result"}) {
		t.Errorf("with a result: %q", got)
	}
	if got := logs("?tailLines=1"); !cmp.Equal(got, []string{"no end"}) {
		t.Errorf("with a result, the last line: %q", got)
	}
	task := kit.Must[*v1alpha1.Task](t)(s.Core(t).Tasks("default").Get(t.Context(), "a", metav1.GetOptions{}))
	task.Status.Phase = v1alpha1.TaskSucceeded
	kit.Must[*v1alpha1.Task](t)(s.Core(t).Tasks("default").UpdateStatus(t.Context(), task, metav1.UpdateOptions{}))
	for proto, r := range readers {
		var got []string
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Data)
		}
		if want := []string{"half a line", "over\nwritten", "no end"}; !cmp.Equal(got, want) {
			t.Errorf("%s: %q", proto, got)
		}
	}
}

func TestRESTEvents(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := s.RESTTask(t, "a")
	for i := range 5 {
		typ := []string{"ModelMessage", "ToolCallStarted"}[i%2]
		worker.Post("/internal/v1/events/default/task/a", fmt.Sprintf(`{"type":%q,"summary":"event %d"}`, typ, i+1)).Want(t, 201)
	}
	c := s.REST(t, "default", "vi", "view")
	type page struct {
		Namespace, StreamType, StreamID string
		AfterSeq, LatestSeq             int64
		Events                          []map[string]any
	}
	a := c.Get("/api/v1/tasks/a/events?after=1&limit=3").Want(t, 200)
	p := host.Decode[page](t, a)
	if p.Namespace != "default" || p.StreamType != "task" || p.StreamID != "a" || p.AfterSeq != 1 || p.LatestSeq != 5 || len(p.Events) != 3 || p.Events[0]["seq"] != 2.0 {
		t.Errorf("page: %s", a.Body)
	}
	for _, name := range []string{"kind", "apiVersion", "metadata", "dedupKey"} {
		if _, has := host.Decode[map[string]any](t, a)[name]; has || p.Events[0][name] != nil {
			t.Errorf("the page has %s: %s", name, a.Body)
		}
	}
	typed := host.Decode[page](t, c.Get("/api/v1/tasks/a/events?type=ToolCallStarted&type=ToolCallFailed").Want(t, 200))
	if len(typed.Events) != 2 {
		t.Errorf("by type: %v", typed)
	}
	for query, want := range map[string][]float64{
		"order=desc&limit=2": {5, 4}, "before=4": {3, 2, 1}, "around=3&limit=3": {2, 3, 4}, "q=EVENT+4": {4}, "q=event&type=ToolCallStarted&order=desc": {4, 2},
	} {
		var got []float64
		for _, e := range host.Decode[page](t, c.Get("/api/v1/tasks/a/events?"+query).Want(t, 200)).Events {
			got = append(got, e["seq"].(float64))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for query, text := range map[string]string{
		"limit=0": "limit", "limit=x": "limit", "after=-1": "after", "type=Nonsense": "Nonsense",
		"before=0": "before", "around=x": "around", "order=up": "order", "q=": "q: ", "before=3&after=1": "cannot be combined with after",
	} {
		c.Get("/api/v1/tasks/a/events?"+query).Problem(t, 400, text)
	}
	counts := host.Decode[v1alpha1.ExecutionEventCounts](t, c.Get("/api/v1/tasks/a/events/counts?buckets=5&type=ModelMessage").Want(t, 200))
	if counts.Total != 3 || counts.LatestSeq != 5 || counts.Types["ToolCallStarted"] != 2 || len(counts.Buckets) == 0 || counts.Buckets[0].Seq != 1 {
		t.Errorf("counts: %+v", counts)
	}
	for query, text := range map[string]string{"buckets=0": "buckets", "buckets=501": "from 1 to 500", "buckets=x": "buckets", "type=Nonsense": "type", "after=1": "after"} {
		c.Get("/api/v1/tasks/a/events/counts?"+query).Problem(t, 400, text)
	}
	c.Get("/api/v1/tasks/nosuch/events/counts").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/tasks/a/events/counts?namespace=other").Problem(t, 403, "cannot get")
	c.Get("/api/v1/tasks/nosuch/events").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/tasks/a/events?namespace=other").Problem(t, 403, "cannot get")
	c.Get("/api/v1/tasks/nosuch/stream").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/tasks/a/stream?after=x").Problem(t, 400, "after")
	c.Get("/api/v1/tasks/a/stream?tasks=nosuch").Problem(t, 404, `"nosuch" not found`)
	c.Get("/api/v1/tasks/a/stream?sessions=nosuch").Problem(t, 404, `"nosuch" not found`)
	worker.Get("/api/v1/tasks/a/stream?tasks=b").Problem(t, 403, "stream")

	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	for proto, client := range map[string]*standalone.Client{"HTTP/2.0": c, "HTTP/1.1": c.At(s.RESTURL)} {
		resp := client.With(sse.LastEventID, "3").Open(ctx, "GET", "/api/v1/tasks/a/stream", "")
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Proto != proto || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Request-Id") == "" {
			t.Fatalf("stream: %s %s %v", resp.Proto, resp.Status, resp.Header)
		}
		r := sse.NewReader(resp.Body, sse.Options{})
		for seq := 4; seq <= 5; seq++ {
			e, err := r.Next()
			if err != nil || e.Type != "execution_event" || e.ID != fmt.Sprint(seq) || !json.Valid([]byte(e.Data)) {
				t.Fatalf("%s: event %d: %+v %v", proto, seq, e, err)
			}
		}
	}
}

// One stream has the events of several tasks, to whoever may read each.
func TestRESTStreamOfSeveral(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, first := s.RESTTask(t, "a")
	_, second := s.RESTTask(t, "b")
	first.Post("/internal/v1/events/default/task/a", `{"type":"ModelMessage","summary":"of a"}`).Want(t, 201)
	second.Post("/internal/v1/events/default/task/b", `{"type":"ModelMessage","summary":"of b"}`).Want(t, 201)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	c := s.REST(t, "default", "vi", "view")
	resp := c.Open(ctx, "GET", "/api/v1/tasks/a/stream?tasks=b", "")
	defer resp.Body.Close()
	got := map[string]string{}
	last := ""
	for r := sse.NewReader(resp.Body, sse.Options{}); len(got) < 2; {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		var e v1alpha1.ExecutionEvent
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			t.Fatal(err)
		}
		got[e.StreamID], last = e.Summary, f.ID
	}
	if got["a"] != "of a" || got["b"] != "of b" || last != "1.1" {
		t.Errorf("%v, the last id is %s", got, last)
	}
	second.Post("/internal/v1/events/default/task/b", `{"type":"ModelMessage","summary":"more"}`).Want(t, 201)
	again := c.With(sse.LastEventID, last).Open(ctx, "GET", "/api/v1/tasks/a/stream?tasks=b", "")
	defer again.Body.Close()
	if f, err := sse.NewReader(again.Body, sse.Options{}).Next(); err != nil || f.ID != "1.2" || !strings.Contains(f.Data, "more") {
		t.Errorf("resumed: %+v %v", f, err)
	}
	narrow := s.Granted(t, "narrow", host.Can("get", "tasks", "tasks/stream"))
	if err := narrow.RESTClient().Get().AbsPath(standalone.TasksPath, "a", "stream").Param("tree", "true").Do(t.Context()).Error(); err == nil || !strings.Contains(err.Error(), "the right to watch the events of the namespace") {
		t.Errorf("the whole tree, without the right to watch events: %v", err)
	}
}

func TestRESTFork(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	standalone.Source(t, s.Core(t), "src", 3)
	c := s.REST(t, "default", "ed", "edit")
	type made struct {
		Namespace, SourceTaskName, NewTaskName string
		AfterSeq                               *int64
		ForkContext                            *v1alpha1.ForkContext
		Replayed                               *bool
	}
	f := host.Decode[made](t, c.Post("/api/v1/tasks/src/fork", `{"afterSeq":2,"newTaskName":"again","prompt":"now this"}`).Want(t, 201))
	if f.Namespace != "default" || f.SourceTaskName != "src" || f.NewTaskName != "again" || f.AfterSeq == nil || *f.AfterSeq != 2 || f.ForkContext == nil || len(f.ForkContext.Events) != 2 || f.Replayed != nil {
		t.Errorf("fork: %+v", f)
	}
	c.Post("/api/v1/tasks/src/fork", `{"newTaskName":"again"}`).Problem(t, 409, `"again"`)
	c.Post("/api/v1/tasks/src/fork", `{"newTaskName":"zero","afterSeq":0}`).Want(t, 201, `"afterSeq":0`)
	c.Post("/api/v1/tasks/src/fork", `{"afterSeq":"latest"}`).Want(t, 201)
	c.Post("/api/v1/tasks/src/fork", "").Want(t, 201)

	keyed := c.With("Idempotency-Key", "k1")
	first := host.Decode[made](t, keyed.Post("/api/v1/tasks/src/fork", `{"afterSeq":1}`).Want(t, 201))
	second := host.Decode[made](t, keyed.Post("/api/v1/tasks/src/fork", `{"afterSeq":1}`).Want(t, 200))
	if first.NewTaskName == "" || first.NewTaskName != second.NewTaskName {
		t.Errorf("the same request made %q and %q", first.NewTaskName, second.NewTaskName)
	}
	for body, text := range map[string]string{
		`{"afterSeq":99}`:           "afterSeq",
		`{"afterSeq":-1}`:           "afterSeq",
		`{"idempotencyKey":"x"}`:    "idempotencyKey: is given in the header",
		`{"colour":"red"}`:          `unknown field "spec.colour"`,
		`{"executionCheckpoint":1}`: "executionCheckpoint",
	} {
		c.Post("/api/v1/tasks/src/fork", body).Problem(t, 400, text)
	}
	c.Post("/api/v1/tasks/nosuch/fork", "{}").Problem(t, 404, `"nosuch" not found`)
	s.REST(t, "default", "vi", "view").Post("/api/v1/tasks/src/fork", "{}").Problem(t, 403, "tasks/fork")
}

// A stream ends when its client leaves; otherwise the server would not stop.
func TestRESTClientGoesAway(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	s.RESTTask(t, "a")
	c := s.REST(t, "default", "vi", "view").At(s.RESTURL)
	ctx, hangUp := context.WithCancel(t.Context())
	resp := c.Open(ctx, http.MethodGet, "/api/v1/tasks/a/stream", "")
	hangUp()
	resp.Body.Close()
	s.Stop(t) // waits for every request
}
