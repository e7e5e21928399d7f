// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

const (
	// maxOutput is how much of a result the model reads, in characters.
	maxOutput = 2000
	// defaultWait and maxWait are how long wait_for_task waits.
	defaultWait = 30 * time.Second
	maxWait     = 60 * time.Second
)

// createdTask is the result of tools that create tasks.
type createdTask struct {
	Name      string             `json:"name"`
	Namespace string             `json:"namespace"`
	Phase     v1alpha1.TaskPhase `json:"phase"`
	Message   string             `json:"message"`
}

func (b *Box) createAITask(ctx context.Context, a builtin.AITaskArguments) (any, error) {
	spec := v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: a.Prompt, Priority: a.Priority, Schedule: a.Schedule}
	if a.AgentRef != "" {
		spec.AgentRef = &v1alpha1.NamespacedReference{Name: a.AgentRef}
	}
	switch {
	case a.ProviderRef != "":
		spec.AI = &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: a.ProviderRef}}
	case a.AgentRef == "":
		spec.AI = &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: b.Provider}, Model: b.Model}
	}
	if a.SessionRef != "" {
		spec.SessionRef = &v1alpha1.TaskSessionReference{Name: a.SessionRef, Create: true}
	}
	return b.newTask(ctx, a.Name, a.Namespace, a.Timeout, spec)
}

func (b *Box) createContainerTask(ctx context.Context, a builtin.ContainerTaskArguments) (any, error) {
	spec := v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeContainer, Image: a.Image, Command: a.Command, Args: a.Args, Priority: a.Priority, Schedule: a.Schedule,
		Workspace: workspace(a.Workspace),
	}
	if a.PriorTask != "" {
		spec.PriorTaskRef = &v1alpha1.NamespacedReference{Name: a.PriorTask}
	}
	return b.newTask(ctx, a.Name, a.Namespace, a.Timeout, spec)
}

func (b *Box) createAgentTask(ctx context.Context, a builtin.AgentTaskArguments) (any, error) {
	spec := v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAgent, Prompt: a.Prompt, AgentRef: &v1alpha1.NamespacedReference{Name: a.AgentRef}, Schedule: a.Schedule,
		Workspace: agentWorkspace(a.Workspace),
	}
	if a.MaxTurns != nil {
		spec.AgentRuntime = &v1alpha1.TaskAgentRuntime{MaxTurns: a.MaxTurns}
	}
	return b.newTask(ctx, a.Name, a.Namespace, a.Timeout, spec)
}

// newTask creates a task with what all of them have in common.
func (b *Box) newTask(ctx context.Context, name, namespace, timeout string, spec v1alpha1.TaskSpec) (createdTask, error) {
	if err := b.in(namespace); err != nil {
		return createdTask{}, err
	}
	if timeout != "" {
		d, err := time.ParseDuration(timeout)
		if err != nil || d <= 0 {
			return createdTask{}, tool.InvalidArguments("timeout: %.32q is not a positive duration", timeout).Suggest(`write it like "90s", "20m" or "2h"`)
		}
		spec.Timeout = v1alpha1.DurationOf(d)
	}
	t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: b.taskName(name), Labels: maps.Clone(b.Labels)}, Spec: spec}
	made, err := b.createTask(ctx, t)
	if err != nil {
		return createdTask{}, err
	}
	return createdTask{
		Name: made.Name, Namespace: made.Namespace, Phase: phaseOf(made),
		Message: "the task was created; wait for it with wait_for_task, by this name",
	}, nil
}

// task reads a task as the caller.
func (b *Box) task(ctx context.Context, a builtin.TaskArguments) (*v1alpha1.Task, error) {
	if err := b.in(a.Namespace); err != nil {
		return nil, err
	}
	t, err := b.caller.CoreV1alpha1().Tasks(b.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return nil, Explain(err)
	}
	return t, nil
}

type taskProgress struct {
	Name       string             `json:"name"`
	Namespace  string             `json:"namespace"`
	Phase      v1alpha1.TaskPhase `json:"phase"`
	Message    string             `json:"message,omitempty"`
	Duration   string             `json:"duration,omitempty"`
	Conditions []taskCondition    `json:"conditions,omitempty"`
}

type taskCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (b *Box) checkTask(ctx context.Context, a builtin.TaskArguments) (any, error) {
	t, err := b.task(ctx, a)
	if err != nil {
		return nil, err
	}
	out := taskProgress{Name: t.Name, Namespace: t.Namespace, Phase: phaseOf(t), Message: t.Status.Message}
	if d, known := v1alpha1.Lasted(t.Status.StartTime, t.Status.CompletionTime, t.Status.Phase, b.o.Clock.Now()); known {
		out.Duration = d.String()
	}
	for _, c := range t.Status.Conditions {
		out.Conditions = append(out.Conditions, taskCondition{c.Type, string(c.Status), c.Reason, c.Message})
	}
	return out, nil
}

type taskOutput struct {
	Name   string             `json:"name"`
	Phase  v1alpha1.TaskPhase `json:"phase"`
	Output string             `json:"output"`
}

func (b *Box) fetchOutput(ctx context.Context, a builtin.TaskArguments) (any, error) {
	t, err := b.task(ctx, a)
	if err != nil {
		return nil, err
	}
	if !t.Status.Phase.Terminal() {
		return nil, tool.Errorf(tool.TypeUnavailable, "task %s has not ended: it is %s", t.Name, phaseOf(t)).
			Suggest("wait for it with wait_for_task")
	}
	out := taskOutput{Name: t.Name, Phase: t.Status.Phase}
	result, err := b.output(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	out.Output = beginning(result, maxOutput)
	if out.Output == "" {
		return nil, tool.Errorf(tool.TypeNotFound, "task %s is %s and has no result: %s", t.Name, t.Status.Phase, t.Status.Message)
	}
	return out, nil
}

// output returns the result of a task. A task that failed may have none; its message says why.
func (b *Box) output(ctx context.Context, name string) (string, error) {
	result, err := b.caller.CoreV1alpha1().Tasks(b.Namespace).GetResult(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", Explain(err)
	}
	return result.Result, nil
}

type waited struct {
	Name    string             `json:"name"`
	Phase   v1alpha1.TaskPhase `json:"phase"`
	Message string             `json:"message,omitempty"`
	Elapsed string             `json:"elapsed"`

	ExecutionOutcome   *v1alpha1.TaskExecutionOutcome         `json:"executionOutcome,omitempty"`
	ExecutionWorkspace *v1alpha1.TaskExecutionWorkspaceStatus `json:"executionWorkspace,omitempty"`
}

// waitForTask waits for the end of a task that the caller may read. The watch is the server's own, because a caller who
// may get tasks need not be allowed to watch all of them; nothing but the wake-up comes from it.
func (b *Box) waitForTask(ctx context.Context, a builtin.WaitArguments) (any, error) {
	one := builtin.TaskArguments{Name: a.Name, Namespace: a.Namespace}
	began := b.o.Clock.Now()
	t, err := b.task(ctx, one)
	if err != nil {
		return nil, err
	}
	limit := defaultWait
	if a.Timeout != nil {
		limit = min(v1alpha1.Length(*a.Timeout, time.Second), maxWait)
	}
	limit = min(limit, b.o.CallTimeout-b.o.CallTimeout/20) // ends before the call is ended
	if !t.Status.Phase.Terminal() {
		b.awaitEnd(ctx, t, limit)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if t, err = b.task(ctx, one); err != nil { // the caller's rights may have changed meanwhile
			return nil, err
		}
	}
	return waited{
		Name: t.Name, Phase: phaseOf(t), Message: t.Status.Message,
		Elapsed:          b.o.Clock.Since(began).Round(time.Second).String(),
		ExecutionOutcome: t.Status.ExecutionOutcome, ExecutionWorkspace: t.Status.ExecutionWorkspace,
	}, nil
}

// awaitEnd returns when the task has ended or is gone, or after the limit.
func (b *Box) awaitEnd(ctx context.Context, t *v1alpha1.Task, limit time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer b.o.Clock.AfterFunc(limit, cancel).Stop()
	w, err := b.own.CoreV1alpha1().Tasks(t.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", t.Name).String(), ResourceVersion: t.ResourceVersion,
	})
	if err != nil {
		<-ctx.Done() // the limit is the worst that a failed watch costs
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		now, ok := e.Object.(*v1alpha1.Task)
		if e.Type == watch.Deleted || !ok || now.Status.Phase.Terminal() {
			return
		}
	}
}

type cancelled struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (b *Box) cancelTask(ctx context.Context, a builtin.TaskArguments) (any, error) {
	t, err := b.task(ctx, a)
	if err != nil {
		return nil, err
	}
	if t.Status.Phase.Terminal() {
		return cancelled{t.Name, "the task had ended before: it is " + string(t.Status.Phase)}, nil
	}
	body := &v1alpha1.TaskCancellation{Reason: strings.TrimSpace("cancelled in chat " + b.Session)}
	if _, err := b.caller.CoreV1alpha1().Tasks(b.Namespace).Cancel(ctx, t.Name, body, metav1.CreateOptions{}); err != nil {
		return nil, Explain(err)
	}
	return cancelled{t.Name, "the cancellation was requested"}, nil
}

// beginning returns the first characters of a text, at most limit. If it has more, a mark follows them.
func beginning(s string, limit int) string {
	n := 0
	for at := range s {
		if n == limit {
			return s[:at] + clip.Mark
		}
		n++
	}
	return s
}
