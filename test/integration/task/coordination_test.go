// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// delegateScript: a chief delegates to a clerk, waits and answers with what the clerk said. Every word in the prompt is
// one way to delegate.
const delegateScript = `
models: [scripted-1]
turns:
- name: delegate
  match: {turn: 1, lastRole: user, contains: Ask the clerk, offered: [delegate_task, wait_for_tasks, create_container_task, cancel_task]}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Say the word.", timeout: 20m}}]}
- name: delegate to a stranger
  match: {turn: 1, lastRole: user, contains: Ask a stranger}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: stranger, prompt: "Say the word."}}]}
- name: delegate elsewhere
  match: {turn: 1, lastRole: user, contains: Ask elsewhere}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: clerk, prompt: "Say the word.", taskNamespace: other}}]}
- name: ask itself
  match: {turn: 1, lastRole: user, contains: Ask yourself}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: chief, prompt: "  Ask\n yourself. "}}]}
- name: the clerk
  match: {turn: 1, lastRole: user, contains: Say the word}
  reply: {text: heliotrope}
- name: wait
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: answer
  match: {turn: 3, lastRole: tool, contains: '"completed":true'}
  reply: {text: "The clerk said {{ (index .Results.wait_for_tasks.data.results 0).result }}."}
- name: refused
  match: {turn: 2, lastRole: tool, contains: '"success":false'}
  reply: {text: "{{ .Results.delegate_task.errorType }}: {{ .Results.delegate_task.error }}"}
`

// TestDelegation: a coordinator delegates, waits, and reads the result; the server sets everything that says whose
// child a task is. What it may not delegate is refused with the reason, which the model reads.
func TestDelegation(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithModel(t, delegateScript)
	p.Team()
	chief := p.Give("boss", "chief", "Ask the clerk.", v1alpha1.TaskSucceeded)
	if got := p.ResultOf("boss"); got != "The clerk said heliotrope." {
		t.Errorf("the result is %q", got)
	}
	list := kit.Must[*v1alpha1.TaskList](t)(p.Tasks().List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelParentTask + "=boss"}))
	if len(list.Items) != 1 {
		t.Fatalf("%d children", len(list.Items))
	}
	c := &list.Items[0]
	d := c.Status.Delegation
	if !strings.HasPrefix(c.Name, "boss-child-") || !metav1.IsControlledBy(c, chief) || c.Labels[v1alpha1.LabelCoordinator] != "chief" ||
		c.Labels[v1alpha1.LabelDelegatedAgent] != "clerk" || c.Labels[v1alpha1.LabelCreatedBy] != "boss" ||
		c.Annotations[v1alpha1.AnnotationCoordinationDepth] != "1" || c.Annotations[v1alpha1.AnnotationRequestedBy] != chief.Annotations[v1alpha1.AnnotationRequestedBy] {
		t.Errorf("the child is %+v", c.ObjectMeta)
	}
	if c.Labels[v1alpha1.LabelIteration] != "1" || c.Labels[v1alpha1.LabelIterationGroup] != string(c.UID) {
		t.Errorf("the child's iteration is %v", c.Labels)
	}
	if d == nil || d.ParentUID != chief.UID || d.RootUID != chief.UID || d.Root != "boss" || d.Depth != 1 || d.Deadline == nil || !chief.Status.HasChildren {
		t.Errorf("the child's place is %+v", d)
	}
	trace := kit.Must[*v1alpha1.TaskTrace](t)(p.Tasks().GetTrace(t.Context(), "boss", metav1.GetOptions{}))
	if rows := trace.ChildTasks; len(rows) != 1 || rows[0].Name != c.Name || rows[0].Agent != "clerk" || rows[0].Status != v1alpha1.SpanCompleted {
		t.Errorf("the trace has the children %+v", rows)
	}
	for prompt, want := range map[string]string{
		"Ask a stranger.": `permission_denied: agent "default/stranger" is not among those that agent "chief" may delegate to`,
		"Ask elsewhere.":  "invalid_arguments: taskNamespace: a child lives in the namespace of its parent, default",
		"Ask yourself.":   "permission_denied: a task above this one was asked exactly the same",
	} {
		name := strings.ToLower(strings.Fields(prompt)[len(strings.Fields(prompt))-1])
		name = strings.TrimSuffix(name, ".")
		p.Give(name, "chief", prompt, v1alpha1.TaskSucceeded)
		if got := p.ResultOf(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", prompt, got, want)
		}
	}
}

// treeScript: chiefs delegate slow work, and do not wait for it.
const treeScript = `
models: [scripted-1]
turns:
- name: delegate and be done
  match: {turn: 1, lastRole: user, contains: Start it}
  reply: {toolCalls: [{name: create_container_task, arguments: {command: [sh, -c, "while [ ! -e GO ]; do sleep 0.05; done; echo done"]}}]}
- name: is done
  match: {turn: 2, lastRole: tool, contains: '"name":"'}
  reply: {text: I have started it.}
- name: delegate down
  match: {turn: 1, lastRole: user, contains: Down}
  reply: {toolCalls: [{name: delegate_task, arguments: {agent: chief, prompt: "Start it."}}]}
- name: waits below
  match: {turn: 2, lastRole: tool, contains: '"status":"created"'}
  reply: {toolCalls: [{name: wait_for_tasks, arguments: {tasks: ["{{ .Results.delegate_task.data.taskName }}"]}}]}
- name: has waited
  match: {turn: 3}
  reply: {text: It is over.}
- name: many
  match: {turn: 1, lastRole: user, contains: Many}
  reply: {toolCalls: [MANY]}
- name: many are delegated
  match: {turn: 2, lastRole: tool}
  reply: {text: All are delegated.}
`

// newTree returns a server with a chief, whose commands end when the file at the path exists.
func newTree(t *testing.T, many int, configure ...func(*standalone.Options)) (p *standalone.Platform, goOn string) {
	t.Helper()
	goOn = filepath.Join(t.TempDir(), "go")
	calls := make([]string, many)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{name: create_container_task, arguments: {command: [sh, -c, "while [ ! -e GO ]; do sleep 0.05; done; echo %d"]}}`, i)
	}
	text := strings.ReplaceAll(strings.ReplaceAll(treeScript, "MANY", strings.Join(calls, ", ")), "GO", goOn)
	allow := func(o *standalone.Options) {
		o.AllowHostCommands, o.SandboxRead = true, append(o.SandboxRead, filepath.Dir(goOn))
	}
	p, _ = standalone.WithModel(t, text, append([]func(*standalone.Options){allow}, configure...)...)
	p.Team()
	return p, goOn
}

// commission creates a task of the chief.
func commission(p *standalone.Platform, name, prompt string) *v1alpha1.Task {
	p.T.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: "chief"},
	}}
	return kit.Must[*v1alpha1.Task](p.T)(p.Tasks().Create(p.T.Context(), task, metav1.CreateOptions{}))
}

// TestParentsWaitForChildren: a parent whose work is done stays Running until its children have ended or were
// detached, and lists them. If it is cancelled meanwhile, it ends as Cancelled, and so do they.
func TestParentsWaitForChildren(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, goOn := newTree(t, 2)
	commission(p, "boss", "Start it.")
	waiting := p.AwaitTask("boss", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	if waiting.Status.Phase != v1alpha1.TaskRunning || len(waiting.Status.ChildTasks) != 1 {
		t.Errorf("the parent is %+v", waiting.Status)
	}
	commission(p, "stopped", "Start it.")
	p.AwaitTask("stopped", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "stopped", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	stopped := p.AwaitPhase("stopped", v1alpha1.TaskCancelled)
	if c := meta.FindStatusCondition(stopped.Status.Conditions, v1alpha1.ConditionWaitingForChildren); c.Status != metav1.ConditionFalse || stopped.Status.Message != "the task was cancelled: enough" {
		t.Errorf("the cancelled parent is %+v", stopped.Status)
	}
	ends := kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=stopped"}))
	if last := ends.Items[len(ends.Items)-1]; last.Type != v1alpha1.EventTaskCancelled {
		t.Errorf("the stream of the cancelled parent ends with %s", last.Type)
	}
	p.AwaitPhase(p.Below("stopped")[0].Name, v1alpha1.TaskCancelled)
	commission(p, "many", "Many.")
	p.AwaitTask("many", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	detached := p.Below("many")[0]
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Detach(t.Context(), detached.Name, &v1alpha1.TaskDetachment{Reason: "it may go on"}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), p.Below("many")[1].Name, &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
	p.AwaitPhase("many", v1alpha1.TaskSucceeded)
	if now := p.Below("many")[0]; now.Status.Phase.Terminal() || len(now.OwnerReferences) != 0 {
		t.Errorf("the detached task is %s, owned by %v", now.Status.Phase, now.OwnerReferences)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := p.AwaitPhase("boss", v1alpha1.TaskSucceeded)
	if c := ended.Status.ChildTasks; len(c) != 1 || c[0].Phase != v1alpha1.TaskSucceeded || c[0].Result != "done\n" {
		t.Errorf("the children are %+v", c)
	}
	p.AwaitPhase(detached.Name, v1alpha1.TaskSucceeded)
}

// TestTreesAreCancelledAtOnce: a cancellation of the root marks all tasks of the tree at one revision after the other,
// without anything between, while 50 children are being created; none starts after it.
func TestTreesAreCancelledAtOnce(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := newTree(t, 50)
	commission(p, "root", "Many.")
	p.AwaitTask("root", func(t *v1alpha1.Task) bool { return t.Status.HasChildren })
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "root", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	atOnce := len(p.Below("root"))
	p.AwaitPhase("root", v1alpha1.TaskCancelled)
	children := p.Below("root")
	if len(children) != atOnce || atOnce == 0 {
		t.Errorf("%d children when the root was cancelled, %d later", atOnce, len(children))
	}
	for i := range children {
		c := p.AwaitTask(children[i].Name, func(t *v1alpha1.Task) bool { return t.Status.Phase.Terminal() })
		asked := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionCancelRequested)
		if c.Status.Phase != v1alpha1.TaskCancelled || asked == nil || asked.Message != "enough" {
			t.Errorf("child %d is %s: %s", i, c.Status.Phase, c.Status.Message)
		}
	}
	list := kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "type=TaskPhaseChanged"}))
	var marks []uint64
	for _, e := range list.Items {
		if strings.Contains(e.Summary, "cancellation was requested") {
			marks = append(marks, kit.Must[uint64](t)(strconv.ParseUint(e.ResourceVersion, 10, 64)))
		}
	}
	slices.Sort(marks)
	// Each task takes two revisions, of the object and of the event.
	if n := len(marks); n == 0 || marks[n-1]-marks[0] != uint64(2*(n-1)) {
		t.Errorf("the marks have the revisions %v", marks)
	}
}

// TestChildLimit: a child that would be one too many waits, and starts when a sibling ends.
func TestChildLimit(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, goOn := newTree(t, 7)
	commission(p, "root", "Many.")
	p.AwaitTask("root", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	last := p.Below("root")[6]
	got := p.AwaitTask(last.Name, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
	})
	if c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionWaitingToStart); c.Reason != v1alpha1.ReasonChildLimitReached || got.Status.Phase != v1alpha1.TaskPending {
		t.Errorf("the last child is %+v", got.Status)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("root", v1alpha1.TaskSucceeded)
	for _, c := range p.Below("root") {
		if c.Status.Phase != v1alpha1.TaskSucceeded {
			t.Errorf("%s is %s", c.Name, c.Status.Phase)
		}
	}
}

// TestTreesNeedOneSlot: with room for one task, a coordinator that waits for its child does not keep it from running.
func TestTreesNeedOneSlot(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, goOn := newTree(t, 1, func(o *standalone.Options) { o.MaxRunning = 1 })
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	commission(p, "root", "Down.")
	p.AwaitPhase("root", v1alpha1.TaskSucceeded)
	if n := len(p.Below("root")); n != 2 {
		t.Errorf("%d tasks were delegated", n)
	}
}

// TestTreeIsOneStream: one watch on the root shows the events of all levels in one order, and a list shows the same.
func TestTreeIsOneStream(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, goOn := newTree(t, 1)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	events := p.API().ExecutionEvents("default")
	commission(p, "other", "Start it.")
	w := kit.Must[watch.Interface](t)(events.Watch(t.Context(), metav1.ListOptions{FieldSelector: "rootTask=root"}))
	defer w.Stop()
	commission(p, "root", "Down.")
	var live []string
	for e := range w.ResultChan() {
		got := e.Object.(*v1alpha1.ExecutionEvent)
		live = append(live, got.Name)
		if got.RootTask != "root" {
			t.Errorf("event %s is of the tree of %q", got.Name, got.RootTask)
		}
		if got.TaskName == "root" && got.Type == v1alpha1.EventTaskSucceeded {
			break
		}
	}
	p.AwaitPhase("root", v1alpha1.TaskSucceeded)
	var stored []string
	for o := (metav1.ListOptions{FieldSelector: "rootTask=root", Limit: 7}); ; { // in pages
		page := kit.Must[*v1alpha1.ExecutionEventList](t)(events.List(t.Context(), o))
		for _, e := range page.Items {
			stored = append(stored, e.Name)
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	if !slices.Equal(live, stored) {
		t.Errorf("the watch shows %d events\n%v\nthe list %d\n%v", len(live), live, len(stored), stored)
	}
	tasks := map[string]bool{}
	for _, name := range stored {
		tasks[name[:strings.LastIndex(name, ".")]] = true
	}
	if len(tasks) != 3 {
		t.Errorf("the events are of %v", tasks)
	}
}
