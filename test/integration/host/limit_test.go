// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// The number of a task's events is limited, also across a restart. A refusal names the limit, the stream records it once,
// and the task ends like any other.
func TestEventLimit(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.TaskEvents = 5 })
	path := "/internal/v1/events/default/task/a"
	_, worker := s.RESTTask(t, "a")
	for range 5 {
		worker.Post(path, `{"type":"ModelMessage"}`).Want(t, http.StatusCreated)
	}
	for range 3 {
		worker.Post(path, `{"type":"ModelMessage"}`).Problem(t, http.StatusForbidden, "exceeded quota: number of events of the task: requested 1, used")
	}
	s.Restart(t)
	events := s.Core(t).Tasks("default")
	if _, err := events.AppendEvent(t.Context(), "a", &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage}, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "limited 5") {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := events.AppendEvent(t.Context(), "a", &v1alpha1.ExecutionEvent{Type: v1alpha1.EventTaskSucceeded}, metav1.CreateOptions{}); err != nil {
		t.Errorf("the end: %v", err)
	}
	code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a/events", "")
	if n := strings.Count(body, "EventLimitReached"); code != http.StatusOK || n != 1 || strings.Count(body, `"seq":`) != 7 {
		t.Errorf("%d, %d notes:\n%s", code, n, body)
	}
}

// Bytes per second are limited, after a burst, for each task and for each namespace. A client that is too fast is told when
// to retry, and the stream records that once for each limit.
func TestRates(t *testing.T) {
	t.Parallel()
	event := `{"type":"ModelMessage","contentText":"` + strings.Repeat("words ", 2000) + `"}`
	for name, tt := range map[string]struct {
		limit      func(*standalone.Options) *resource.QuantityValue
		path, body string
		want, note string
	}{
		"events of a task": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.TaskEventRate }, "/internal/v1/events/default/task/a", event,
			"too many events: the task", "the server delays the task's events: too many events; the task may write 1024 bytes of them a second",
		},
		"events of a namespace": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.NamespaceEventRate }, "/internal/v1/events/default/task/a", event,
			"too many events: the namespace", "the server delays the task's events: too many events; the namespace may write 1024 bytes of them a second",
		},
		"artifacts of a task": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.TaskArtifactRate }, "/internal/v1/artifacts/default/a/f", event,
			"too many artifacts: the task", "the server delays the task's artifacts: too many artifacts; the task may write 1024 bytes",
		},
		"results": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.TaskArtifactRate }, "/internal/v1/results/default/a", event,
			"too many artifacts: the task", "the server delays the task's result: too many artifacts; the task may write 1024 bytes",
		},
		"artifacts of a namespace": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.NamespaceArtifactRate }, "/internal/v1/artifacts/default/a/f", event,
			"too many artifacts, results and log lines: the namespace", "too many artifacts, results and log lines; the namespace may write 1024 bytes",
		},
		"log of a task": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.TaskLogRate }, standalone.TasksPath + "/a/log", event,
			"too many log lines: the task", "the server delays the task's log: too many log lines; the task may write 1024 bytes",
		},
		"logs of a namespace": {
			func(o *standalone.Options) *resource.QuantityValue { return &o.NamespaceArtifactRate }, standalone.TasksPath + "/a/log", event,
			"too many artifacts, results and log lines: the namespace", "the server delays the task's log: too many artifacts, results and log lines",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := standalone.Start(t, func(o *standalone.Options) { tt.limit(o).Quantity = resource.MustParse("1Ki") })
			_, worker := s.RESTTask(t, "a")
			for i, refused := 0, 0; refused < 2; i++ {
				a := worker.Do(http.MethodPost, tt.path, tt.body)
				switch {
				case a.Code == http.StatusTooManyRequests:
					refused++
					if a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, tt.want) {
						t.Errorf("%v %s", a.Header, a.Body)
					}
				case a.Code >= http.StatusMultipleChoices:
					t.Fatalf("%d %s", a.Code, a.Body)
				case i == 100:
					t.Fatal("no limit was met")
				}
			}
			code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a/events", "")
			if code != http.StatusOK || strings.Count(body, tt.note) != 1 || strings.Count(body, "LimitReached") != 1 {
				t.Errorf("%d, want one note %q:\n%.4000s", code, tt.note, body)
			}
		})
	}
}

// The bytes of a task's events are limited, with what their indexes take. Controllers are exempt.
func TestEventBytes(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.TaskEventBytes.Quantity = resource.MustParse("20Ki") })
	path := "/internal/v1/events/default/task/"
	_, a := s.RESTTask(t, "a")
	_, b := s.RESTTask(t, "b")
	event := `{"type":"ModelMessage","contentText":"` + strings.Repeat("words ", 2000) + `"}`
	a.Post(path+"a", event).Want(t, http.StatusCreated)
	for range 2 {
		a.Post(path+"a", event).Problem(t, http.StatusForbidden, "exceeded quota: bytes of events of the task: requested 1")
	}
	b.Post(path+"b", event).Want(t, http.StatusCreated)
	code, body := host.Get(t, s.Config(), standalone.TasksPath+"/a/events", "")
	if n := strings.Count(body, "EventLimitReached"); code != http.StatusOK || n != 1 {
		t.Errorf("%d, %d notes:\n%s", code, n, body)
	}
	end := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventTaskSucceeded, Summary: strings.Repeat("words ", 100)}
	if _, err := s.Core(t).Tasks("default").AppendEvent(t.Context(), "a", end, metav1.CreateOptions{}); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// Artifacts are limited in number and in bytes; replacing one does not count as another.
func TestArtifactLimits(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) {
		o.TaskArtifacts = 2
		o.TaskArtifactBytes.Quantity = resource.MustParse("1Ki")
	})
	_, worker := s.RESTTask(t, "a")
	path := "/internal/v1/artifacts/default/a/"
	worker.Post(path+"one", "1").Want(t, http.StatusCreated)
	worker.Post(path+"two", strings.Repeat("2", 2048)).Problem(t, http.StatusForbidden, "exceeded quota: bytes of result and artifacts of the task")
	worker.Post(path+"two", "2").Want(t, http.StatusCreated)
	worker.Post(path+"two", "22").Want(t, http.StatusCreated)
	worker.Post("/internal/v1/results/default/a", "result").Want(t, http.StatusNoContent)
	worker.Post(path+"three", "3").Problem(t, http.StatusForbidden, "exceeded quota: number of artifacts of the task: requested 1")
}

// The bytes of events of all tasks of a namespace are limited. Events of controllers are exempt, and a deletion makes room,
// also across a restart.
func TestNamespaceEventBytes(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.NamespaceEventBytes.Quantity = resource.MustParse("30Ki") })
	event := `{"type":"ModelMessage","contentText":"` + strings.Repeat("words ", 2000) + `"}`
	const refused = "exceeded quota: bytes of events of namespace default: requested"
	path := "/internal/v1/events/default/task/"
	_, a := s.RESTTask(t, "a")
	_, b := s.RESTTask(t, "b")
	a.Post(path+"a", event).Want(t, http.StatusCreated)
	b.Post(path+"b", event).Want(t, http.StatusCreated)
	for range 2 {
		b.Post(path+"b", event).Problem(t, http.StatusForbidden, refused)
	}
	s.Restart(t)
	tasks := s.Core(t).Tasks("default")
	long := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: "long", Content: &apiextensionsv1.JSON{Raw: []byte(`{"text":"` + strings.Repeat("words ", 2000) + `"}`)}}
	if _, err := tasks.AppendEvent(t.Context(), "b", long, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("after a restart: %v", err)
	}
	code, body := host.Get(t, s.Config(), standalone.TasksPath+"/b/events", "")
	if n := strings.Count(body, "EventLimitReached"); code != http.StatusOK || n != 1 {
		t.Errorf("%d, %d notes:\n%s", code, n, body)
	}
	if err := tasks.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tasks.AppendEvent(t.Context(), "b", long, metav1.CreateOptions{}); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// The bytes of artifacts, results and logs of all tasks of a namespace are limited. The stream of a task records a refusal
// once, and a deletion makes room, also across a restart.
func TestNamespaceArtifactBytes(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.NamespaceArtifactBytes.Quantity = resource.MustParse("3Ki") })
	_, a := s.RESTTask(t, "a")
	_, b := s.RESTTask(t, "b")
	const refused = "exceeded quota: bytes of results, artifacts and logs of namespace default: requested 1500, used 3000, limited 3072"
	kilo := strings.Repeat("word ", 300)
	a.Post("/internal/v1/artifacts/default/a/f", kilo).Want(t, http.StatusCreated)
	send := func(subresource string) (int, string) {
		a := b.At(s.URL).Do(http.MethodPost, standalone.TasksPath+"/b/"+subresource, kilo)
		return a.Code, a.Body
	}
	if code, body := send("log"); code != http.StatusNoContent {
		t.Fatalf("%d %s", code, body)
	}
	b.Post("/internal/v1/artifacts/default/b/f", kilo).Problem(t, http.StatusForbidden, refused)
	if code, body := send("log"); code != http.StatusForbidden || !strings.Contains(body, refused) {
		t.Errorf("log: %d %s", code, body)
	}
	s.Restart(t)
	if code, body := send("artifacts/f"); code != http.StatusForbidden || !strings.Contains(body, refused) {
		t.Errorf("after a restart: %d %s", code, body)
	}
	code, body := host.Get(t, s.Config(), standalone.TasksPath+"/b/events", "")
	if n := strings.Count(body, "ContentLimitReached"); code != http.StatusOK || n != 1 {
		t.Errorf("%d, %d notes:\n%s", code, n, body)
	}
	if err := s.Core(t).Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if code, body := send("artifacts/f"); code != http.StatusCreated {
		t.Errorf("after a deletion: %d %s", code, body)
	}
}
