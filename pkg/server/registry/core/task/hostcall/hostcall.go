// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostcall serves the subresource codehost of tasks: it carries out the tools for pull requests and issues. The worker of a task
// does not have the credentials of the task's repository, and must not get them, because it runs what a model says. It asks here, and this
// server makes the call with the credential that the task names.
//
// # Which repository
//
// A call is about the repository of the task, or of a task that it delegated (task_name). A repo_url must name one of the two repositories
// of that task: where its work comes from, and where it is published to; or one that its signed transaction names. All of this is decided
// before a Secret is read. A tool that writes uses spec.workspace.forgeCredentialRef, which is for the repository that is published to; a tool that reads uses the credential
// for reading of its repository, and none if there is none. No credential takes the place of another.
//
// Package hostaccess makes the calls. One tool is no call on a code host: create_pr_monitor makes a task (monitor.go).
package hostcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	restclient "k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

const (
	// MaxBytes is the maximum length of a call as JSON, in bytes.
	MaxBytes = 1 << 20
	// MaxCallID is the maximum length of the id of a call, in bytes.
	MaxCallID = 256
)

// Claim records that a task worked on a pull request.
type Claim func(ctx context.Context, namespace string, l v1alpha1.UsageLinkSpec) error

// Options are what calls need. All fields are required except CheckTool, Claim and Loopback.
type Options struct {
	Access *hostaccess.Access
	Tasks  stored.Tasks
	Agents stored.Agents
	// CheckTool is that of the options of tasks.
	CheckTool func(ctx context.Context, t *v1alpha1.Task, tool string) string
	Claim     Claim
	// Authorizer decides who is a controller.
	Authorizer authorizer.Authorizer
	// Loopback is the configuration of the server's client of itself. Without it no monitors are made.
	Loopback *restclient.Config
}

// Calls serves the subresource.
type Calls struct{ o Options }

// New returns the calls of a server.
func New(o Options) *Calls { return &Calls{o} }

// forPeople are the tools that people may call for a task, whose own run needs none of its rights for that: the server's tools of chats
// call them in their name.
func forPeople(tool string) bool {
	return tool == builtin.ChatCreatePullRequest.Name || tool == builtin.ChatCheckPullRequestCI.Name
}

// Create carries out a call. What a model or a code host did wrong is a failure in the answer; errors are for clients.
func (s *Calls) Create(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	posted, ok := obj.(*v1alpha1.TaskCodeHostCall)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskCodeHostCall, not %T", obj))
	}
	if err := check(posted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	t := p.Object
	if err := s.may(ctx, t, posted.ToolName); err != nil {
		return nil, err
	}
	out := posted.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Name: t.Name, Namespace: t.Namespace}
	out.Result, out.Failure = nil, nil
	var err error
	if out.Result, err = s.answer(ctx, p, posted); err != nil {
		if out.Failure, err = hostaccess.FailureOf(err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// may decides who makes a call, and when: the run of the task while it runs, and people at any time, but with few tools.
func (s *Calls) may(ctx context.Context, t *v1alpha1.Task, tool string) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks/codehost"), t.Name, fmt.Errorf(format, args...))
	}
	if u, ok := request.UserFrom(ctx); ok && !guard.IsWorker(u) {
		if forPeople(tool) {
			return nil
		}
		if ok, err := guard.MayControl(ctx, s.o.Authorizer, t.Namespace); !ok || err != nil {
			return cmp.Or(err, refuse("people may call %s and %s; %.64q is for the run of the task", builtin.ChatCreatePullRequest.Name, builtin.ChatCheckPullRequestCI.Name, tool))
		}
	}
	if phase := t.Status.Phase; phase != v1alpha1.TaskRunning {
		return refuse("the task is %s; calls are made while it is %s", cmp.Or(phase, "not picked up yet"), v1alpha1.TaskRunning)
	}
	return nil
}

// answer returns the result of a call; nil for one that is only tried.
func (s *Calls) answer(ctx context.Context, p stored.Parent, posted *v1alpha1.TaskCodeHostCall) (*apiextensionsv1.JSON, error) {
	if posted.ToolName == builtin.CreatePRMonitor.Name {
		return s.monitor(ctx, p, posted)
	}
	call, target, err := s.prepare(ctx, p.Object, posted)
	if err != nil || p.DryRun {
		return nil, err
	}
	return s.do(ctx, p.Object, target, call)
}

// check returns what is wrong with a call that no worker sends.
func check(c *v1alpha1.TaskCodeHostCall) error {
	switch {
	case c.CallID == "" || len(c.CallID) > MaxCallID:
		return fmt.Errorf("callId: must have from 1 to %d bytes", MaxCallID)
	case c.HeadSHA != "" && !v1alpha1.IsLowerHex(c.HeadSHA, 40) && !v1alpha1.IsLowerHex(c.HeadSHA, 64):
		return errors.New("headSHA: must be the full name of a commit")
	}
	return nil
}

// prepare decides everything that needs neither a credential nor the code host.
func (s *Calls) prepare(ctx context.Context, t *v1alpha1.Task, c *v1alpha1.TaskCodeHostCall) (operation.Call, *target, error) {
	arguments, err := s.arguments(ctx, t, c)
	if err != nil {
		return operation.Call{}, nil, err
	}
	tool, ok := operation.Find(c.ToolName)
	if !ok {
		return operation.Call{}, nil, failure(v1alpha1.CodeHostInvalidArguments, "toolName: there is no tool %.64q", c.ToolName)
	}
	to, err := s.target(ctx, t, c.ToolName, tool, arguments)
	if err != nil {
		return operation.Call{}, nil, err
	}
	key, err := s.key(t, c, arguments)
	if err != nil {
		return operation.Call{}, nil, err
	}
	return operation.Call{Tool: c.ToolName, Arguments: arguments, Key: key, HeadSHA: c.HeadSHA}, to, nil
}

// arguments returns the arguments of a call that fit the tool, which the task may call.
func (s *Calls) arguments(ctx context.Context, t *v1alpha1.Task, c *v1alpha1.TaskCodeHostCall) (json.RawMessage, error) {
	arguments, err := schemas().Check(c.ToolName, string(c.Arguments.Raw))
	if err != nil {
		return nil, invalid(err)
	}
	if s.o.CheckTool != nil {
		if why := s.o.CheckTool(ctx, t, c.ToolName); why != "" {
			return nil, failure(v1alpha1.CodeHostDenied, "%s", why)
		}
	}
	return arguments, nil
}

// key returns what identifies a call of a run.
func (s *Calls) key(t *v1alpha1.Task, c *v1alpha1.TaskCodeHostCall, arguments json.RawMessage) (string, error) {
	return s.o.Access.CallKey(t.UID, t.Status.JobUID, t.Status.Attempts, c.CallID, c.ToolName, arguments)
}

// do carries out a call of a task on its target.
func (s *Calls) do(ctx context.Context, own *v1alpha1.Task, to *target, c operation.Call) (*apiextensionsv1.JSON, error) {
	answer, err := s.o.Access.Do(ctx, &to.Target, c)
	if err != nil {
		return nil, err
	}
	if err := s.keep(ctx, to.task, answer.Receipt); err != nil {
		return nil, err
	}
	if err := s.link(context.WithoutCancel(ctx), own, to.task, &answer); err != nil {
		return nil, err
	}
	return &apiextensionsv1.JSON{Raw: answer.Result}, nil
}

// keep stores the receipt of a pull request in the delivery of the task whose branch it is of. If that fails, the worker repeats its call,
// which finds the pull request.
func (s *Calls) keep(ctx context.Context, t *v1alpha1.Task, r *v1alpha1.PullRequestReceipt) error {
	if r == nil {
		return nil
	}
	_, err := s.o.Tasks.UpdateStored(ctx, t.Name, func(now *v1alpha1.Task) error {
		if now.UID != t.UID || now.Status.Delivery == nil {
			return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task is not the one whose branch was published"))
		}
		now.Status.Delivery.PRReceipt = r
		return nil
	})
	return err
}

func failure(reason v1alpha1.TaskCodeHostFailureReason, format string, a ...any) *operation.Error {
	return &operation.Error{Reason: reason, Message: fmt.Sprintf(format, a...)}
}

// invalid returns the failure of arguments that do not satisfy the schema.
func invalid(err error) *operation.Error {
	return failure(v1alpha1.CodeHostInvalidArguments, "%v", err)
}
