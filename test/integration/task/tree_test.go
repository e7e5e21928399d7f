// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// treeEvents follows the events of a tree with the command.
func treeEvents(p *standalone.Platform, task string, args ...string) (next func() *v1alpha1.ExecutionEvent, rest func() ([]v1alpha1.ExecutionEvent, int)) {
	p.T.Helper()
	return p.Watching(io.Discard, append([]string{"task", "watch", task, "--tree"}, args...)...)
}

// TestTreeIsShown: the command shows a running tree, with what each task waits for, and follows it across a restart of the
// server to the end of all of its tasks: each event once, in the order of the store. REST returns the same tasks.
func TestTreeIsShown(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, goOn := newTree(t, 1, standalone.OnAPort(t)) // the command and the workers find the server again
	commission(p, "other", "Start it.")
	commission(p, "root", "Down.")
	next, rest := treeEvents(p, "root")
	lead := p.AwaitTask("root", func(t *v1alpha1.Task) bool { return len(t.Status.ChildTasks) > 0 }).Status.ChildTasks[0].Name
	p.AwaitTask(lead, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	command := p.Below("root")[1].Name
	var seen []v1alpha1.ExecutionEvent
	for e := next(); e != nil; e = next() {
		seen = append(seen, *e)
		if e.TaskName == command && e.Type == v1alpha1.EventWorkerStarted {
			break
		}
	}
	p.Restart(t)

	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "tree", "root")
	for _, want := range []string{"TASK", "\nroot ", "\n└─ " + lead + " ", v1alpha1.ConditionWaitingForChildren, "\n   └─ " + command + " ", "\n3 Running\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("exit code %d, without %q:\n%s%s", code, want, out, errs)
		}
	}
	var node struct {
		Name, Phase string
		Children    []struct{ Name string }
	}
	out, errs, code = standalone.Command(t.Context(), p.Kubeconfig, "task", "tree", lead, "-o", "json")
	if err := json.Unmarshal([]byte(out), &node); err != nil || code != 0 || node.Name != lead || node.Phase != "Running" || len(node.Children) != 1 || node.Children[0].Name != command {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	rows := host.Decode[struct {
		RootTask         string
		Items            []v1alpha1.Task
		PendingApprovals []any
	}](t, p.REST(t, "default", "vi", "view").Get("/api/v1/tasks/"+command+"/tree").Want(t, 200))
	var names []string
	for i := range rows.Items {
		names = append(names, rows.Items[i].Name)
	}
	slices.Sort(names)
	if want := []string{"root", lead, command}; rows.RootTask != "root" || !slices.Equal(names, slices.Sorted(slices.Values(want))) || rows.PendingApprovals == nil {
		t.Errorf("REST: %s, %v", rows.RootTask, names)
	}
	for args, want := range map[string]string{
		"task watch " + lead + " --tree":   "task " + lead + " was delegated by a task of the tree of root",
		"task watch root --tree --after 3": "--after: a sequence belongs to one task",
		"task watch root --tree --type x":  `--type: "x" is not an event type`,
		"task tree none":                   `"none" not found`,
	} {
		if _, errs, code := standalone.Command(t.Context(), p.Kubeconfig, strings.Fields(args)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}

	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	more, code := rest()
	seen = append(seen, more...)
	var watched, stored []string
	for i := range seen {
		watched = append(watched, seen[i].Name)
	}
	list := kit.Must[*v1alpha1.ExecutionEventList](t)(p.API().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "rootTask=root"}))
	for i := range list.Items {
		stored = append(stored, list.Items[i].Name)
	}
	if code != 0 || !slices.Equal(watched, stored) {
		t.Errorf("exit code %d; the command printed\n%v\nthe server has\n%v", code, watched, stored)
	}
	viewer := p.REST(t, "default", "vi", "view")
	stream := viewer.Open(t.Context(), "GET", "/api/v1/tasks/root/stream?tree=true", "")
	defer stream.Body.Close()
	var sent []string
	for r := sse.NewReader(stream.Body, sse.Options{}); ; {
		f, err := r.Next()
		if err != nil {
			t.Fatalf("the stream of the tree: %v", err)
		}
		if f.Type == event.FrameComplete {
			break
		}
		var e v1alpha1.ExecutionEvent
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, event.Name(e.TaskName, e.Seq))
	}
	if !slices.Equal(sent, stored) {
		t.Errorf("the stream of the tree has\n%v\nthe server\n%v", sent, stored)
	}
	viewer.Get("/api/v1/tasks/"+lead+"/stream?tree=true").Problem(t, 400, "was delegated by a task of the tree of root")
	if all, code := watchTree(p, "root"); code != 0 || len(all) != len(stored) { // of a tree that has ended
		t.Errorf("exit code %d, %d events", code, len(all))
	}
}

func watchTree(p *standalone.Platform, task string, args ...string) ([]v1alpha1.ExecutionEvent, int) {
	p.T.Helper()
	_, rest := treeEvents(p, task, args...)
	return rest()
}

// TestTreeWatchEndsWithTheLastTask: a root that is cancelled ends before the tasks below it have ended, and one that is deleted
// takes its events along. The command still prints the end of each task that lived, and reports how the root ended.
func TestTreeWatchEndsWithTheLastTask(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := newTree(t, 1)
	for name, end := range map[string]func(){
		"cancelled": func() {
			kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "cancelled", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
		},
		"deleted": func() {
			if err := p.Tasks().Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		commission(p, name, "Down.")
		_, rest := treeEvents(p, name, "--type", string(v1alpha1.EventTaskCancelled))
		lead := p.AwaitTask(name, func(t *v1alpha1.Task) bool { return len(t.Status.ChildTasks) > 0 }).Status.ChildTasks[0].Name
		p.AwaitTask(lead, func(t *v1alpha1.Task) bool {
			return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
		})
		end()
		all, code := rest()
		var ended []string
		for i := range all {
			ended = append(ended, all[i].TaskName)
		}
		if code != 3 || name == "cancelled" && (len(ended) < 2 || !slices.Contains(ended, name)) {
			t.Errorf("%s: exit code %d; %q were cancelled", name, code, ended)
		}
	}
}

// stormScript: a chief delegates 50 times at once to clerks, who think slowly and delegate nothing.
const stormScript = `
models: [scripted-1]
turns:
- name: storm
  match: {turn: 1, lastRole: user, contains: Storm}
  reply: {toolCalls: [MANY]}
- name: the storm is over
  match: {turn: 2, lastRole: tool}
  reply: {text: All are delegated.}
- name: a clerk thinks
  match: {turn: 1, lastRole: user, contains: Think of}
  reply: {text: I have thought about it for long enough., usage: {input: 10, output: 5}}
  fault: {chunkDelay: 300ms}
`

// TestCancelIntoAStorm cancels a root while it creates 50 children, some of which have asked their model. No child begins
// an attempt after its mark, all of them end, and each model request that was started has an end or counts as
// unreported.
func TestCancelIntoAStorm(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	calls := make([]string, 50)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{name: delegate_task, arguments: {agent: clerk, prompt: "Think of %d."}}`, i)
	}
	p, _ := standalone.WithModel(t, strings.ReplaceAll(stormScript, "MANY", strings.Join(calls, ", ")))
	p.Team()
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "storm"}, Spec: v1alpha1.AgentSpec{
			ProviderRef:  &v1alpha1.NamespacedReference{Name: "model"},
			Coordination: &v1alpha1.AgentCoordination{Enabled: true, MaxConcurrentChildren: new(int32(10)), AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}}},
		},
	}, metav1.CreateOptions{}))
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	changes := kit.Must[watch.Interface](t)(p.Tasks().Watch(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"}))
	defer changes.Stop()
	requests := kit.Must[watch.Interface](t)(p.API().ExecutionEvents("default").Watch(ctx, metav1.ListOptions{FieldSelector: "rootTask=root,type=ModelRequestStarted"}))
	defer requests.Stop()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Storm.", AgentRef: &v1alpha1.NamespacedReference{Name: "storm"},
	}}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Create(t.Context(), task, metav1.CreateOptions{}))
	asked := map[string]bool{}
	for e := range requests.ResultChan() {
		if asked[e.Object.(*v1alpha1.ExecutionEvent).TaskName] = true; len(asked) > 4 {
			break
		}
	}
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Cancel(t.Context(), "root", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))

	attempts, last := map[string]int32{}, map[string]*v1alpha1.Task{}
	living := func() bool {
		for _, x := range last {
			if !x.Status.Phase.Terminal() {
				return true
			}
		}
		return len(last) == 0
	}
	for living() {
		e, open := <-changes.ResultChan()
		if !open {
			t.Fatal("the watch ended before all tasks had ended")
		}
		x := e.Object.(*v1alpha1.Task)
		last[x.Name] = x
		if !meta.IsStatusConditionTrue(x.Status.Conditions, v1alpha1.ConditionCancelRequested) {
			attempts[x.Name] = x.Status.Attempts
		} else if x.Status.Attempts > attempts[x.Name] {
			t.Errorf("%s began attempt %d after the cancellation", x.Name, x.Status.Attempts)
		}
	}
	children := p.Below("root")
	begun, unreported := 0, int64(0)
	for _, c := range append(children, *last["root"]) {
		started := len(p.EventsOf(c.Name, v1alpha1.EventModelRequestStarted))
		ended := len(p.EventsOf(c.Name, v1alpha1.EventModelRequestCompleted)) + len(p.EventsOf(c.Name, v1alpha1.EventModelRequestFailed))
		finished := c.Name != "root" && c.Status.Phase == v1alpha1.TaskSucceeded && started > 0 && ended == started // before it could be cancelled
		if c.Status.Phase != v1alpha1.TaskCancelled && !finished {
			t.Errorf("%s is %s: %s", c.Name, c.Status.Phase, c.Status.Message)
		}
		var u v1alpha1.TaskUsage
		if c.Status.Usage != nil {
			u = *c.Status.Usage
		}
		if int(u.ModelRequests) != started || int(u.UnreportedRequests) < started-ended {
			t.Errorf("%s: %d requests were started, %d ended; the usage is %+v", c.Name, started, ended, u)
		}
		unreported += u.UnreportedRequests
		begun += min(started, 1)
	}
	if len(children) == 0 || len(children) != len(last)-1 || begun < len(asked) {
		t.Errorf("%d children, of which the watch showed %d; %d tasks asked their model", len(children), len(last)-1, begun)
	}
	t.Logf("%d children; %d tasks asked their model, %d requests are unreported", len(children), begun, unreported)
}
