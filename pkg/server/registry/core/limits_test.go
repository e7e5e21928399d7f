// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// TestPendingApprovals: a worker, alone or with many requests at a time, has at most approval.MaxPending approvals waiting. A
// request that it repeats is answered, a decision makes room, and the stream says once what is refused.
func TestPendingApprovals(t *testing.T) {
	s := start(t)
	task := s.mustTask("a", `{type: ai, prompt: go}`)
	ask := func(n int) *v1alpha1.ExecutionEvent {
		return approval.RequestEvent("default", v1alpha1.ApprovalSpec{TaskName: "a", TaskUID: task.UID, TargetTool: "exec", TargetArgsDigest: fmt.Sprintf("%064x", n)})
	}
	post := func(from, to int) error {
		list := &v1alpha1.ExecutionEventList{}
		for n := from; n < to; n++ {
			list.Items = append(list.Items, *ask(n))
		}
		_, err := s.CreateNamed(s.User(), "tasks/events", "a", list)
		return err
	}
	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if err := post(i*20, i*20+20); err == nil {
				admitted.Add(20)
			} else if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "number of pending approvals of the task: requested 20") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != approval.MaxPending/20*20 {
		t.Fatalf("%d were admitted", n)
	}
	first := ""
	pending := 0
	page, err := s.Log.List(t.Context(), eventlog.Query{Namespace: "default", Task: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Items {
		switch {
		case e.Type == v1alpha1.EventApprovalRequested:
			first, pending = approval.IDOf(e), pending+1
		case strings.Contains(e.Summary, "refuses further approvals"):
			pending += 10_000
		}
	}
	if pending != 10_000+approval.MaxPending/20*20 {
		t.Errorf("%d requests; 10,000 is for each event about the limit", pending)
	}
	for n := 10_000; admitted.Load() < approval.MaxPending; n++ {
		if err := post(n, n+1); err != nil {
			t.Fatal(err)
		}
		admitted.Add(1)
	}
	if err := post(20_000, 20_001); !apierrors.IsForbidden(err) {
		t.Errorf("one more: %v", err)
	}
	if err := post(10_000, 10_001); err != nil {
		t.Errorf("a repeated request: %v", err)
	}
	if _, err := s.CreateNamed(s.User(), "approvals/decision", first, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: "decline"}}); err != nil {
		t.Fatal(err)
	}
	if err := post(20_000, 20_001); err != nil {
		t.Errorf("after a decision: %v", err)
	}
	if err := post(20_001, 20_002); !apierrors.IsForbidden(err) {
		t.Errorf("one more after a decision: %v", err)
	}
}

// TestSizes: what is too long is refused by its field and its limit.
func TestSizes(t *testing.T) {
	t.Parallel()
	s := start(t)
	long := strings.Repeat("x", v1alpha1.MaxPromptBytes)
	for field, text := range map[string]string{
		"spec.prompt":          `{type: ai, prompt: %s}`,
		"spec.ai.prompt":       `{type: ai, ai: {prompt: %s}}`,
		"spec.ai.systemPrompt": `{type: ai, prompt: go, ai: {systemPrompt: %s}}`,
	} {
		if _, err := s.Apply("tasks", withHead("kind: Task\nspec: "+fmt.Sprintf(text, long), "fits-"+strings.ToLower(strings.ReplaceAll(field, ".", "-")))); err != nil {
			t.Errorf("%s of the longest length: %v", field, err)
		}
		_, err := s.Apply("tasks", withHead("kind: Task\nspec: "+fmt.Sprintf(text, long+"x"), "long"))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field+": Too long: may not be more than 1048576 bytes") || len(err.Error()) > 1000 {
			t.Errorf("%s: %.300v", field, err)
		}
	}
	_, err := s.Update(s.User(), "tasks", "fits-spec-prompt", func(o runtime.Object) { o.(*v1alpha1.Task).Spec.Prompt += "x" })
	if !apierrors.IsInvalid(err) {
		t.Errorf("a longer prompt by an update: %.300v", err)
	}
	s.mustTask("a", `{type: ai, prompt: go}`)
	list := &v1alpha1.ExecutionEventList{Items: make([]v1alpha1.ExecutionEvent, 5001)}
	for i := range list.Items {
		list.Items[i] = *ev(v1alpha1.EventModelMessage)
	}
	if _, err := s.CreateNamed(s.User(), "tasks/events", "a", list); err == nil || !strings.Contains(err.Error(), "items: must have at most 5000 events, not 5001") {
		t.Errorf("%v", err)
	}
	list.Items = list.Items[:5000]
	if _, err := s.CreateNamed(s.User(), "tasks/events", "a", list); err != nil {
		t.Error(err)
	}
}

// TestClientThatLeftCostsNothing: what a client asks for that has left meanwhile is not checked, however large it is.
func TestClientThatLeftCostsNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.mustTask("a", `{type: ai, prompt: go}`)
	obj, err := s.Decode(withHead("kind: Task\nspec: {type: ai, prompt: go, priority: 5000}", "b"))
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(s.User())
	leave()
	broken := func(o runtime.Object) { o.(*v1alpha1.Task).Spec.Priority = new(int32(5000)) }
	for who, ctx := range map[string]context.Context{"there": s.User(), "gone": gone} {
		_, created := s.Create(ctx, "tasks", obj.DeepCopyObject())
		_, updated := s.Update(ctx, "tasks", "a", broken)
		for _, err := range []error{created, updated} {
			if apierrors.IsInvalid(err) != (who == "there") || errors.Is(err, context.Canceled) != (who == "gone") {
				t.Errorf("%s: %v", who, err)
			}
		}
	}
}
