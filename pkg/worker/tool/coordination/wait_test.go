// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// waiting returns wait_for_tasks of a task with a child for each phase, in an API whose watches are silent. Each watch that
// began is reported.
func waiting(t *testing.T, phases map[string]v1alpha1.TaskPhase) (tool.Tool, *clocktesting.FakeClock, <-chan struct{}) {
	t.Helper()
	list := v1alpha1.TaskList{TypeMeta: metav1.TypeMeta{Kind: "TaskList", APIVersion: v1alpha1.SchemeGroupVersion.String()}}
	list.ResourceVersion = "1"
	for name, phase := range phases {
		list.Items = append(list.Items, v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer},
			Status: v1alpha1.TaskStatus{Phase: phase, Delegation: &v1alpha1.TaskDelegation{ParentUID: "own"}},
		})
	}
	watched := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		_ = http.NewResponseController(w).Flush()
		watched <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	now := clocktesting.NewFakeClock(time.Now())
	api, err := client.New(client.Config{ServerURL: s.URL, Token: "token"}, now)
	if err != nil {
		t.Fatal(err)
	}
	made, err := WaitBuiltin.New(toolkit.Given{API: api, Task: &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "t", UID: "own"}}, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	return made, now, watched
}

// TestWaitForAStranger: a task that the run did not create is not found. The error lists the tasks that it created.
func TestWaitForAStranger(t *testing.T) {
	for want, phases := range map[string]map[string]v1alpha1.TaskPhase{
		"your tasks: a":                     {"a": v1alpha1.TaskRunning},
		"you have not created any task yet": nil,
	} {
		made, _, _ := waiting(t, phases)
		_, err := made.Call(t.Context(), json.RawMessage(`{"tasks":["stranger"]}`))
		refused, ok := errors.AsType[*tool.Error](err)
		if !ok || refused.Type != tool.TypeNotFound || refused.Suggestion != want {
			t.Errorf("%v, want not_found: %s", err, want)
		}
	}
}

// TestWaitTimesOut: when the time is over, the model reads how far its tasks are, and that they have not ended.
func TestWaitTimesOut(t *testing.T) {
	for arguments, limit := range map[string]time.Duration{
		`{"tasks":["a","b","a"],"timeout":"90s"}`: 90 * time.Second, `{"tasks":["b","a"]}`: 10 * time.Minute,
	} {
		wait, now, watched := waiting(t, map[string]v1alpha1.TaskPhase{"a": v1alpha1.TaskSucceeded, "b": v1alpha1.TaskRunning, "c": v1alpha1.TaskFailed})
		type answer struct {
			out any
			err error
		}
		answered := make(chan answer, 1)
		go func() {
			out, err := wait.Call(t.Context(), json.RawMessage(arguments))
			answered <- answer{out, err}
		}()
		<-watched
		now.Step(limit - time.Second)
		select {
		case a := <-answered:
			t.Fatalf("%s: answered before its time: %+v", arguments, a)
		default:
		}
		now.Step(time.Second)
		a := <-answered
		if a.err != nil {
			t.Fatal(a.err)
		}
		raw, err := json.Marshal(a.out)
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"completed":false,"timeout":true,"results":[{"task":"a","phase":"Succeeded"},{"task":"b","phase":"Running"}]}`
		if string(raw) != want {
			t.Errorf("%s: %s, want %s", arguments, raw, want)
		}
	}
}

// TestWaitDoesNotBegin: tasks that are no children, and times that are none, are refused; tasks that have ended are not
// waited for.
func TestWaitDoesNotBegin(t *testing.T) {
	wait, _, _ := waiting(t, map[string]v1alpha1.TaskPhase{"a": v1alpha1.TaskCancelled})
	for arguments, want := range map[string]string{
		`{"tasks":["x"]}`:                  `you have not created a task "x"`,
		`{"tasks":["a"],"timeout":"soon"}`: `timeout: "soon" is not a positive duration`,
		`{"tasks":["a"],"timeout":"-1m"}`:  `timeout: "-1m" is not a positive duration`,
	} {
		if _, err := wait.Call(t.Context(), json.RawMessage(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
	// A name that no child has costs its own row only.
	some, err := wait.Call(t.Context(), json.RawMessage(`{"tasks":["z","a","0"]}`))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(some)
	const row = `{"task":"%s","phase":"","error":"you have not created a task \"%s\", or it was deleted","errorType":"not_found","suggestion":"your tasks: a"}`
	want := `{"completed":false,"results":[` + strings.ReplaceAll(row, "%s", "0") + `,{"task":"a","phase":"Cancelled"},` + strings.ReplaceAll(row, "%s", "z") + `]}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v, want %s", raw, err, want)
	}
	out, err := wait.Call(t.Context(), json.RawMessage(`{"tasks":["a"]}`))
	if w, ok := out.(waited); err != nil || !ok || !w.Completed || w.Timeout || len(w.Results) != 1 || w.Results[0].Phase != v1alpha1.TaskCancelled {
		t.Errorf("%+v, %v", out, err)
	}
}
