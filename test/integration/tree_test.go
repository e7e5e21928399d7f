// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
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
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// treeEvents follows the events of a tree with the command.
func (p *platform) treeEvents(task string, args ...string) (next func() *v1alpha1.ExecutionEvent, rest func() ([]v1alpha1.ExecutionEvent, int)) {
	p.t.Helper()
	return p.watching(io.Discard, append([]string{"task", "watch", task, "--tree"}, args...)...)
}

// watching starts `platform ARGS -o json`, which complains to errs, and returns a func that reads the next event that it prints,
// and one that reads the rest and returns the exit code.
func (p *platform) watching(errs io.Writer, args ...string) (next func() *v1alpha1.ExecutionEvent, rest func() ([]v1alpha1.ExecutionEvent, int)) {
	p.t.Helper()
	in, out := io.Pipe()
	code := make(chan int, 1)
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	go func() {
		all := append(append([]string{"--kubeconfig", p.Kubeconfig}, args...), "-o", "json")
		code <- cli.Main(ctx, "platform", all, cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
		_ = out.Close() // a pipe: it cannot fail
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	next = func() *v1alpha1.ExecutionEvent {
		if !lines.Scan() {
			return nil
		}
		e := &v1alpha1.ExecutionEvent{}
		if err := json.Unmarshal(lines.Bytes(), e); err != nil {
			p.t.Error(err)
		}
		return e
	}
	return next, func() (all []v1alpha1.ExecutionEvent, exit int) {
		for e := next(); e != nil; e = next() {
			all = append(all, *e)
		}
		return all, <-code
	}
}

// TestTreeIsShown: the command shows a running tree, with what each task waits for, and follows it across a restart of the
// server to the end of all of its tasks: each event once, in the order of the store. REST returns the same tasks.
func TestTreeIsShown(t *testing.T) {
	t.Parallel()
	p, goOn := newTree(t, 1, standalone.OnAPort(t)) // the command and the workers find the server again
	p.commission("other", "Start it.")
	p.commission("root", "Down.")
	next, rest := p.treeEvents("root")
	lead := p.awaitTask("root", func(t *v1alpha1.Task) bool { return len(t.Status.ChildTasks) > 0 }).Status.ChildTasks[0].Name
	p.awaitTask(lead, func(t *v1alpha1.Task) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren)
	})
	command := p.below("root")[1].Name
	var seen []v1alpha1.ExecutionEvent
	for e := next(); e != nil; e = next() {
		seen = append(seen, *e)
		if e.TaskName == command && e.Type == v1alpha1.EventWorkerStarted {
			break
		}
	}
	p.Restart(t)

	out, errs, code := platformCommand(t.Context(), p.Kubeconfig, "task", "tree", "root")
	for _, want := range []string{"TASK", "\nroot ", "\n└─ " + lead + " ", v1alpha1.ConditionWaitingForChildren, "\n   └─ " + command + " ", "\n3 Running\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("exit code %d, without %q:\n%s%s", code, want, out, errs)
		}
	}
	var node struct {
		Name, Phase string
		Children    []struct{ Name string }
	}
	out, errs, code = platformCommand(t.Context(), p.Kubeconfig, "task", "tree", lead, "-o", "json")
	if err := json.Unmarshal([]byte(out), &node); err != nil || code != 0 || node.Name != lead || node.Phase != "Running" || len(node.Children) != 1 || node.Children[0].Name != command {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	rows := decode[struct {
		RootTask         string
		Items            []v1alpha1.Task
		PendingApprovals []any
	}](t, restAs(t, p.Server, "default", "vi", "view").get("/api/v1/tasks/"+command+"/tree").want(t, 200))
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
		if _, errs, code := platformCommand(t.Context(), p.Kubeconfig, strings.Fields(args)...); code != 1 || !strings.Contains(errs, want) {
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
	list := must[*v1alpha1.ExecutionEventList](t)(p.api().ExecutionEvents("default").List(t.Context(), metav1.ListOptions{FieldSelector: "rootTask=root"}))
	for i := range list.Items {
		stored = append(stored, list.Items[i].Name)
	}
	if code != 0 || !slices.Equal(watched, stored) {
		t.Errorf("exit code %d; the command printed\n%v\nthe server has\n%v", code, watched, stored)
	}
	viewer := restAs(t, p.Server, "default", "vi", "view")
	stream := viewer.open(t.Context(), "GET", "/api/v1/tasks/root/stream?tree=true", "")
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
	viewer.get("/api/v1/tasks/"+lead+"/stream?tree=true").problem(t, 400, "was delegated by a task of the tree of root")
	if all, code := p.watched("root"); code != 0 || len(all) != len(stored) { // of a tree that has ended
		t.Errorf("exit code %d, %d events", code, len(all))
	}
}

func (p *platform) watched(task string, args ...string) ([]v1alpha1.ExecutionEvent, int) {
	p.t.Helper()
	_, rest := p.treeEvents(task, args...)
	return rest()
}

// TestTreeWatchEndsWithTheLastTask: a root that is cancelled ends before the tasks below it have ended, and one that is deleted
// takes its events along. The command still prints the end of each task that lived, and reports how the root ended.
func TestTreeWatchEndsWithTheLastTask(t *testing.T) {
	t.Parallel()
	p, _ := newTree(t, 1)
	for name, end := range map[string]func(){
		"cancelled": func() {
			must[*v1alpha1.Task](t)(p.tasks().Cancel(t.Context(), "cancelled", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}))
		},
		"deleted": func() {
			if err := p.tasks().Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		p.commission(name, "Down.")
		_, rest := p.treeEvents(name, "--type", string(v1alpha1.EventTaskCancelled))
		lead := p.awaitTask(name, func(t *v1alpha1.Task) bool { return len(t.Status.ChildTasks) > 0 }).Status.ChildTasks[0].Name
		p.awaitTask(lead, func(t *v1alpha1.Task) bool {
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
	t.Parallel()
	calls := make([]string, 50)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{name: delegate_task, arguments: {agent: clerk, prompt: "Think of %d."}}`, i)
	}
	p, _ := withModel(t, strings.ReplaceAll(stormScript, "MANY", strings.Join(calls, ", ")))
	p.team()
	must[*v1alpha1.Agent](t)(p.api().Agents("default").Create(t.Context(), &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "storm"}, Spec: v1alpha1.AgentSpec{
			ProviderRef:  &v1alpha1.NamespacedReference{Name: "model"},
			Coordination: &v1alpha1.AgentCoordination{Enabled: true, MaxConcurrentChildren: new(int32(10))},
		},
	}, metav1.CreateOptions{}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	changes := must[watch.Interface](t)(p.tasks().Watch(ctx, metav1.ListOptions{FieldSelector: "rootTask=root"}))
	defer changes.Stop()
	requests := must[watch.Interface](t)(p.api().ExecutionEvents("default").Watch(ctx, metav1.ListOptions{FieldSelector: "rootTask=root,type=ModelRequestStarted"}))
	defer requests.Stop()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Storm.", AgentRef: &v1alpha1.NamespacedReference{Name: "storm"},
	}}
	must[*v1alpha1.Task](t)(p.tasks().Create(t.Context(), task, metav1.CreateOptions{}))
	asked := map[string]bool{}
	for e := range requests.ResultChan() {
		if asked[e.Object.(*v1alpha1.ExecutionEvent).TaskName] = true; len(asked) > 4 {
			break
		}
	}
	must[*v1alpha1.Task](t)(p.tasks().Cancel(t.Context(), "root", &v1alpha1.TaskCancellation{Reason: "enough"}, metav1.CreateOptions{}))

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
	children := p.below("root")
	begun, unreported := 0, int64(0)
	for _, c := range append(children, *last["root"]) {
		started := len(p.eventsOf(c.Name, v1alpha1.EventModelRequestStarted))
		ended := len(p.eventsOf(c.Name, v1alpha1.EventModelRequestCompleted)) + len(p.eventsOf(c.Name, v1alpha1.EventModelRequestFailed))
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
