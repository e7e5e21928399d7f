// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// Tasks are found by what they are about, created, run again, suspended, cancelled and deleted, one or several, with the keyboard
// and with the mouse. What the server refuses is said of each task, and what somebody may not do is not offered.
func TestWorkWithTasks(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Objects()
	end := func(name string, phase v1alpha1.TaskPhase, ago time.Duration, model string) {
		f.status(name, func(s *v1alpha1.TaskStatus) {
			start := metav1.NewTime(time.Now().Add(-ago))
			s.Phase, s.AgentName, s.Model, s.StartTime, s.CompletionTime = phase, "helper", model, &start, &metav1.Time{Time: start.Add(62 * time.Second)}
			if phase == v1alpha1.TaskFailed {
				s.Message = "the task ran for longer than its timeout " + hostile[0]
				s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTimedOut, Message: "x", LastTransitionTime: metav1.Now()}}
			}
		})
	}
	f.Prompted("story", "helper", "large-1", "Write a story about a lighthouse.\n"+hostile[0], "team", "web", "tier", "test")
	end("story", v1alpha1.TaskFailed, 10*time.Minute, "large-1")
	f.Prompted("poem", "helper", "small-1", hostile[0]+"\nin verses", "team", "web")
	end("poem", v1alpha1.TaskSucceeded, 48*time.Hour, "small-1")
	for i := range 5 {
		f.Prompted(fmt.Sprintf("heap-%d", i), "digger", "large-1", "Dig.", "team", "heap")
	}
	id := f.Ask("asks", "remove the old files", map[string]string{"code": "rm -r old"})
	f.status("asks", func(s *v1alpha1.TaskStatus) {
		s.Phase = v1alpha1.TaskRunning
		s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaitingForApproval, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApprovalPending, Message: "x", LastTransitionTime: metav1.Now()}}
	})
	token := f.token("ann", "platform-operator")
	f.bind("team", "ann", "platform-editor")
	f.drive("work.mjs", 8, "TOKEN="+token, "VIEWER="+f.token("vic", "platform-viewer"), "APPROVAL="+id)

	ctx, c := t.Context(), f.API.CoreV1alpha1().Tasks("team")
	get := func(name string) *v1alpha1.Task {
		t.Helper()
		task, err := c.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	made := get("made")
	if s := made.Spec; s.Type != v1alpha1.TaskTypeAI || s.AgentRef.Name != "helper" || s.Prompt != "Count the boats.\nAll of them." || *s.Priority != 700 || made.Labels["team"] != "web" || made.Labels["bare"] != "" || len(made.Labels) != 2 {
		t.Errorf("made: %+v %v", s, made.Labels)
	}
	// A run that is repeated is asked the same, in its own name.
	all, err := c.List(ctx, metav1.ListOptions{LabelSelector: "tier=test"})
	if err != nil {
		t.Fatal(err)
	}
	want := get("story").Spec
	want.RequestedBy = nil
	reruns := 0
	for i := range all.Items {
		rerun := &all.Items[i]
		if rerun.Spec.RequestedBy = nil; !strings.HasPrefix(rerun.Name, "story-rerun-") {
			continue
		}
		if reruns++; strings.HasPrefix(rerun.Spec.Prompt, "Write a poem") {
			rerun.Spec.Prompt = want.Prompt
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, rerun.Spec)); diff != "" || rerun.Labels["team"] != "web" {
			t.Errorf("%s: %v %s", rerun.Name, rerun.Labels, diff)
		}
	}
	if reruns != 2 {
		t.Errorf("%d runs of story", reruns)
	}
	if !get("nightly").Spec.Suspend {
		t.Error("nightly is not suspended")
	}
	for _, name := range []string{"heap-0", "heap-1"} {
		if c := meta.FindStatusCondition(get(name).Status.Conditions, v1alpha1.ConditionCancelRequested); c == nil || c.Message != "too deep" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, name := range []string{"heap-2", "heap-3", "heap-4", "poem"} {
		if task, err := c.Get(ctx, name, metav1.GetOptions{}); err == nil && task.DeletionTimestamp == nil || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s is not deleted: %v", name, err)
		}
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
