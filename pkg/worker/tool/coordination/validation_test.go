// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/command"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// validating calls run_validation, twice with the same number, in an API where the child ends as the func says. It returns the second result
// and the names of the children.
func validating(t *testing.T, end func(child *v1alpha1.Task) (output string)) (validated, []string) {
	t.Helper()
	children, output := map[string]*v1alpha1.Task{}, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, name, _ := strings.Cut(r.URL.Path, "/tasks/")
		name, part, _ := strings.Cut(name, "/")
		switch {
		case r.Method == http.MethodPost && name == "":
			made := &v1alpha1.Task{}
			if err := json.NewDecoder(r.Body).Decode(made); err != nil {
				t.Error(err)
			}
			if children[made.Name] != nil {
				w.WriteHeader(http.StatusConflict)
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict})
				return
			}
			made.TypeMeta = metav1.TypeMeta{Kind: "Task", APIVersion: v1alpha1.SchemeGroupVersion.String()}
			made.Status.Delegation = &v1alpha1.TaskDelegation{ParentUID: "own"}
			output = end(made)
			made.Status.ResultRef = &v1alpha1.TaskResultReference{Available: true}
			children[made.Name] = made
			_ = json.NewEncoder(w).Encode(made)
		case part == "result":
			_ = json.NewEncoder(w).Encode(v1alpha1.TaskResult{TypeMeta: metav1.TypeMeta{Kind: "TaskResult", APIVersion: v1alpha1.SchemeGroupVersion.String()}, Result: output})
		case name != "":
			_ = json.NewEncoder(w).Encode(children[name])
		default:
			list := v1alpha1.TaskList{TypeMeta: metav1.TypeMeta{Kind: "TaskList", APIVersion: v1alpha1.SchemeGroupVersion.String()}}
			for _, c := range children {
				list.Items = append(list.Items, *c)
			}
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(s.Close)
	api, err := client.New(client.Config{ServerURL: s.URL, Token: "token"}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	own := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "t", UID: "own", Annotations: map[string]string{v1alpha1.AnnotationMonitorValidation: `{"image":"a@sha256:0","commands":["make"]}`}},
		Spec:       v1alpha1.TaskSpec{Workspace: &v1alpha1.TaskWorkspace{GitRepo: "https://github.com/o/r", Ref: "abc"}},
	}
	var last any
	for range 2 { // the second is the first again, whose answer was lost
		made, err := ValidateBuiltin.New(toolkit.Given{API: api, Task: own, Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		if last, err = made.Call(t.Context(), json.RawMessage(`{"timeout":"20m"}`)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for name, c := range children {
		names = append(names, name)
		if !command.Validates(own, c) || c.Spec.Timeout.Value().String() != "20m0s" {
			t.Errorf("%+v", c.Spec)
		}
	}
	out, ok := last.(validated)
	if !ok {
		t.Fatalf("%T", last)
	}
	return out, names
}

// TestValidationResult: what a reviewer reads of how the checks ended, once for each call.
func TestValidationResult(t *testing.T) {
	for name, c := range map[string]struct {
		phase           v1alpha1.TaskPhase
		reason, message string
		status          string
		code            int // -1 for none
	}{
		"passed":      {v1alpha1.TaskSucceeded, "", "", "passed", 0},
		"failed":      {v1alpha1.TaskFailed, v1alpha1.ReasonCommandFailed, command.Exited(2), "failed", 2},
		"by a signal": {v1alpha1.TaskFailed, v1alpha1.ReasonCommandFailed, "the command was ended by killed", "failed", -1},
		"not run":     {v1alpha1.TaskFailed, v1alpha1.ReasonImageNotUsed, "leave spec.image out", "error", -1},
		"too long":    {v1alpha1.TaskFailed, v1alpha1.ReasonTimedOut, "it took too long", "error", -1},
		"cancelled":   {v1alpha1.TaskCancelled, "", "", "error", -1},
	} {
		out, names := validating(t, func(child *v1alpha1.Task) string {
			child.Status.Phase, child.Status.Message = c.phase, c.message
			if c.reason != "" {
				child.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: c.reason}}
			}
			return "first" + strings.Repeat("é", maxValidationOutput) + "last"
		})
		code := -1
		if out.ExitCode != nil {
			code = *out.ExitCode
		}
		if len(names) != 1 || out.Status != c.status || code != c.code || out.HeadSHA != "abc" || out.TaskName != names[0] || !strings.Contains(out.Message, c.message) {
			t.Errorf("%s: %+v of %q", name, out, names)
		}
		if !out.OutputTruncated || !strings.HasSuffix(out.Output, "last") || strings.HasPrefix(out.Output, "first") || len(out.Output) > maxValidationOutput || strings.Contains(out.Output, "\ufffd") {
			t.Errorf("%s: %d bytes of output", name, len(out.Output))
		}
	}
}
