// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/inbox"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// kinsfolk are the workers of two trees: lead with its children a, b and c, and far with its child d.
type kinsfolk struct {
	*server
	by map[string]context.Context
}

func newKinsfolk(t *testing.T) *kinsfolk {
	t.Helper()
	k := &kinsfolk{start(t), map[string]context.Context{}}
	k.grow()
	return k
}

func (k *kinsfolk) grow() {
	k.t.Helper()
	for root, children := range map[string][]string{"lead": {"a", "b", "c"}, "far": {"d"}} {
		k.MustApply("agents", withHead("kind: Agent\nspec: {coordination: {enabled: true, allowedAgents: [{name: \"*\"}]}}", root))
		top := k.mustTask(root, `{type: ai, prompt: p, agentRef: {name: `+root+`}}`)
		k.by[root] = k.worker(top) //nolint:fatcontext // one context for each worker
		for _, name := range children {
			k.by[name] = k.worker(k.adopt(root, name)) //nolint:fatcontext // likewise
		}
	}
}

// adopt creates a child of a root, which waits.
func (k *kinsfolk) adopt(root, name string) *v1alpha1.Task {
	k.t.Helper()
	obj, err := k.Decode(withHead("kind: Task\nspec: {type: ai, prompt: "+name+", agentRef: {name: "+root+"}}", name))
	if err != nil {
		k.t.Fatal(err)
	}
	child := obj.(*v1alpha1.Task)
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(k.Task(root), v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	made, err := k.Create(k.by[root], "tasks", child)
	if err != nil {
		k.t.Fatal(err)
	}
	return made.(*v1alpha1.Task)
}

// say sends a message, and returns who has got it, and whose inbox is full.
func (k *kinsfolk) say(from string, m v1alpha1.TaskMessageSpec) (got, full []string, err error) {
	obj, err := k.CreateNamed(k.by[from], "tasks/messages", from, &v1alpha1.TaskMessage{Spec: m})
	if err != nil {
		return nil, nil, err
	}
	st := obj.(*v1alpha1.TaskMessage).Status
	return st.Recipients, st.Full, nil
}

func (k *kinsfolk) mustSay(from, to, content string) {
	k.t.Helper()
	if _, _, err := k.say(from, v1alpha1.TaskMessageSpec{ToTask: to, Content: content}); err != nil {
		k.t.Fatalf("%s to %s: %v", from, to, err)
	}
}

// hear reads an inbox, and returns "sender: content" of each message.
func (k *kinsfolk) hear(name string, spec v1alpha1.TaskInboxSpec) []string {
	k.t.Helper()
	obj, err := k.CreateNamed(k.by[name], "tasks/inbox", name, &v1alpha1.TaskInbox{Spec: spec})
	if err != nil {
		k.t.Fatal(err)
	}
	return heard(obj)
}

func heard(obj runtime.Object) []string {
	out := []string{}
	for _, m := range obj.(*v1alpha1.TaskInbox).Status.Messages {
		out = append(out, m.FromTask+": "+m.Content)
	}
	return out
}

// peek reads an inbox as somebody who may get it.
func (k *kinsfolk) peek(name string) []string {
	k.t.Helper()
	obj, err := k.Storage["tasks/inbox"].(rest.Getter).Get(coretest.WithPath(k.User(), "tasks/inbox"), name, &metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return heard(obj)
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMessages: the tasks of a family write to each other, and each message is read once.
func TestMessages(t *testing.T) {
	k := newKinsfolk(t)
	k.mustSay("a", "b", "hello, my key is ghp_abcdefghijklmnopqrstuvwxyz0123456789")
	k.mustSay("a", "lead", "to the parent")
	k.mustSay("lead", "b", "to a child")
	got, full, err := k.say("b", v1alpha1.TaskMessageSpec{ToTask: "*", Content: "to all", ParentTask: "lead"})
	if err != nil || len(full) > 0 {
		t.Fatal(full, err)
	}
	check(t, got, "a", "c")
	check(t, k.hear("a", v1alpha1.TaskInboxSpec{}), "b: to all")
	check(t, k.hear("a", v1alpha1.TaskInboxSpec{}))
	check(t, k.hear("c", v1alpha1.TaskInboxSpec{ParentTask: "lead"}), "b: to all")
	check(t, k.hear("lead", v1alpha1.TaskInboxSpec{}), "a: to the parent")
	both := []string{"a: hello, my key is [REDACTED]", "lead: to a child"}
	check(t, k.peek("b"), both...)
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{MarkRead: new(false)}), both...)
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{Through: 1}))
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{Through: 1}))
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{Through: 99}))
	check(t, k.peek("b"))
	k.mustSay("c", "b", "later")
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "c: later")

	k.Remove("tasks", "a")
	if n := len(k.peek("c")); n != 0 {
		t.Errorf("%d messages are unread", n)
	}
	_, _, err = k.say("b", v1alpha1.TaskMessageSpec{ToTask: "a", Content: "x"})
	checkStatus(t, err, 403, "not of its family")
}

// TestMessagesAreSentOnce: a message that is sent again with its id is delivered once, to one recipient or to all.
func TestMessagesAreSentOnce(t *testing.T) {
	k := newKinsfolk(t)
	for range 3 {
		for _, m := range []v1alpha1.TaskMessageSpec{{ToTask: "b", Content: "one", MessageID: "1"}, {ToTask: "*", Content: "all", MessageID: "2"}} {
			if _, _, err := k.say("a", m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := k.say("c", v1alpha1.TaskMessageSpec{ToTask: "b", Content: "another's", MessageID: "1"}); err != nil {
		t.Fatal(err)
	}
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: one", "a: all", "c: another's")
	check(t, k.hear("c", v1alpha1.TaskInboxSpec{}), "a: all")
}

// TestMessagesOfAnAttempt: an attempt reads again what a failed one had read, but not what an earlier iteration has.
func TestMessagesOfAnAttempt(t *testing.T) {
	k := newKinsfolk(t)
	next := func(run string, iteration int32) {
		t.Helper()
		_, err := k.Update(k.User(), "tasks/status", "b", func(o runtime.Object) {
			st := &o.(*v1alpha1.Task).Status
			st.JobUID, st.Iteration = types.UID(run), iteration
		})
		if err != nil {
			t.Fatal(err)
		}
		k.by["b"] = k.workerOf(k.Task("b"), run) //nolint:fatcontext // it replaces the one before
	}
	k.mustSay("a", "b", "1")
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: 1")
	next("second attempt", 0)
	k.mustSay("a", "b", "2")
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: 1", "a: 2")
	next("iteration 1", 1)
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}))
	k.mustSay("a", "b", "3")
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: 3")
	next("iteration 1 again", 1)
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: 3")
}

// TestMessagesAreRefused: a worker writes only as its own task, and only within its family; it reads only its own inbox.
func TestMessagesAreRefused(t *testing.T) {
	k := newKinsfolk(t)
	long := strings.Repeat("ü", inbox.MaxContentChars)
	k.mustSay("a", "b", long)
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: "+long)
	for _, tc := range []struct {
		from string
		m    v1alpha1.TaskMessageSpec
		code int32
		text string
	}{
		{"a", v1alpha1.TaskMessageSpec{Content: "x"}, 400, "spec.toTask: is required"},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: " \n"}, 400, "spec.content: must not be blank"},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: long + "x"}, 400, "spec.content: must be at most 16384 characters, and has 16385"},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: "x", MessageID: strings.Repeat("x", 129)}, 400, "spec.messageID: must be at most 128 characters"},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: "x", ParentTask: "far"}, 400, `spec.parentTask: "far": the parent of the family is "lead"`},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "a", Content: "x"}, 400, "to itself"},
		{"lead", v1alpha1.TaskMessageSpec{ToTask: "*", Content: "x"}, 400, "no siblings"},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "d", Content: "x"}, 403, `task "d" is not of its family`},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "far", Content: "x"}, 403, `task "far" is not of its family`},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "nosuch", Content: "x"}, 403, `task "nosuch" is not of its family`},
		{"a", v1alpha1.TaskMessageSpec{ToTask: "../other/b", Content: "x"}, 400, "may not contain '/'"},
	} {
		_, _, err := k.say(tc.from, tc.m)
		checkStatus(t, err, tc.code, tc.text)
	}
	for _, caller := range []string{"b", "lead", "d"} { // the task's siblings, its parent and strangers
		for path, obj := range map[string]runtime.Object{
			"tasks/messages": &v1alpha1.TaskMessage{Spec: v1alpha1.TaskMessageSpec{ToTask: "c", Content: "x"}}, "tasks/inbox": &v1alpha1.TaskInbox{},
		} {
			_, err := k.CreateNamed(k.by[caller], path, "a", obj)
			checkStatus(t, err, 403, "another task")
		}
		_, err := k.Storage["tasks/inbox"].(rest.Getter).Get(coretest.WithPath(k.by[caller], "tasks/inbox"), "a", &metav1.GetOptions{})
		checkStatus(t, err, 403, "another task")
	}
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventTaskMessageReceived, v1alpha1.EventTaskMessagesRead} {
		_, err := k.CreateNamed(k.by["a"], "tasks/events", "a", ev(typ))
		checkStatus(t, err, 403, "controller-owned paths")
	}
	_, err := k.CreateNamed(k.by["a"], "tasks/inbox", "a", &v1alpha1.TaskInbox{Spec: v1alpha1.TaskInboxSpec{ParentTask: "far"}})
	checkStatus(t, err, 403, "spec.parentTask")
	_, err = k.CreateNamed(k.by["a"], "tasks/inbox", "a", &v1alpha1.TaskInbox{Spec: v1alpha1.TaskInboxSpec{Through: -1}})
	checkStatus(t, err, 400, "spec.through")

	for _, caller := range []string{"a", "c", "far"} { // a sibling, the task itself and a stranger
		_, err := k.CreateNamed(k.by[caller], "tasks/detach", "c", &v1alpha1.TaskDetachment{})
		checkStatus(t, err, 403, "another task")
	}
	if _, err := k.CreateNamed(k.by["lead"], "tasks/detach", "c", &v1alpha1.TaskDetachment{}); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{"a", "c"}, {"c", "a"}, {"c", "lead"}, {"lead", "c"}} {
		_, _, err := k.say(pair[0], v1alpha1.TaskMessageSpec{ToTask: pair[1], Content: "x"})
		checkStatus(t, err, 403, "not of its family")
	}
	k.SetPhase("b", v1alpha1.TaskSucceeded)
	_, _, err = k.say("a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: "x"})
	checkStatus(t, err, 409, "has ended")
	_, _, err = k.say("b", v1alpha1.TaskMessageSpec{ToTask: "a", Content: "x"})
	checkStatus(t, err, 403, "has ended")
	got, _, err := k.say("a", v1alpha1.TaskMessageSpec{ToTask: "*", Content: "x"})
	if err != nil || len(got) != 0 {
		t.Errorf("sent to %v: %v", got, err)
	}
	waits := k.adopt("lead", "waits")
	_, err = k.CreateNamed(k.by["lead"], "tasks/detach", waits.Name, &v1alpha1.TaskDetachment{})
	checkStatus(t, err, 403, "has not begun")
}

// TestInboxesAreBounded: 100,000 messages from several senders at once do not fill the recipient's stream, and whoever
// reads gets every message that was accepted, once and in order.
func TestInboxesAreBounded(t *testing.T) {
	t.Parallel()
	k := newKinsfolk(t)
	flood := func(from string, n int) (sent int) {
		for i := range n {
			_, _, err := k.say(from, v1alpha1.TaskMessageSpec{ToTask: "b", Content: fmt.Sprint(i)})
			if err == nil {
				sent++
			}
		}
		return sent
	}
	var wg sync.WaitGroup
	sent := make([]int, 2)
	for i, from := range []string{"a", "c"} {
		wg.Go(func() { sent[i] = flood(from, 5_000) })
	}
	wg.Wait()
	if n := sent[0] + sent[1]; n != inbox.MaxUnread {
		t.Errorf("%d messages were accepted", n)
	}
	_, _, err := k.say("a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: "x"})
	checkStatus(t, err, 409, `spec.toTask: "b": the task has 100 unread messages`)
	got, full, err := k.say("a", v1alpha1.TaskMessageSpec{ToTask: "*", Content: "x"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, "c")
	check(t, full, "b")
	total := 0
	for total < inbox.MaxMessages {
		page := k.hear("b", v1alpha1.TaskInboxSpec{})
		if total += len(page); len(page) == 0 {
			if flood("a", inbox.MaxUnread) == 0 {
				break
			}
		}
	}
	if total != inbox.MaxMessages {
		t.Errorf("%d messages were read", total)
	}
	_, _, err = k.say("a", v1alpha1.TaskMessageSpec{ToTask: "b", Content: "x"})
	checkStatus(t, err, 409, "the task has got 1000 messages, and gets no more")
}

// TestMessagesOutliveTheServer: messages and what was read of them are in the store.
func TestMessagesOutliveTheServer(t *testing.T) {
	dir := t.TempDir()
	k := &kinsfolk{&server{coretest.StartIn(t, dir), t}, map[string]context.Context{}}
	k.grow()
	for i := range 3 {
		k.mustSay("a", "b", fmt.Sprint(i))
	}
	k.hear("b", v1alpha1.TaskInboxSpec{Through: 1})
	k.Close()
	k.server = &server{coretest.StartIn(t, dir), t}
	check(t, k.hear("b", v1alpha1.TaskInboxSpec{}), "a: 1", "a: 2")
	got, _, err := k.say("b", v1alpha1.TaskMessageSpec{ToTask: "*", Content: "after"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, "a", "c")
}
