// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// asksApproval lets a task say something and ask for an approval.
func (k *kinsfolk) asksApproval(by context.Context, name string) {
	k.t.Helper()
	t, digest := k.Task(name), strings.Repeat("0", 64)
	asked := event.New(v1alpha1.EventApprovalRequested, v1alpha1.SeverityInfo, "", "asks", map[string]any{
		"approvalID": approval.ID(t.Namespace, t.Name, t.UID, "shell", digest, digest), "targetTool": "shell",
		"targetArgsDigest": digest, "targetSpecDigest": digest,
	})
	for _, e := range []*v1alpha1.ExecutionEvent{ev(v1alpha1.EventModelMessage), asked} {
		if _, err := k.CreateNamed(by, "tasks/events", name, e); err != nil {
			k.t.Fatal(err)
		}
	}
}

// treeOf returns the tasks that selectors by the root's name find: in tasks, in events, and in approvals.
func (k *kinsfolk) treeOf(root string) (tasks, events, approvals []string) {
	k.t.Helper()
	return k.selected("tasks", "rootTask", root), k.selected("executionevents", "rootTask", root), k.selected("approvals", "spec.rootTask", root)
}

// treeByUID returns the tasks that selectors by the root's UID find.
func (k *kinsfolk) treeByUID(root types.UID) (tasks, approvals []string) {
	k.t.Helper()
	return k.selected("tasks", "rootTaskUID", string(root)), k.selected("approvals", "spec.rootTaskUID", string(root))
}

// selected returns the names of the tasks that a selector finds, sorted.
func (k *kinsfolk) selected(resource, field, value string) []string {
	k.t.Helper()
	got, err := k.Storage[resource].(rest.Lister).List(k.User(), &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, value)})
	if err != nil {
		k.t.Fatal(err)
	}
	items, err := meta.ExtractList(got)
	if err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for _, o := range items {
		switch o := o.(type) {
		case *v1alpha1.Task:
			names = append(names, o.Name)
		case *v1alpha1.ExecutionEvent:
			names = append(names, o.TaskName)
		case *v1alpha1.Approval:
			names = append(names, o.Spec.TaskName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestLeftovers: what a deleted root left over does not appear below another task that has the root's name, also not
// in a watch that began before, and after a restart. It appears again if that task is deleted, too.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	k := &kinsfolk{&server{coretest.StartIn(t, dir), t}, map[string]context.Context{}}
	k.grow()
	is := func(when string, want ...string) {
		t.Helper()
		tasks, events, approvals := k.treeOf("lead")
		for what, got := range map[string][]string{"tasks": tasks, "events": events, "approvals": approvals} {
			if want := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return what == "approvals" && name == "lead" }); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v", when, what, got, want)
			}
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		k.asksApproval(k.by[name], name)
	}
	if _, err := k.CreateNamed(k.by["lead"], "tasks/events", "lead", ev(v1alpha1.EventModelMessage)); err != nil {
		t.Fatal(err)
	}
	is("with their root", "a", "b", "c", "lead")
	if _, err := k.CreateNamed(k.User(), "tasks/detach", "c", &v1alpha1.TaskDetachment{}); err != nil {
		t.Fatal(err)
	}
	k.Remove("tasks", "lead")
	is("without a root", "a", "b", "c")
	w := k.watch(internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("rootTask", "lead"), ResourceVersion: k.Task("c").ResourceVersion})
	defer w.Stop()

	top := k.mustTask("lead", `{type: ai, prompt: another, agentRef: {name: lead}}`)
	lead := k.worker(top)
	obj, err := k.Decode(withHead("kind: Task\nspec: {type: ai, prompt: new, agentRef: {name: lead}}", "new"))
	if err != nil {
		t.Fatal(err)
	}
	child := obj.(*v1alpha1.Task)
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(top, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	made, err := k.Create(lead, "tasks", child)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.CreateNamed(k.by["c"], "tasks/events", "c", ev(v1alpha1.EventModelRequestStarted)); err != nil {
		t.Fatal(err)
	}
	k.asksApproval(k.worker(made.(*v1alpha1.Task)), "new")
	if _, err := k.CreateNamed(lead, "tasks/events", "lead", ev(v1alpha1.EventModelMessage)); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		got, ok := e.Object.(*v1alpha1.ExecutionEvent)
		if !ok || got.Type == v1alpha1.EventModelRequestStarted {
			t.Fatalf("the watch shows %+v", e.Object)
		}
		if got.TaskName == "lead" {
			break
		}
	}
	is("with a new root", "lead", "new")
	if tasks, approvals := k.treeByUID(k.Task("c").Status.Delegation.RootUID); !slices.Equal(tasks, []string{"a", "b", "c"}) || !slices.Equal(approvals, tasks) {
		t.Errorf("by the UID of the root that is gone: %v, approvals of %v", tasks, approvals)
	}
	if tasks, approvals := k.treeByUID(top.UID); !slices.Equal(tasks, []string{"lead", "new"}) || !slices.Equal(approvals, []string{"new"}) {
		t.Errorf("by the UID of the new root: %v, approvals of %v", tasks, approvals)
	}
	k.Close()
	k.server = &server{coretest.StartIn(t, dir), t}
	if _, _, err := k.say("d", v1alpha1.TaskMessageSpec{ToTask: "*", Content: "waits until the trees are known"}); err != nil {
		t.Fatal(err)
	}
	is("after a restart", "lead", "new")
	k.Remove("tasks", "a")
	k.Remove("tasks", "lead")
	is("without the new root", "b", "c", "new")
}

// TestRunsOfADeletedSchedule: whatever a deletion keeps, no run goes on without its schedule. Runs that have ended, and tasks that
// only have the label of runs, stay as they are.
func TestRunsOfADeletedSchedule(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground} {
		k := newKinsfolk(t)
		schedule := k.mustTask("nightly", `{type: container, command: [x], schedule: "@daily"}`)
		for _, name := range []string{"active", "over", "stranger"} {
			obj, err := k.Decode(withHead("kind: Task\nspec: {type: container, command: [x]}", name))
			if err != nil {
				t.Fatal(err)
			}
			run := obj.(*v1alpha1.Task)
			run.ObjectMeta = schedule.RunOfSchedule().ObjectMeta
			run.Name = name
			if name != "stranger" {
				run.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(schedule, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
			}
			if _, err := k.Create(k.User(), "tasks", run); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := k.Update(k.User(), "tasks/status", "over", func(o runtime.Object) { o.(*v1alpha1.Task).Status.Phase = v1alpha1.TaskSucceeded }); err != nil {
			t.Fatal(err)
		}
		_, _, err := k.Storage["tasks"].(rest.GracefulDeleter).Delete(coretest.WithPath(k.User(), "tasks"), "nightly", rest.ValidateAllObjectFunc,
			&metav1.DeleteOptions{PropagationPolicy: &policy})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"active": true, "over": false, "stranger": false} {
			asked := meta.FindStatusCondition(k.Task(name).Status.Conditions, v1alpha1.ConditionCancelRequested)
			if got := asked != nil && asked.Status == metav1.ConditionTrue; got != want {
				t.Errorf("%s: run %s is cancelled: %v, want %v", policy, name, got, want)
			}
		}
	}
}
