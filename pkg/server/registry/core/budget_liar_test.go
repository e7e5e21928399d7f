// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// tell appends one event.
func (s *server) tell(by context.Context, task string, typ v1alpha1.EventType, dedup string, content map[string]any) error {
	_, err := s.CreateNamed(by, "tasks/events", task, event.New(typ, v1alpha1.SeverityInfo, dedup, string(typ), content))
	return err
}

// startAttempt starts an attempt of a task as the controller does: it records the attempt, and then that it runs.
func (s *server) startAttempt(task string, attempt int32) error {
	record := func(o runtime.Object) { o.(*v1alpha1.Task).Status.Attempts = attempt }
	if _, err := s.Update(s.As(controllers, nil), "tasks/status", task, record); err != nil {
		return err
	}
	return s.tell(s.As(controllers, nil), task, v1alpha1.EventTaskStarted, fmt.Sprint("controller/started/", attempt), map[string]any{"attempt": attempt})
}

// TestLyingWorker: what a worker says about its own run, whatever attempt it names, gives no reservation back, so that it
// gets no more requests than one that is silent. Only a later attempt, which a controller starts, does.
func TestLyingWorker(t *testing.T) {
	t.Parallel()
	s := startIn(t, t.TempDir())
	s.mustLimit("Provider", "p", "{type: openai, secretRef: {name: s}}")
	s.mustLimit("Budget", "all", "{limit: {tokens: 250}, window: month}")
	one := s.mustTask("one", "{type: ai, prompt: x, ai: {providerRef: {name: p}, maxTokens: 100}}")
	me := s.worker(one)
	if err := s.startAttempt("one", 1); err != nil {
		t.Fatal(err)
	}
	begun := 0
	for call := range 20 {
		err := s.startModel(me, "one", call, nil)
		switch {
		case err == nil:
			begun++
		case !exhausted(err, "all"):
			t.Fatal(err)
		}
		for _, typ := range []v1alpha1.EventType{v1alpha1.EventWorkerStarted, v1alpha1.EventWorkerFailed, v1alpha1.EventWorkerCompleted} {
			for _, attempt := range []int{0, 1, 2, 1 << 40} {
				if err := s.tell(me, "one", typ, fmt.Sprint(typ, call, attempt), map[string]any{"attempt": attempt}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.tell(me, "one", v1alpha1.EventTaskStarted, fmt.Sprint("started", call), map[string]any{"attempt": 9}); !apierrors.IsForbidden(err) {
			t.Fatalf("a worker appends TaskStarted: %v", err)
		}
	}
	if begun != 2 {
		t.Errorf("%d requests of 100 tokens began, of a Budget of 250", begun)
	}
	s.checkBudget("after the lies", "all", 0, 200)
	// The controller says again what it said, as after a crash. What the second attempt holds is not that of the first.
	if err := s.startAttempt("one", 1); err != nil {
		t.Fatal(err)
	}
	s.checkBudget("the same attempt", "all", 0, 200)
	if err := s.startAttempt("one", 2); err != nil {
		t.Fatal(err)
	}
	s.checkBudget("the next attempt", "all", 200, 0) // nobody knows what the first one used
	if _, err := s.Update(s.User(), "budgets", "all", func(o runtime.Object) { o.(*v1alpha1.Budget).Spec.Limit.Tokens = new(int64(300)) }); err != nil {
		t.Fatal(err)
	}
	if err := s.startModel(me, "one", 100, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.tell(s.As(controllers, nil), "one", v1alpha1.EventTaskStarted, "late", map[string]any{"attempt": 2}); err != nil {
		t.Fatal(err)
	}
	s.checkBudget("a start that is recorded after the first request", "all", 200, 100)
}
