// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// Platform is a server at work, and what tests want of its namespace default.
type Platform struct {
	*Server
	T *testing.T
}

// NewPlatform returns a server with its controllers, whose worker is a shell script: for each attempt it runs in the run's working
// folder, after the credentials were read.
func NewPlatform(t *testing.T, script string, configure ...func(*Options)) *Platform {
	t.Helper()
	worker := filepath.Join(t.TempDir(), "worker")
	script = "#!/bin/sh\nread -r CREDENTIALS || exit 2\nexec 2>&1\n" + script
	if err := os.WriteFile(worker, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	defaults := func(o *Options) {
		o.Controllers, o.WorkerBinary, o.AllowHostCommands = nil, worker, true
	}
	return &Platform{Server: Start(t, append([]func(*Options){defaults}, configure...)...), T: t}
}

// API is the administrator's client.
func (p *Platform) API() typed.CoreV1alpha1Interface {
	p.T.Helper()
	return p.Core(p.T)
}

// Tasks is the administrator's client of tasks.
func (p *Platform) Tasks() typed.TaskInterface {
	p.T.Helper()
	return p.API().Tasks("default")
}

// Run creates a container task.
func (p *Platform) Run(name string, change ...func(*v1alpha1.TaskSpec)) *v1alpha1.Task {
	p.T.Helper()
	spec := v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}
	for _, c := range change {
		c(&spec)
	}
	return p.create(name, spec)
}

// OnModel creates a task of type ai on the scripted model.
func (p *Platform) OnModel(name string, change func(*v1alpha1.TaskSpec)) {
	p.T.Helper()
	spec := v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "Say hello.", AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}},
	}
	change(&spec)
	p.create(name, spec)
}

// Ask creates a task of type ai on a session and waits for its end.
func (p *Platform) Ask(name, prompt string, ref v1alpha1.TaskSessionReference, want v1alpha1.TaskPhase) *v1alpha1.Task {
	p.T.Helper()
	p.create(name, v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, SessionRef: &ref,
		AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, SystemPrompt: "Be short."},
	})
	return p.AwaitPhase(name, want)
}

// Give creates a task of an agent and waits for its end.
func (p *Platform) Give(name, agent, prompt string, want v1alpha1.TaskPhase) *v1alpha1.Task {
	p.T.Helper()
	p.create(name, v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: prompt, AgentRef: &v1alpha1.NamespacedReference{Name: agent},
		Timeout: v1alpha1.DurationOf(3600e9),
	})
	return p.AwaitPhase(name, want)
}

func (p *Platform) create(name string, spec v1alpha1.TaskSpec) *v1alpha1.Task {
	p.T.Helper()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	return kit.Must[*v1alpha1.Task](p.T)(p.Tasks().Create(p.T.Context(), task, metav1.CreateOptions{}))
}

// Await waits until the task is as wanted, and returns it with all phases seen until then.
func (p *Platform) Await(name string, wanted func(*v1alpha1.Task) bool) (*v1alpha1.Task, []v1alpha1.TaskPhase) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.T.Context(), kit.Patience)
	defer cancel()
	c := p.Tasks()
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return c.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return c.Watch(ctx, o)
		},
	}
	var last *v1alpha1.Task
	var phases []v1alpha1.TaskPhase
	_, err := watchtools.UntilWithSync(ctx, lw, &v1alpha1.Task{}, nil, func(e watch.Event) (bool, error) {
		task, ok := e.Object.(*v1alpha1.Task)
		if !ok {
			return false, fmt.Errorf("watch gave %T", e.Object)
		}
		last = task
		if n := len(phases); n == 0 || phases[n-1] != task.Status.Phase {
			phases = append(phases, task.Status.Phase)
		}
		return wanted(task), nil
	})
	if err != nil {
		p.T.Fatalf("task %s: %v; phases %v, last status %+v", name, err, phases, last)
	}
	return last, phases
}

// AwaitTask waits until a task is as wanted.
func (p *Platform) AwaitTask(name string, wanted func(*v1alpha1.Task) bool) *v1alpha1.Task {
	p.T.Helper()
	task, _ := p.Await(name, wanted)
	return task
}

// AwaitPhase waits until a task has a phase. If it ends with another one, the test ends.
func (p *Platform) AwaitPhase(name string, phase v1alpha1.TaskPhase) *v1alpha1.Task {
	p.T.Helper()
	task := p.AwaitTask(name, func(t *v1alpha1.Task) bool { return t.Status.Phase == phase || t.Status.Phase.Terminal() })
	if task.Status.Phase != phase {
		p.T.Fatalf("task %s is %s (%s), want %s", name, task.Status.Phase, task.Status.Message, phase)
	}
	return task
}

// ResultOf is the result of a task.
func (p *Platform) ResultOf(name string) string {
	p.T.Helper()
	var r v1alpha1.TaskResult
	if err := p.API().RESTClient().Get().Namespace("default").Resource("tasks").Name(name).SubResource("result").Do(p.T.Context()).Into(&r); err != nil {
		p.T.Fatal(err)
	}
	return r.Result
}

// EventsOf returns the events of a type in a task's stream.
func (p *Platform) EventsOf(task string, typ v1alpha1.EventType) []v1alpha1.ExecutionEvent {
	p.T.Helper()
	selector := metav1.ListOptions{FieldSelector: "taskName=" + task + ",type=" + string(typ)}
	return kit.Must[*v1alpha1.ExecutionEventList](p.T)(p.API().ExecutionEvents("default").List(p.T.Context(), selector)).Items
}

// Below returns the tasks that were delegated in the tree of a root, in the order of their creation.
func (p *Platform) Below(root string) []v1alpha1.Task {
	p.T.Helper()
	list := kit.Must[*v1alpha1.TaskList](p.T)(p.Tasks().List(p.T.Context(), metav1.ListOptions{}))
	list.Items = slices.DeleteFunc(list.Items, func(t v1alpha1.Task) bool { return t.Status.Delegation == nil || t.Status.Delegation.Root != root })
	slices.SortFunc(list.Items, func(a, b v1alpha1.Task) int { return cmp.Compare(a.Status.CreationRevision, b.Status.CreationRevision) })
	return list.Items
}

// Folder is that of the task's current attempt.
func (p *Platform) Folder(t *v1alpha1.Task) string {
	return filepath.Join(p.DataDir, "runs", string(t.UID), strconv.Itoa(int(t.Status.Attempts)))
}

// WorkerOf returns the process of a task's current run; 0 if there is none.
func (p *Platform) WorkerOf(task *v1alpha1.Task) int {
	p.T.Helper()
	raw, err := os.ReadFile(filepath.Join(p.Folder(task), "run.json"))
	var record struct {
		PID int `json:"pid"`
	}
	if err != nil || json.Unmarshal(raw, &record) != nil {
		return 0
	}
	return record.PID
}
