// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestForkGetsASessionOfItsOwn: the session of a fork begins with what the source's session held at the fork's point, and
// what the fork adds stays out of the source's session.
func TestForkGetsASessionOfItsOwn(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	c := standalone.Start(t).Core(t)
	sessions, tasks := c.Sessions("default"), c.Tasks("default")
	if _, err := sessions.Create(t.Context(), &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	say := func(ids ...string) {
		t.Helper()
		said := &v1alpha1.SessionTranscript{}
		for _, id := range ids {
			said.Items = append(said.Items, v1alpha1.SessionMessage{ID: id, Role: v1alpha1.RoleUser, Content: "text of " + id})
		}
		if _, err := sessions.AppendMessages(t.Context(), "s", said, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	say("earlier")
	source := kit.Must[*v1alpha1.Task](t)(tasks.Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "source"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "go on", SessionRef: &v1alpha1.TaskSessionReference{Name: "s", PromptIncluded: true},
		AI: &v1alpha1.TaskAI{Provider: v1alpha1.ProviderOpenAI, Model: "m"},
	}}, metav1.CreateOptions{}))
	add := func(events ...v1alpha1.EventType) {
		t.Helper()
		for _, e := range events {
			kit.Must[*v1alpha1.ExecutionEvent](t)(tasks.AppendEvent(t.Context(), "source", &v1alpha1.ExecutionEvent{Type: e}, metav1.CreateOptions{}))
		}
	}
	add(v1alpha1.EventTaskStarted, v1alpha1.EventModelMessage)
	own := "task:" + string(source.UID) + ":"
	say(own+"user", own+"assistant")
	add(v1alpha1.EventTaskSucceeded)
	say("later")

	for _, tc := range []struct {
		name, after string
		shared      bool
		want        string
	}{
		{name: "at-first", after: "0", want: "earlier"},
		{name: "midway", after: "2", want: "earlier"},
		{name: "at-last", after: "latest", want: "earlier, user, assistant"},
		{name: "together", after: "2", shared: true, want: "earlier, user, assistant, later"},
	} {
		spec := v1alpha1.TaskForkSpec{AfterSeq: after(tc.after), NewTaskName: tc.name}
		session := tc.name
		if tc.shared {
			spec.Session, session = v1alpha1.ForkSessionShared, "s"
		}
		if tc.after == "latest" {
			spec.AfterSeq = after("3") // forks are events of the source, too
		}
		kit.Must[*v1alpha1.TaskFork](t)(tasks.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: spec}, metav1.CreateOptions{}))
		made := kit.Must[*v1alpha1.Task](t)(tasks.Get(t.Context(), tc.name, metav1.GetOptions{}))
		if made.Spec.SessionRef.Name != session || made.Spec.SessionRef.PromptIncluded {
			t.Errorf("%s: session %+v", tc.name, made.Spec.SessionRef)
		}
		transcript := kit.Must[*v1alpha1.SessionTranscript](t)(sessions.GetTranscript(t.Context(), session, metav1.GetOptions{}))
		var got []string
		for _, m := range transcript.Items {
			got = append(got, strings.TrimPrefix(m.ID, own))
		}
		if all := strings.Join(got, ", "); all != tc.want {
			t.Errorf("%s: the session has %s, want %s", tc.name, all, tc.want)
		}
	}

	// A repeated request finds the same fork and the same session.
	for range 2 {
		f := kit.Must[*v1alpha1.TaskFork](t)(tasks.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{AfterSeq: after("3"), IdempotencyKey: "k"}}, metav1.CreateOptions{}))
		if s := kit.Must[*v1alpha1.Session](t)(sessions.Get(t.Context(), f.Status.NewTaskName, metav1.GetOptions{})); s.Status.MessageCount != 3 {
			t.Errorf("the session has %d messages", s.Status.MessageCount)
		}
	}
	// A session of another origin is not taken.
	if _, err := sessions.Create(t.Context(), &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := tasks.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "taken"}}, metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "choose another newTaskName") {
		t.Errorf("a session of that name: %v", err)
	}
	// Without a task there is no session.
	if _, err := tasks.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "midway"}}, metav1.CreateOptions{}); err == nil {
		t.Error("two forks of one name")
	}
	if err := sessions.Delete(t.Context(), "midway", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tasks.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "midway"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a task of that name: %v", err)
	}
	if _, err := sessions.Get(t.Context(), "midway", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the session of a fork that was not made: %v", err)
	}
}

// TestForkCopiesNoSessionUnread: the server copies a session for whoever may read it, and for nobody else.
func TestForkCopiesNoSessionUnread(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.Core(t)
	sessions := c.Sessions("default")
	kit.Must[*v1alpha1.Session](t)(sessions.Create(t.Context(), &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Task](t)(c.Tasks("default").Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "source"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "go on", SessionRef: &v1alpha1.TaskSessionReference{Name: "s"},
		AI: &v1alpha1.TaskAI{Provider: v1alpha1.ProviderOpenAI, Model: "m"},
	}}, metav1.CreateOptions{}))
	// The user may read a session of this name, which does not exist yet: the fork must not fill it.
	mine := host.Can("get", "sessions", "sessions/transcript")
	mine.ResourceNames = []string{"mine"}
	forker := s.Granted(t, "forker", host.Can("create", "tasks", "tasks/fork"), host.Can("get", "tasks"), mine).Tasks("default")
	for _, dry := range [][]string{{metav1.DryRunAll}, nil} {
		_, err := forker.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "mine"}}, metav1.CreateOptions{DryRun: dry})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "sessions/transcript") {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	if _, err := sessions.Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the session of a refused fork: %v", err)
	}
	if _, err := c.Tasks("default").Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the task of a refused fork: %v", err)
	}
	reader := s.Granted(t, "reader", host.Can("create", "tasks", "tasks/fork"), host.Can("get", "tasks", "sessions/transcript")).Tasks("default")
	kit.Must[*v1alpha1.TaskFork](t)(reader.Fork(t.Context(), "source", &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "mine"}}, metav1.CreateOptions{}))
}
