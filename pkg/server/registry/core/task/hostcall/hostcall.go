// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostcall serves the subresource codehost of tasks: it carries out the tools for pull requests and issues. The worker of a task
// does not have the credentials of the task's repository, and must not get them, because it runs what a model says. It asks here, and this
// server makes the call with the credential that the task names.
//
// # Which repository
//
// A call is about the repository of the task, or of a task that it delegated (task_name). A repo_url must name one of the two repositories
// of that task: where its work comes from, and where it is published to. All of this is decided before a Secret is read. A tool that
// writes uses spec.workspace.forgeCredentialRef, which is for the repository that is published to; a tool that reads uses the credential
// for reading of its repository, and none if there is none. No credential takes the place of another.
//
// Package hostaccess makes the calls.
package hostcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/server/hostaccess"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

const (
	// MaxBytes is the maximum length of a call as JSON, in bytes.
	MaxBytes = 1 << 20
	// MaxCallID is the maximum length of the id of a call, in bytes.
	MaxCallID = 256
)

// Calls serves the subresource.
type Calls struct {
	tasks     stored.Tasks
	checkTool func(ctx context.Context, t *v1alpha1.Task, tool string) string
	access    *hostaccess.Access
}

// New returns the calls of a server. checkTool is that of the options of tasks.
func New(access *hostaccess.Access, tasks stored.Tasks, checkTool func(context.Context, *v1alpha1.Task, string) string) *Calls {
	return &Calls{tasks: tasks, checkTool: checkTool, access: access}
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
	if phase := t.Status.Phase; phase != v1alpha1.TaskRunning {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks/codehost"), t.Name, fmt.Errorf("the task is %s; calls are made while it is %s", cmp.Or(phase, "not picked up yet"), v1alpha1.TaskRunning))
	}
	out := posted.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Name: t.Name, Namespace: t.Namespace}
	out.Result, out.Failure = nil, nil
	call, target, err := s.prepare(ctx, t, posted)
	if err == nil && !p.DryRun {
		out.Result, err = s.do(ctx, target, call)
	}
	if out.Failure, err = hostaccess.FailureOf(err); err != nil {
		return nil, err
	}
	return out, nil
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
	arguments, err := schemas().Check(c.ToolName, string(c.Arguments.Raw))
	if err != nil {
		return operation.Call{}, nil, invalid(err)
	}
	tool, ok := operation.Find(c.ToolName)
	if !ok {
		return operation.Call{}, nil, failure(v1alpha1.CodeHostInvalidArguments, "toolName: there is no tool %.64q", c.ToolName)
	}
	if s.checkTool != nil {
		if why := s.checkTool(ctx, t, c.ToolName); why != "" {
			return operation.Call{}, nil, failure(v1alpha1.CodeHostDenied, "%s", why)
		}
	}
	to, err := s.target(ctx, t, c.ToolName, tool, arguments)
	if err != nil {
		return operation.Call{}, nil, err
	}
	key, err := s.access.CallKey(t.UID, t.Status.JobUID, t.Status.Attempts, c.CallID, c.ToolName, arguments)
	if err != nil {
		return operation.Call{}, nil, err
	}
	return operation.Call{Tool: c.ToolName, Arguments: arguments, Key: key, HeadSHA: c.HeadSHA}, to, nil
}

// do carries out a call on its target.
func (s *Calls) do(ctx context.Context, to *target, c operation.Call) (*apiextensionsv1.JSON, error) {
	answer, err := s.access.Do(ctx, &to.Target, c)
	if err != nil {
		return nil, err
	}
	if err := s.keep(ctx, to.task, answer.Receipt); err != nil {
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
	_, err := s.tasks.UpdateStored(ctx, t.Name, func(now *v1alpha1.Task) error {
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
