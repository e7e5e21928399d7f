// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coordination provides the tools with which an agent delegates work: delegate_task and create_container_task
// create tasks below the run's own task, wait_for_tasks waits for them, and cancel_task cancels one of them with
// everything that it delegated; detach_task lets one go on without the run's task, and is only there for agents that name it.
// run_validation is for reviewers: it runs what their monitor says, as a task of its own. With
// send_message and check_messages the tasks of a family talk to each other, and with reply_in_conversation a task that answers people in a chat
// system says something to them before it has ended. create_agent and delete_agent are for agents that only
// these tasks need.
//
// The server decides what a child may be. A refusal is shown to the model with the server's reason. A create that is
// repeated because its answer was lost does not make a second child: the name of a child is derived from the run and
// the number of the call.
//
// What the worker counts, such as how often a child was tried again (retry.go), informs the model and decides nothing.
package coordination

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// The built-in tools.
var (
	DelegateBuiltin  = toolkit.Tool{Of: builtin.DelegateTask, New: of(builtin.DelegateTask, func(f *family) tool.Tool { return delegateTool{f} })}
	WaitBuiltin      = toolkit.Tool{Of: builtin.WaitForTasks, New: of(builtin.WaitForTasks, func(f *family) tool.Tool { return waitTool{f} })}
	ContainerBuiltin = toolkit.Tool{Of: builtin.CreateContainerTask, New: of(builtin.CreateContainerTask, func(f *family) tool.Tool { return containerTool{f} })}
	CancelBuiltin    = toolkit.Tool{Of: builtin.CancelTask, New: of(builtin.CancelTask, func(f *family) tool.Tool { return cancelTool{f} })}
	DetachBuiltin    = toolkit.Tool{Of: builtin.DetachTask, New: of(builtin.DetachTask, func(f *family) tool.Tool { return detachTool{f} })}
	ValidateBuiltin  = toolkit.Tool{Of: builtin.RunValidation, New: of(builtin.RunValidation, func(f *family) tool.Tool { return validateTool{f} })}
	SendBuiltin      = toolkit.Tool{Of: builtin.SendMessage, New: of(builtin.SendMessage, func(f *family) tool.Tool { return sendTool{f} })}
	CheckBuiltin     = toolkit.Tool{Of: builtin.CheckMessages, New: of(builtin.CheckMessages, func(f *family) tool.Tool { return checkTool{f, new(sync.Mutex)} })}
	ReplyBuiltin     = toolkit.Tool{Of: builtin.ReplyInConversation, New: of(builtin.ReplyInConversation, func(f *family) tool.Tool { return replyTool{f} })}

	CreateAgentBuiltin = toolkit.Tool{Of: builtin.CreateAgent, New: of(builtin.CreateAgent, func(f *family) tool.Tool { return createAgentTool{f} })}
	DeleteAgentBuiltin = toolkit.Tool{Of: builtin.DeleteAgent, New: of(builtin.DeleteAgent, func(f *family) tool.Tool { return deleteAgentTool{f} })}
)

// of returns the New of a tool.
func of(t *builtin.Tool, from func(*family) tool.Tool) func(toolkit.Given) (tool.Tool, error) {
	return func(g toolkit.Given) (tool.Tool, error) {
		if g.API == nil || g.Task == nil {
			return nil, errors.New("the run has no task")
		}
		return from(&family{api: g.API, task: g.Task, attempt: g.Attempt, clock: g.Clock, kind: t.Name, childToken: g.ChildToken}), nil
	}
}

// family is the run's own task with the tasks below it.
type family struct {
	api     *client.API
	task    *v1alpha1.Task
	attempt int
	clock   clock.Clock
	// kind tells the calls of different tools apart.
	kind string
	// childToken returns a transaction token for a child; nil if children get none.
	childToken func(context.Context) (string, error)
	// calls counts the children that the tool has created, or the messages that it has sent, in this run.
	calls atomic.Int64
}

// maxChildName leaves room in the 253 bytes of an object name for the names of events.
const maxChildName = 242

// childName returns the name of the next child.
func (f *family) childName() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d/%s/%d", f.task.UID, f.task.Status.JobUID, f.attempt, f.kind, f.calls.Add(1)))
	return v1alpha1.ShortName(f.task.Name, "-child-"+hex.EncodeToString(sum[:5]), maxChildName)
}

// own returns an error if a namespace is given that is not the task's own.
func (f *family) own(argument, namespace string) error {
	if namespace == "" || namespace == f.task.Namespace {
		return nil
	}
	return tool.InvalidArguments("%s: a child lives in the namespace of its parent, %s: an owner reference cannot name a task of another namespace", argument, f.task.Namespace).
		Suggest("leave %s out", argument)
}

// timeoutOf parses a duration of an argument.
func timeoutOf(argument, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, tool.InvalidArguments("%s: %.32q is not a positive duration", argument, s).Suggest(`write it like "90s", "20m" or "2h"`)
	}
	return d, nil
}

// complete adds to a child what both tools set in the same way.
func (f *family) complete(child *v1alpha1.Task, priority *int32, timeout string) error {
	child.Name, child.Namespace = f.childName(), f.task.Namespace
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.task, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
	child.Spec.Priority = f.task.Spec.Priority
	if priority != nil {
		child.Spec.Priority = priority
	}
	if timeout != "" {
		d, err := timeoutOf("timeout", timeout)
		if err != nil {
			return err
		}
		child.Spec.Timeout = v1alpha1.DurationOf(d)
	}
	return nil
}

// Pauses between looks at what others do.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 5 * time.Second
)

// persist repeats a request for as long as a retry may succeed.
func (f *family) persist(ctx context.Context, do func() error) error {
	return client.Repeat(ctx, f.clock, func(context.Context) error { return do() })
}

// create creates a child, with a transaction token of its own if the run has one. A child of that name that exists already
// is the one that an earlier try created.
func (f *family) create(ctx context.Context, child *v1alpha1.Task) (*v1alpha1.Task, error) {
	token, err := f.tokenFor(ctx, child)
	if err != nil {
		return nil, err
	}
	made, err := f.store(ctx, child)
	if err != nil || token == "" {
		return made, err
	}
	return made, f.handOver(ctx, made, token)
}

func (f *family) store(ctx context.Context, child *v1alpha1.Task) (*v1alpha1.Task, error) {
	tasks := f.api.CoreV1alpha1().Tasks(f.task.Namespace)
	var made *v1alpha1.Task
	err := f.persist(ctx, func() (err error) {
		made, err = tasks.Create(ctx, child, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		made, err = tasks.Get(ctx, child.Name, metav1.GetOptions{})
		if err == nil && !f.isChild(made) {
			err = apierrors.NewAlreadyExists(v1alpha1.Resource("tasks"), child.Name)
		}
	}
	if err != nil {
		return nil, toolkit.Explain(ctx, err)
	}
	return made, nil
}

// isChild reports whether a task was delegated by the run's task.
func (f *family) isChild(t *v1alpha1.Task) bool {
	d := t.Status.Delegation
	return d != nil && d.ParentUID == f.task.UID
}

// childNamed returns a task that the run's task delegated.
func (f *family) childNamed(ctx context.Context, name string) (*v1alpha1.Task, error) {
	child, err := f.api.CoreV1alpha1().Tasks(f.task.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && !f.isChild(child), apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, tool.Errorf(tool.TypeNotFound, "you have not created a task %.253q", name)
	case err != nil:
		return nil, toolkit.Explain(ctx, err)
	}
	return child, nil
}

// decode reads the arguments of a call, which fit the tool's schema.
func decode[A any](raw json.RawMessage) (a A, err error) {
	if json.Unmarshal(raw, &a) != nil {
		return a, tool.InvalidArguments("the arguments are not an object of the tool's parameters")
	}
	return a, nil
}

// notBuilt refuses an argument for something that this version does not have.
func notBuilt(argument, why string) error {
	return tool.InvalidArguments("%s: %s", argument, why).Suggest("call the tool again without %s", argument)
}
