// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

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
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// restTask makes a task through the native API and returns a client with the token of its worker.
func restTask(t *testing.T, s *standalone.Server, name string, configure ...func(*v1alpha1.TaskSpec)) (*v1alpha1.Task, *restClient) {
	t.Helper()
	made := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}
	for _, f := range configure {
		f(&made.Spec)
	}
	task, err := clientOf(t, s).Tasks("default").Create(t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return task, restWorker(t, s, task)
}

// restWorker returns a client with the token of a worker of a task, which gets a run.
func restWorker(t *testing.T, s *standalone.Server, task *v1alpha1.Task) *restClient {
	t.Helper()
	accountToken(t, s, "default", "platform-ai-worker", "platform-worker")
	publishRun(t, s, "default", task.Name)
	req := must[*authenticationv1.TokenRequest](t)(s.Kubernetes(t).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "platform-ai-worker", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: task.Name, UID: task.UID,
		}},
	}, metav1.CreateOptions{}))
	return restOf(t, s).with("Authorization", "Bearer "+req.Status.Token)
}

func TestRESTWorkerPaths(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := restTask(t, s, "mine")
	restTask(t, s, "other")
	const events = "/internal/v1/events/default/task/mine"
	a := worker.post(events, `{"type":"ModelMessage","severity":"LOUD","summary":"hello"}`).want(t, 201)
	stored := decode[map[string]any](t, a)
	if stored["seq"] != 1.0 || stored["id"] == "" || stored["createdAt"] == nil || len(stored) != 3 {
		t.Errorf("stored: %v", stored)
	}
	worker.post(events, `{"type":"ModelMessage","dedupKey":"k"}`).want(t, 201, `"seq":2`)
	worker.post(events, `{"type":"ModelMessage","dedupKey":"k"}`).want(t, 201, `"seq":2`)
	worker.post("/internal/v1/events/default/session/mine", `{"type":"ModelMessage"}`).problem(t, 400, `streamType: "session"`)
	worker.post(events, `{"type":"Nonsense"}`).problem(t, 400, "Nonsense")
	worker.post(events, `{"type":"ModelMessage","colour":"red"}`).problem(t, 400, `unknown field "colour"`)
	worker.post(events, `{"kind":"ExecutionEventList","items":[]}`).problem(t, 400, `unknown field "items"`)
	worker.post(events, `{"type":"TaskSucceeded"}`).problem(t, 403, "terminal task and approval events must use controller-owned paths")
	worker.post("/internal/v1/events/default/task/other", `{"type":"ModelMessage"}`).problem(t, 403, "another task")
	worker.post("/internal/v1/events/other/task/mine", `{"type":"ModelMessage"}`).problem(t, 403, `namespace "other"`)
	worker.post("/internal/v1/events/default/task/nosuch", `{"type":"ModelMessage"}`).problem(t, 404, `"nosuch" not found`)
	worker.post(events, `{"type":"ModelMessage","contentText":"`+strings.Repeat("x", 256<<10)+`"}`).problem(t, 413, "at most 262144 bytes")
	worker.get(events).problem(t, 405, "allowed: POST")

	worker.post("/internal/v1/results/default/mine", " ").problem(t, 400, "blank")
	if a := worker.post("/internal/v1/results/default/mine", "forty-two\n"); a.code != 204 || a.body != "" {
		t.Errorf("result: %d %s", a.code, a.body)
	}
	worker.post("/internal/v1/results/default/mine", strings.Repeat("x", 10<<20+1)).problem(t, 413, "at most 10485760 bytes")
	worker.post("/internal/v1/results/default/other", "no").problem(t, 403, "another task")
	worker.with("Content-Type", "text/markdown").post("/internal/v1/artifacts/default/mine/notes%20one.md", "# hi").want(t, 201)
	worker.post("/internal/v1/artifacts/default/mine/a%2Fb", "x").problem(t, 400, "filename: must be one path element")
	worker.post("/internal/v1/artifacts/default/mine/"+strings.Repeat("n", 256), "x").problem(t, 400, "filename: must be at most 255 bytes")
	worker.post("/internal/v1/nothing", "{}").problem(t, 404, "nothing at")

	c := restAs(t, s, "default", "vi", "view")
	c.get("/api/v1/tasks/mine/result").want(t, 200)
	if r := decode[map[string]any](t, c.get("/api/v1/tasks/mine/result")); !cmp.Equal(r, map[string]any{"result": "forty-two\n"}) {
		t.Errorf("result: %v", r)
	}
	c.get("/api/v1/tasks/other/result").problem(t, 404, `the result of task "other" is still to come: it is Running`)
	list := decode[struct{ Artifacts []map[string]any }](t, c.get("/api/v1/tasks/mine/artifacts").want(t, 200, `{"artifacts":[{`))
	if len(list.Artifacts) != 1 || list.Artifacts[0]["filename"] != "notes one.md" || list.Artifacts[0]["size"] != 4.0 || list.Artifacts[0]["contentType"] != "text/markdown" {
		t.Errorf("artifacts: %v", list)
	}
	c.get("/api/v1/tasks/other/artifacts").want(t, 200, `{"artifacts":[]}`)
	file := c.get("/api/v1/tasks/mine/artifacts/notes%20one.md").want(t, 200)
	if file.body != "# hi" || file.header.Get("Content-Type") != "text/markdown" || !strings.Contains(file.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("artifact: %q %v", file.body, file.header)
	}
	c.get("/api/v1/tasks/mine/artifacts/nosuch").problem(t, 404, `"nosuch" not found`)
	c.post("/internal/v1/results/default/mine", "x").problem(t, 403, "cannot create")
}

func TestRESTChildren(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	tasks := clientOf(t, s).Tasks("default")
	long := "parent-" + strings.Repeat("x", 100)
	for _, parent := range []string{"parent", long} {
		restTask(t, s, parent)
		for i := range 3 {
			must[*v1alpha1.Task](t)(tasks.Create(t.Context(), &v1alpha1.Task{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%.10s-%d", parent, i), Labels: map[string]string{v1alpha1.LabelParentTask: v1alpha1.LabelValue(parent)}},
				Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
			}, metav1.CreateOptions{}))
		}
	}
	c := restAs(t, s, "default", "vi", "view")
	if l := decode[taskList](t, c.get("/api/v1/tasks/parent/children").want(t, 200)); l.names() != "parent-0 parent-1 parent-2" {
		t.Errorf("children: %s", l.names())
	}
	page := decode[taskList](t, c.get("/api/v1/tasks/"+long+"/children?limit=2").want(t, 200))
	if page.names() != "parent-xxx-0 parent-xxx-1" || page.Metadata.Continue == "" {
		t.Errorf("children: %+v", page)
	}
	c.get("/api/v1/tasks/parent-0/children").want(t, 200, `"items":[]`)
	c.get("/api/v1/tasks/nosuch/children").problem(t, 404, "not found")
}

func TestRESTLogs(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := restTask(t, s, "a")
	admin := clientOf(t, s).RESTClient()
	write := func(text string) {
		t.Helper()
		if err := admin.Post().AbsPath(tasksPath, "a", "log").Body([]byte(text)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	c := restAs(t, s, "default", "vi", "view")
	c.get("/api/v1/tasks/a/logs").problem(t, 404, `task "a" has no logs yet`)
	c.get("/api/v1/tasks/nosuch/logs").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/tasks/nosuch/logs?follow=true").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/tasks/a/logs?follow=perhaps").problem(t, 400, "follow: ")
	c.get("/api/v1/tasks/a/logs?tailLines=0").problem(t, 400, "tailLines: ")

	var all []string
	for i := range 250 {
		all = append(all, fmt.Sprintf("line %d", i))
	}
	write(strings.Join(all, "\n") + "\n")
	logs := func(path string) []string {
		t.Helper()
		return strings.Split(strings.TrimSuffix(decode[struct{ Logs string }](t, c.get("/api/v1/tasks/a/logs"+path).want(t, 200)).Logs, "\n"), "\n")
	}
	if got := logs(""); !cmp.Equal(got, all[150:]) {
		t.Errorf("%d lines, from %s", len(got), got[0])
	}
	if got := logs("?tailLines=249"); !cmp.Equal(got, all[1:]) {
		t.Errorf("%d lines, from %s", len(got), got[0])
	}

	// Followed over both versions of HTTP, while more is written and until the task ends.
	readers := map[string]*sse.Reader{}
	for proto, client := range map[string]*restClient{"HTTP/2.0": c, "HTTP/1.1": c.at(s.RESTURL)} {
		resp := client.open(t.Context(), "GET", "/api/v1/tasks/a/logs?follow=true", "")
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
	worker.post("/internal/v1/results/default/a", "the result").want(t, 204)
	if got := logs(""); !cmp.Equal(got, []string{"the result"}) {
		t.Errorf("with a result: %q", got)
	}
	if got := logs("?tailLines=1"); !cmp.Equal(got, []string{"no end"}) {
		t.Errorf("with a result, the last line: %q", got)
	}
	task := must[*v1alpha1.Task](t)(clientOf(t, s).Tasks("default").Get(t.Context(), "a", metav1.GetOptions{}))
	task.Status.Phase = v1alpha1.TaskSucceeded
	must[*v1alpha1.Task](t)(clientOf(t, s).Tasks("default").UpdateStatus(t.Context(), task, metav1.UpdateOptions{}))
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
	_, worker := restTask(t, s, "a")
	for i := range 5 {
		typ := []string{"ModelMessage", "ToolCallStarted"}[i%2]
		worker.post("/internal/v1/events/default/task/a", fmt.Sprintf(`{"type":%q,"summary":"event %d"}`, typ, i+1)).want(t, 201)
	}
	c := restAs(t, s, "default", "vi", "view")
	type page struct {
		Namespace, StreamType, StreamID string
		AfterSeq, LatestSeq             int64
		Events                          []map[string]any
	}
	a := c.get("/api/v1/tasks/a/events?after=1&limit=3").want(t, 200)
	p := decode[page](t, a)
	if p.Namespace != "default" || p.StreamType != "task" || p.StreamID != "a" || p.AfterSeq != 1 || p.LatestSeq != 5 || len(p.Events) != 3 || p.Events[0]["seq"] != 2.0 {
		t.Errorf("page: %s", a.body)
	}
	for _, name := range []string{"kind", "apiVersion", "metadata", "dedupKey"} {
		if _, has := decode[map[string]any](t, a)[name]; has || p.Events[0][name] != nil {
			t.Errorf("the page has %s: %s", name, a.body)
		}
	}
	typed := decode[page](t, c.get("/api/v1/tasks/a/events?type=ToolCallStarted&type=ToolCallFailed").want(t, 200))
	if len(typed.Events) != 2 {
		t.Errorf("by type: %v", typed)
	}
	for query, want := range map[string][]float64{
		"order=desc&limit=2": {5, 4}, "before=4": {3, 2, 1}, "around=3&limit=3": {2, 3, 4}, "q=EVENT+4": {4}, "q=event&type=ToolCallStarted&order=desc": {4, 2},
	} {
		var got []float64
		for _, e := range decode[page](t, c.get("/api/v1/tasks/a/events?"+query).want(t, 200)).Events {
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
		c.get("/api/v1/tasks/a/events?"+query).problem(t, 400, text)
	}
	counts := decode[v1alpha1.ExecutionEventCounts](t, c.get("/api/v1/tasks/a/events/counts?buckets=5&type=ModelMessage").want(t, 200))
	if counts.Total != 3 || counts.LatestSeq != 5 || counts.Types["ToolCallStarted"] != 2 || len(counts.Buckets) == 0 || counts.Buckets[0].Seq != 1 {
		t.Errorf("counts: %+v", counts)
	}
	for query, text := range map[string]string{"buckets=0": "buckets", "buckets=501": "from 1 to 500", "buckets=x": "buckets", "type=Nonsense": "type", "after=1": "after"} {
		c.get("/api/v1/tasks/a/events/counts?"+query).problem(t, 400, text)
	}
	c.get("/api/v1/tasks/nosuch/events/counts").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/tasks/a/events/counts?namespace=other").problem(t, 403, "cannot get")
	c.get("/api/v1/tasks/nosuch/events").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/tasks/a/events?namespace=other").problem(t, 403, "cannot get")
	c.get("/api/v1/tasks/nosuch/stream").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/tasks/a/stream?after=x").problem(t, 400, "after")
	c.get("/api/v1/tasks/a/stream?tasks=nosuch").problem(t, 404, `"nosuch" not found`)
	c.get("/api/v1/tasks/a/stream?sessions=nosuch").problem(t, 404, `"nosuch" not found`)
	worker.get("/api/v1/tasks/a/stream?tasks=b").problem(t, 403, "stream")

	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	for proto, client := range map[string]*restClient{"HTTP/2.0": c, "HTTP/1.1": c.at(s.RESTURL)} {
		resp := client.with(sse.LastEventID, "3").open(ctx, "GET", "/api/v1/tasks/a/stream", "")
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
	_, first := restTask(t, s, "a")
	_, second := restTask(t, s, "b")
	first.post("/internal/v1/events/default/task/a", `{"type":"ModelMessage","summary":"of a"}`).want(t, 201)
	second.post("/internal/v1/events/default/task/b", `{"type":"ModelMessage","summary":"of b"}`).want(t, 201)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	c := restAs(t, s, "default", "vi", "view")
	resp := c.open(ctx, "GET", "/api/v1/tasks/a/stream?tasks=b", "")
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
	second.post("/internal/v1/events/default/task/b", `{"type":"ModelMessage","summary":"more"}`).want(t, 201)
	again := c.with(sse.LastEventID, last).open(ctx, "GET", "/api/v1/tasks/a/stream?tasks=b", "")
	defer again.Body.Close()
	if f, err := sse.NewReader(again.Body, sse.Options{}).Next(); err != nil || f.ID != "1.2" || !strings.Contains(f.Data, "more") {
		t.Errorf("resumed: %+v %v", f, err)
	}
	narrow := granted(t, s, "narrow", can("get", "tasks", "tasks/stream"))
	if err := narrow.RESTClient().Get().AbsPath(tasksPath, "a", "stream").Param("tree", "true").Do(t.Context()).Error(); err == nil || !strings.Contains(err.Error(), "the right to watch the events of the namespace") {
		t.Errorf("the whole tree, without the right to watch events: %v", err)
	}
}

func TestRESTFork(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	source(t, clientOf(t, s), "src", 3)
	c := restAs(t, s, "default", "ed", "edit")
	type made struct {
		Namespace, SourceTaskName, NewTaskName string
		AfterSeq                               *int64
		ForkContext                            *v1alpha1.ForkContext
		Replayed                               *bool
	}
	f := decode[made](t, c.post("/api/v1/tasks/src/fork", `{"afterSeq":2,"newTaskName":"again","prompt":"now this"}`).want(t, 201))
	if f.Namespace != "default" || f.SourceTaskName != "src" || f.NewTaskName != "again" || f.AfterSeq == nil || *f.AfterSeq != 2 || f.ForkContext == nil || len(f.ForkContext.Events) != 2 || f.Replayed != nil {
		t.Errorf("fork: %+v", f)
	}
	c.post("/api/v1/tasks/src/fork", `{"newTaskName":"again"}`).problem(t, 409, `"again"`)
	c.post("/api/v1/tasks/src/fork", `{"newTaskName":"zero","afterSeq":0}`).want(t, 201, `"afterSeq":0`)
	c.post("/api/v1/tasks/src/fork", `{"afterSeq":"latest"}`).want(t, 201)
	c.post("/api/v1/tasks/src/fork", "").want(t, 201)

	keyed := c.with("Idempotency-Key", "k1")
	first := decode[made](t, keyed.post("/api/v1/tasks/src/fork", `{"afterSeq":1}`).want(t, 201))
	second := decode[made](t, keyed.post("/api/v1/tasks/src/fork", `{"afterSeq":1}`).want(t, 200))
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
		c.post("/api/v1/tasks/src/fork", body).problem(t, 400, text)
	}
	c.post("/api/v1/tasks/nosuch/fork", "{}").problem(t, 404, `"nosuch" not found`)
	restAs(t, s, "default", "vi", "view").post("/api/v1/tasks/src/fork", "{}").problem(t, 403, "tasks/fork")
}

// A stream ends when its client leaves; otherwise the server would not stop.
func TestRESTClientGoesAway(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	restTask(t, s, "a")
	c := restAs(t, s, "default", "vi", "view").at(s.RESTURL)
	ctx, hangUp := context.WithCancel(t.Context())
	resp := c.open(ctx, http.MethodGet, "/api/v1/tasks/a/stream", "")
	hangUp()
	resp.Body.Close()
	s.Stop(t) // waits for every request
}
