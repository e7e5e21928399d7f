// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	// defaultWait is the default of timeout.
	defaultWait = 10 * time.Minute
	// watchTime ends a watch before client.RequestTimeout does.
	watchTime = client.RequestTimeout - 10*time.Second
)

type waitArguments struct {
	Tasks   []string `json:"tasks"`
	Timeout string   `json:"timeout"`
}

// waited is the result of wait_for_tasks.
type waited struct {
	// Completed is set if all tasks exist and have ended.
	Completed bool `json:"completed"`
	// Timeout is set if the time passed before that. The results are then those of the tasks as they are.
	Timeout bool  `json:"timeout,omitempty"`
	Results []row `json:"results"`
}

type waitTool struct{ *family }

var _ tool.Tool = waitTool{}

// Definition describes the tool.
func (waitTool) Definition() tool.Definition { return builtin.WaitForTasks.Definition() }

// Call follows the children with a watch.
func (t waitTool) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	a, err := decode[waitArguments](raw)
	if err != nil {
		return nil, err
	}
	limit := defaultWait
	if a.Timeout != "" {
		if limit, err = timeoutOf("timeout", a.Timeout); err != nil {
			return nil, err
		}
	}
	slices.Sort(a.Tasks)
	names := slices.Compact(a.Tasks)
	seen, err := t.within(ctx, names, limit)
	if err != nil {
		return nil, err
	}
	children := seen.children
	out := waited{Completed: ended(children) && len(seen.unknown) == 0, Results: []row{}}
	out.Timeout = !ended(children)
	var all []v1alpha1.Task
	if slices.ContainsFunc(children, isRetried) {
		if all, err = t.children(ctx); err != nil {
			return nil, toolkit.Explain(ctx, err)
		}
	}
	for _, c := range children {
		r, err := t.row(ctx, c)
		if err != nil {
			return nil, toolkit.Explain(ctx, err)
		}
		r.RetryTaskName = retryOf(c, all)
		r.Retried = r.RetryTaskName != ""
		out.Results = append(out.Results, r)
	}
	for _, name := range seen.unknown { // the results of the others are not lost with it
		e := seen.notFound(name)
		out.Results = append(out.Results, row{Task: name, Error: e.Message, ErrorType: e.Type, Suggestion: e.Suggestion})
	}
	slices.SortStableFunc(out.Results, func(a, b row) int { return strings.Compare(a.Task, b.Task) })
	return out, nil
}

// within returns the named children when all of them have ended, or as they are when the limit has passed.
func (t waitTool) within(ctx context.Context, names []string, limit time.Duration) (*sight, error) {
	timer := t.clock.NewTimer(limit)
	defer timer.Stop()
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with the call
		select {
		case <-timer.C():
			cancel()
		case <-stop:
		}
	}()
	seen, err := t.await(until, names)
	if until.Err() != nil && ctx.Err() == nil {
		seen, err = t.look(ctx, names)
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return seen, nil
}

// await returns the named children when all of them have ended.
func (t waitTool) await(ctx context.Context, names []string) (*sight, error) {
	for pause := firstPause; ; {
		seen, err := t.look(ctx, names)
		if err != nil || ended(seen.children) {
			return seen, err
		}
		if t.follow(ctx, seen.children, seen.version) {
			pause = firstPause
			continue
		}
		if !client.Sleep(ctx, t.clock, pause) {
			return nil, ctx.Err()
		}
		pause = min(2*pause, longPause)
	}
}

// sight is what there is of the named children.
type sight struct {
	children []*v1alpha1.Task // in the order of the names
	unknown  []string         // names that no child has: they are misspelt, or the task was deleted
	mine     []string         // the names of all children
	version  string           // at which they were read
}

func (s *sight) notFound(name string) *tool.Error {
	e := tool.Errorf(tool.TypeNotFound, "you have not created a task %.253q, or it was deleted", name)
	if len(s.mine) == 0 {
		return e.Suggest("you have not created any task yet")
	}
	return e.Suggest("your tasks: %s", strings.Join(s.mine, ", "))
}

// look reads the named children. It is an error if none of the names is a child's.
func (t waitTool) look(ctx context.Context, names []string) (*sight, error) {
	list, err := t.api.CoreV1alpha1().Tasks(t.task.Namespace).List(ctx, metav1.ListOptions{LabelSelector: t.selector()})
	if err != nil {
		return nil, err
	}
	seen := &sight{version: list.ResourceVersion}
	found := map[string]*v1alpha1.Task{}
	for i := range list.Items {
		if c := &list.Items[i]; t.isChild(c) {
			found[c.Name] = c
			seen.mine = append(seen.mine, c.Name)
		}
	}
	for _, name := range names {
		if c, ok := found[name]; ok {
			seen.children = append(seen.children, c)
		} else {
			seen.unknown = append(seen.unknown, name)
		}
	}
	if len(seen.children) == 0 {
		return nil, seen.notFound(seen.unknown[0])
	}
	return seen, nil
}

// follow watches the children until those that have not ended have changed to an end, or watchTime is over. It reports
// false if the watch failed.
func (t waitTool) follow(ctx context.Context, children []*v1alpha1.Task, version string) bool {
	left := map[string]bool{}
	for _, c := range children {
		if !c.Status.Phase.Terminal() {
			left[c.Name] = true
		}
	}
	began, seconds := t.clock.Now(), int64(watchTime/time.Second)
	w, err := t.api.CoreV1alpha1().Tasks(t.task.Namespace).Watch(ctx, metav1.ListOptions{
		LabelSelector: t.selector(), ResourceVersion: version, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return false
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		now, ok := e.Object.(*v1alpha1.Task)
		switch {
		case !ok:
			return false // an error
		case e.Type == watch.Bookmark:
			continue
		case e.Type == watch.Deleted || now.Status.Phase.Terminal():
			delete(left, now.Name)
		}
		if len(left) == 0 {
			return true
		}
	}
	return t.clock.Since(began) >= longPause
}

func ended(children []*v1alpha1.Task) bool {
	return !slices.ContainsFunc(children, func(c *v1alpha1.Task) bool { return !c.Status.Phase.Terminal() })
}

// agentOf returns the name of a task's agent; empty if it has none.
func agentOf(t *v1alpha1.Task) string {
	if t.Spec.AgentRef == nil {
		return t.Status.AgentName
	}
	return cmp.Or(t.Status.AgentName, t.Spec.AgentRef.Name)
}
