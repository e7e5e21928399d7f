// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scene fills a namespace of a server with what the console shows, and looks at its page with Chromium.
package scene

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
)

// Scene is a namespace with tasks to look at.
type Scene struct {
	// API is a client of an administrator.
	API *versioned.Clientset
	// Tasks are the tasks that were made, by name.
	Tasks map[string]*v1alpha1.Task

	t               testing.TB
	root, namespace string
}

// New makes the tasks plain, long and asks, and events of the first. root is the folder of the repository.
func New(t testing.TB, root string, config *rest.Config, namespace string) *Scene {
	t.Helper()
	s := &Scene{t: t, root: root, namespace: namespace, Tasks: map[string]*v1alpha1.Task{}}
	var err error
	if s.API, err = versioned.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "long", "asks"} {
		s.Task(name)
	}
	s.Append("plain", 0, 40)
	return s
}

// Task makes a task that nothing runs.
func (s *Scene) Task(name string, args ...string) {
	s.t.Helper()
	s.create(name, v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Args: args})
}

// Prompted makes a task of an agent and a model that nobody runs, with labels such as "team", "web".
func (s *Scene) Prompted(name, agent, model, prompt string, labels ...string) {
	s.t.Helper()
	s.create(name, v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: agent}, AI: &v1alpha1.TaskAI{Model: model},
	}, labels...)
}

func (s *Scene) create(name string, spec v1alpha1.TaskSpec, labels ...string) {
	s.t.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Spec: spec}
	for i := 0; i+1 < len(labels); i += 2 {
		task.Labels[labels[i]] = labels[i+1]
	}
	made, err := s.API.CoreV1alpha1().Tasks(s.namespace).Create(s.t.Context(), task, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Tasks[name] = made
}

// Post appends events to a task.
func (s *Scene) Post(task string, events ...v1alpha1.ExecutionEvent) {
	s.t.Helper()
	list := v1alpha1.ExecutionEventList{TypeMeta: metav1.TypeMeta{APIVersion: "core.platform.ai/v1alpha1", Kind: "ExecutionEventList"}, Items: events}
	body, err := json.Marshal(list)
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.API.CoreV1alpha1().RESTClient().Post().Namespace(s.namespace).Resource("tasks").Name(task).SubResource("events").
		SetHeader("Content-Type", "application/json").Body(body).Do(s.t.Context()).Error()
	if err != nil {
		s.t.Errorf("events of %s: %v", task, err)
	}
}

// Append appends events as a run writes them, from a number on.
func (s *Scene) Append(task string, from, n int) {
	s.t.Helper()
	var events []v1alpha1.ExecutionEvent
	for i := from; i < from+n; i++ {
		e := v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Summary: fmt.Sprintf("words %d", i), ContentText: fmt.Sprintf("# Words\n\nPart **%d**", i)}
		if i%10 == 9 {
			e = v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallFailed, ToolName: "file_read", ToolCallID: fmt.Sprint(i), Summary: fmt.Sprintf("failure %d", i)}
		}
		if events = append(events, e); len(events) == 2000 || i == from+n-1 {
			s.Post(task, events...)
			events = nil
		}
	}
}

// Ask requests an approval as a run does, and returns its name.
func (s *Scene) Ask(task, action string, args any) string {
	s.t.Helper()
	return s.AskWith(task, v1alpha1.ApprovalSpec{Action: action, RequestedBy: "ann"}, args)
}

// AskWith requests an approval of which more is known than what is to be done.
func (s *Scene) AskWith(task string, spec v1alpha1.ApprovalSpec, args any) string {
	s.t.Helper()
	e := s.request(task, spec, args)
	s.Post(task, *e)
	return approval.IDOf(e)
}

// AskMany requests n approvals, numbered from a number on, and returns the name of the last one.
func (s *Scene) AskMany(task string, from, n int) string {
	s.t.Helper()
	var events []v1alpha1.ExecutionEvent
	last := ""
	for i := from; i < from+n; i++ {
		e := s.request(task, v1alpha1.ApprovalSpec{Action: fmt.Sprintf("action %d", i), RequestedBy: "ann"}, map[string]int{"n": i})
		events, last = append(events, *e), approval.IDOf(e)
	}
	s.Post(task, events...)
	return last
}

func (s *Scene) request(task string, spec v1alpha1.ApprovalSpec, args any) *v1alpha1.ExecutionEvent {
	s.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	digest, err := approval.Digest(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	spec.TaskName, spec.TaskUID, spec.TargetTool, spec.ToolCallID, spec.TargetArgsDigest = task, s.Tasks[task].UID, "code_exec", "call", digest
	spec.TargetArgsPreview = &apiextensionsv1.JSON{Raw: approval.Preview(raw)}
	return approval.RequestEvent(s.namespace, spec)
}

// Drive runs a script on the page at base, with the address of a server that appends events to a task of the scene.
func (s *Scene) Drive(script, base string, parts int, env ...string) {
	s.t.Helper()
	appended := map[string]int{}
	more := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // ?task=NAME&n=NUMBER
		var n int
		task := r.FormValue("task")
		if _, err := fmt.Sscan(r.FormValue("n"), &n); err != nil || s.Tasks[task] == nil {
			http.Error(w, "task and n are needed", http.StatusBadRequest)
			return
		}
		s.Append(task, 1_000_000+appended[task], n)
		appended[task] += n
	}))
	defer more.Close()
	Drive(s.t, s.root, script, parts, append(env, "BASE="+base, "MORE="+more.URL, "NAMESPACE="+s.namespace)...)
}

// Drive runs a script of test/console/page in Chromium; the script prints a line for each of its parts. root is the folder of the
// repository.
func Drive(t testing.TB, root, script string, parts int, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(root, "test", "console", "page", script))
	cmd.Env = append(os.Environ(), append(env, "HOME="+t.TempDir())...)
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok: ") != parts {
		t.Errorf("%s: %v\n%s", script, err, out)
		return
	}
	t.Logf("%s\n%s", script, out)
}
