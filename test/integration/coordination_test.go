// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
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

// team makes the agents of delegateScript.
func (p *platform) team() {
	p.t.Helper()
	for name, c := range map[string]*v1alpha1.AgentCoordination{
		"chief": {Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}, {Name: "chief"}}}, "clerk": nil, "stranger": nil,
	} {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Coordination: c}}
		if _, err := p.api().Agents("default").Create(p.t.Context(), a, metav1.CreateOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// give creates a task of an agent and waits for its end.
func (p *platform) give(name, agent, prompt string, want v1alpha1.TaskPhase) *v1alpha1.Task {
	p.t.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: agent},
		Timeout: v1alpha1.DurationOf(3600e9),
	}}
	if _, err := p.tasks().Create(p.t.Context(), task, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return p.awaitPhase(name, want)
}

func (p *platform) resultOf(name string) string {
	p.t.Helper()
	var r v1alpha1.TaskResult
	if err := p.api().RESTClient().Get().Namespace("default").Resource("tasks").Name(name).SubResource("result").Do(p.t.Context()).Into(&r); err != nil {
		p.t.Fatal(err)
	}
	return r.Result
}

// TestDelegation: a coordinator delegates, waits, and reads the result; the server sets everything that says whose
// child a task is. What it may not delegate is refused with the reason, which the model reads.
func TestDelegation(t *testing.T) {
	t.Parallel()
	p, _ := withModel(t, delegateScript)
	p.team()
	chief := p.give("boss", "chief", "Ask the clerk.", v1alpha1.TaskSucceeded)
	if got := p.resultOf("boss"); got != "The clerk said heliotrope." {
		t.Errorf("the result is %q", got)
	}
	list := must[*v1alpha1.TaskList](t)(p.tasks().List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelParentTask + "=boss"}))
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
	for prompt, want := range map[string]string{
		"Ask a stranger.": `permission_denied: agent "default/stranger" is not among those that agent "chief" may delegate to`,
		"Ask elsewhere.":  "invalid_arguments: taskNamespace: a child lives in the namespace of its parent, default",
		"Ask yourself.":   "permission_denied: a task above this one was asked exactly the same",
	} {
		name := strings.ToLower(strings.Fields(prompt)[len(strings.Fields(prompt))-1])
		name = strings.TrimSuffix(name, ".")
		p.give(name, "chief", prompt, v1alpha1.TaskSucceeded)
		if got := p.resultOf(name); !strings.HasPrefix(got, want) {
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
func newTree(t *testing.T, many int, configure ...func(*standalone.Options)) (p *platform, goOn string) {
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
	p, _ = withModel(t, text, append([]func(*standalone.Options){allow}, configure...)...)
	p.team()
	return p, goOn
}

// commission creates a task of the chief.
func (p *platform) commission(name, prompt string) *v1alpha1.Task {
	p.t.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: "chief"},
	}}
	return must[*v1alpha1.Task](p.t)(p.tasks().Create(p.t.Context(), task, metav1.CreateOptions{}))
}

// awaitTask waits until a task is as wanted.
func (p *platform) awaitTask(name string, wanted func(*v1alpha1.Task) bool) *v1alpha1.Task {
	p.t.Helper()
	task, _ := p.await(name, wanted)
	return task
}

// below returns the tasks that were delegated in the tree of a root, in the order of their creation.
func (p *platform) below(root string) []v1alpha1.Task {
	p.t.Helper()
	list := must[*v1alpha1.TaskList](p.t)(p.tasks().List(p.t.Context(), metav1.ListOptions{}))
	list.Items = slices.DeleteFunc(list.Items, func(t v1alpha1.Task) bool { return t.Status.Delegation == nil || t.Status.Delegation.Root != root })
	slices.SortFunc(list.Items, func(a, b v1alpha1.Task) int { return cmp.Compare(a.Status.CreationRevision, b.Status.CreationRevision) })
	return list.Items
}

// TestParentsWaitForChildren: a parent whose work is done stays Running until its children have ended or were
// detached, and lists them. If it is cancelled meanwhile, it ends as Cancelled, and so do they.
func TestParentsWaitForChildren(t *testing.T) {
	t.Parallel()
	p, goOn := newTree(t, 2)
	p.commission("boss", "Start it.")
	waiting := p.awaitTask("boss", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	if waiting.Status.Phase != v1alpha1.TaskRunning || len(waiting.Status.ChildTasks) != 1 {
		t.Errorf("the parent is %+v", waiting.Status)
	}
	p.commission("stopped", "Start it.")
	p.awaitTask("stopped", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	must[*v1alpha1.Task](t)(p.tasks().Cancel(t.Context(), "stopped", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	stopped := p.awaitPhase("stopped", v1alpha1.TaskCancelled)
	if c := meta.FindStatusCondition(stopped.Status.Conditions, v1alpha1.ConditionWaitingForChildren); c.Status != metav1.ConditionFalse || stopped.Status.Message != "the task was cancelled: enough" {
		t.Errorf("the cancelled parent is %+v", stopped.Status)
	}
	ends := must[*v1alpha1.ExecutionEventList](t)(p.api().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "taskName=stopped"}))
	if last := ends.Items[len(ends.Items)-1]; last.Type != v1alpha1.EventTaskCancelled {
		t.Errorf("the stream of the cancelled parent ends with %s", last.Type)
	}
	p.awaitPhase(p.below("stopped")[0].Name, v1alpha1.TaskCancelled)
	p.commission("many", "Many.")
	p.awaitTask("many", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	detached := p.below("many")[0]
	must[*v1alpha1.Task](t)(p.tasks().Detach(t.Context(), detached.Name, &v1alpha1.TaskDetachment{Reason: "it may go on"}, metav1.CreateOptions{}))
	must[*v1alpha1.Task](t)(p.tasks().Cancel(t.Context(), p.below("many")[1].Name, &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
	p.awaitPhase("many", v1alpha1.TaskSucceeded)
	if now := p.below("many")[0]; now.Status.Phase.Terminal() || len(now.OwnerReferences) != 0 {
		t.Errorf("the detached task is %s, owned by %v", now.Status.Phase, now.OwnerReferences)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := p.awaitPhase("boss", v1alpha1.TaskSucceeded)
	if c := ended.Status.ChildTasks; len(c) != 1 || c[0].Phase != v1alpha1.TaskSucceeded || c[0].Result != "done\n" {
		t.Errorf("the children are %+v", c)
	}
	p.awaitPhase(detached.Name, v1alpha1.TaskSucceeded)
}

// TestTreesAreCancelledAtOnce: a cancellation of the root marks all tasks of the tree at one revision after the other,
// without anything between, while 50 children are being created; none starts after it.
func TestTreesAreCancelledAtOnce(t *testing.T) {
	t.Parallel()
	p, _ := newTree(t, 50)
	p.commission("root", "Many.")
	p.awaitTask("root", func(t *v1alpha1.Task) bool { return t.Status.HasChildren })
	must[*v1alpha1.Task](t)(p.tasks().Cancel(t.Context(), "root", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))
	atOnce := len(p.below("root"))
	p.awaitPhase("root", v1alpha1.TaskCancelled)
	children := p.below("root")
	if len(children) != atOnce || atOnce == 0 {
		t.Errorf("%d children when the root was cancelled, %d later", atOnce, len(children))
	}
	for i := range children {
		c := p.awaitTask(children[i].Name, func(t *v1alpha1.Task) bool { return t.Status.Phase.Terminal() })
		asked := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionCancelRequested)
		if c.Status.Phase != v1alpha1.TaskCancelled || asked == nil || asked.Message != "enough" {
			t.Errorf("child %d is %s: %s", i, c.Status.Phase, c.Status.Message)
		}
	}
	list := must[*v1alpha1.ExecutionEventList](t)(p.api().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "type=TaskPhaseChanged"}))
	var marks []uint64
	for _, e := range list.Items {
		if strings.Contains(e.Summary, "cancellation was requested") {
			marks = append(marks, must[uint64](t)(strconv.ParseUint(e.ResourceVersion, 10, 64)))
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
	t.Parallel()
	p, goOn := newTree(t, 7)
	p.commission("root", "Many.")
	p.awaitTask("root", func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	last := p.below("root")[6]
	got := p.awaitTask(last.Name, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
	})
	if c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionWaitingToStart); c.Reason != v1alpha1.ReasonChildLimitReached || got.Status.Phase != v1alpha1.TaskPending {
		t.Errorf("the last child is %+v", got.Status)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitPhase("root", v1alpha1.TaskSucceeded)
	for _, c := range p.below("root") {
		if c.Status.Phase != v1alpha1.TaskSucceeded {
			t.Errorf("%s is %s", c.Name, c.Status.Phase)
		}
	}
}

// TestTreesNeedOneSlot: with room for one task, a coordinator that waits for its child does not keep it from running.
func TestTreesNeedOneSlot(t *testing.T) {
	t.Parallel()
	p, goOn := newTree(t, 1, func(o *standalone.Options) { o.MaxRunning = 1 })
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.commission("root", "Down.")
	p.awaitPhase("root", v1alpha1.TaskSucceeded)
	if n := len(p.below("root")); n != 2 {
		t.Errorf("%d tasks were delegated", n)
	}
}

// TestTreeIsOneStream: one watch on the root shows the events of all levels in one order, and a list shows the same.
func TestTreeIsOneStream(t *testing.T) {
	t.Parallel()
	p, goOn := newTree(t, 1)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	events := p.api().ExecutionEvents("default")
	p.commission("other", "Start it.")
	w := must[watch.Interface](t)(events.Watch(t.Context(), metav1.ListOptions{FieldSelector: "rootTask=root"}))
	defer w.Stop()
	p.commission("root", "Down.")
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
	p.awaitPhase("root", v1alpha1.TaskSucceeded)
	var stored []string
	for o := (metav1.ListOptions{FieldSelector: "rootTask=root", Limit: 7}); ; { // in pages
		page := must[*v1alpha1.ExecutionEventList](t)(events.List(t.Context(), o))
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
