// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Effects that were not claimed are ended with their task. What was begun, and the effects of others, stay.
func TestEndedTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	phases := map[string]v1alpha1.TaskPhase{"succeeded": v1alpha1.TaskSucceeded, "failed": v1alpha1.TaskFailed, "gone": v1alpha1.TaskRunning, "replaced": v1alpha1.TaskRunning, "work": v1alpha1.TaskRunning}
	pending, flying := map[string]*v1alpha1.ToolEffect{}, map[string]*v1alpha1.ToolEffect{}
	for name := range phases {
		w.tasks.set(name, types.UID("uid-"+name), v1alpha1.TaskRunning)
		pending[name], flying[name] = w.reserve(name, "1"), w.reserve(name, "2")
		w.claim(flying[name], "of "+name)
	}
	handed := w.reserve("failed", "3")
	w.ok(w.claim(handed, "handed").HandBack(t.Context()))
	w.ok(w.Reconcile(t.Context()))
	for name, phase := range phases {
		w.is(pending[name], v1alpha1.ToolEffectPending, "")
		w.tasks.set(name, types.UID("uid-"+name), phase)
	}
	w.tasks.remove("gone")
	w.tasks.set("replaced", "another", v1alpha1.TaskRunning)
	w.tasks.fail(errors.New("not now"))
	if err := w.Reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("while tasks cannot be read: %v", err)
	}
	w.is(pending["gone"], v1alpha1.ToolEffectPending, "")
	w.tasks.fail(nil)
	w.ok(w.Reconcile(t.Context()))
	for name := range phases {
		w.is(flying[name], v1alpha1.ToolEffectInFlight, "")
		if name == "work" {
			w.is(pending[name], v1alpha1.ToolEffectPending, "")
			continue
		}
		w.is(pending[name], v1alpha1.ToolEffectFailed, "the task has ended")
		c, err := w.Claim(t.Context(), pending[name], "an approval that comes too late")
		w.ok(err)
		if !c.Replayed() || c.Effect().Status.State != v1alpha1.ToolEffectFailed {
			t.Errorf("%s: %+v", name, c.Effect().Status)
		}
	}
	if w.is(handed, v1alpha1.ToolEffectFailed, "the task has ended"); w.now(handed).Status.Attempts != 1 {
		t.Error("a claim that was handed back is not counted any more")
	}
}

// A server that runs settles what is due when it starts, and then again and again.
func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.in(v1alpha1.ToolEffectInFlight, "first")
	w.clock.Step(time.Hour)
	second := w.in(v1alpha1.ToolEffectInFlight, "second")
	events, err := w.storage["tooleffects"].(rest.Watcher).Watch(w.as(""), &internalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(FieldState, "OutcomeUnknown"), ResourceVersion: second.ResourceVersion,
	})
	w.ok(err)
	defer events.Stop()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	defer func() { stop(); <-ended }()
	for i, want := range []*v1alpha1.ToolEffect{first, second} {
		if i > 0 {
			w.clock.Step(2 * look)
		}
		got := (<-events.ResultChan()).Object
		if shared, is := got.(runtime.CacheableObject); is {
			got = shared.GetObject()
		}
		if e, is := got.(*v1alpha1.ToolEffect); !is || e.Name != want.Name {
			t.Errorf("settled %v", got)
		}
	}
}
