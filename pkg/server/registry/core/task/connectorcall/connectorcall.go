// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connectorcall serves the subresource connectortool of tasks: it carries out the tools of ConnectorProviders with the account that
// the person who asked for the task has linked. The worker of a task has no token of that account, because it runs what a model says. It
// asks here.
//
// # What must hold
//
// The caller is the run of the task, and the task runs. Who asked for the task is sealed. The controller has bound the tool to the account
// when it started the run (status.connectionBindings), and nothing of that has changed: the definition of the tool, the connection, and the
// consent that is relied on. The arguments satisfy the tool's schema. The connection can be used. Nothing takes the place of the account: no
// Secret of the task, and nobody else's connection. All of this is decided again for every call, before a token is in hand.
//
// # Tools that write
//
// A call of class write is made once for the approval of a person. Without an approval it only reserves its ToolEffect (package tooleffect),
// which names the tool, how the credential is sent, the connection and the exact arguments, each by a digest or a version. The approval names
// the effect. With it the effect is claimed, which happens once, and then the request is sent. A repeated call gets the kept answer. If the
// answer is lost, the outcome stays unknown and the approval stays spent.
package connectorcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/connection"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/tooleffect"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/tool"
)

// MaxBytes is the maximum length of a call as JSON, in bytes.
const MaxBytes = 1 << 20

// maxRead is how long a call that changes nothing may take, whatever its tool says: it ends before its own request does. One that writes goes
// on without its request, and the worker asks again.
const maxRead = 50 * time.Second

// Options are what calls need. All fields are required except CheckTool and Transport.
type Options struct {
	// Accounts gives out tokens.
	Accounts *connection.Hub
	// Connections and Providers are what is stored of them.
	Connections *resource.Stored[*v1alpha1.Connection]
	Providers   *resource.Stored[*v1alpha1.ConnectorProvider]
	Effects     *tooleffect.Effects
	// Log has the approvals of tasks.
	Log *eventlog.Log
	// Verified reports whether the requester of a task is sealed.
	Verified func(t *v1alpha1.Task) bool
	// CheckTool is that of the options of tasks.
	CheckTool func(ctx context.Context, t *v1alpha1.Task, tool string) string
	// Transport speaks with providers. Default: one that reaches public addresses only.
	Transport http.RoundTripper
	Clock     clock.PassiveClock
}

// Calls serves the subresource.
type Calls struct{ o Options }

// New returns the calls of a server.
func New(o Options) *Calls { return &Calls{o} }

// Create carries out a call, or reserves its effect. What a model, the person or a provider has to do something about is a failure in the
// answer; errors are for clients.
func (s *Calls) Create(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	posted, ok := obj.(*v1alpha1.TaskConnectorCall)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskConnectorCall, not %T", obj))
	}
	t := p.Object
	if err := check(posted); err != nil {
		return nil, err
	}
	if err := may(ctx, t); err != nil {
		return nil, err
	}
	out := posted.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Name: t.Name, Namespace: t.Namespace}
	out.Effect, out.Result, out.Replayed, out.Failure = "", nil, false, nil
	made, err := s.made(ctx, t, posted, out)
	if !made && err == nil {
		var c *call
		if c, err = s.prepare(ctx, t, posted); err == nil {
			err = s.carryOut(ctx, c, p.DryRun, out)
		}
	}
	if f, is := errors.AsType[*failure](err); is {
		out.Failure, err = &f.TaskConnectorFailure, nil
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// may decides who makes a call, and when: the run of the task while it runs.
func may(ctx context.Context, t *v1alpha1.Task) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks/connectortool"), t.Name, fmt.Errorf(format, args...))
	}
	if u, ok := request.UserFrom(ctx); !ok || !guard.IsWorker(u) {
		return refuse("only the run of the task makes calls with the account of the person who asked for it")
	}
	if t.Status.Phase != v1alpha1.TaskRunning || t.DeletionTimestamp != nil {
		return refuse("calls are made while the task is %s", v1alpha1.TaskRunning)
	}
	return nil
}

// check refuses what no worker sends.
func check(c *v1alpha1.TaskConnectorCall) error {
	switch {
	case c.ToolName == "":
		return apierrors.NewBadRequest("toolName: is required")
	case c.ApprovalID != "" && !v1alpha1.IsLowerHex(c.ApprovalID, 64):
		return apierrors.NewBadRequest("approvalId: must be 64 lower-case hexadecimal digits")
	}
	return nil
}

// call is a call that may be made.
type call struct {
	task       *v1alpha1.Task
	posted     *v1alpha1.TaskConnectorCall
	provider   *v1alpha1.ConnectorProvider
	tool       *v1alpha1.ConnectorTool
	connection *v1alpha1.Connection
	// arguments satisfy the schema of the tool.
	arguments json.RawMessage
}

func (c *call) writes() bool { return c.tool.Class == v1alpha1.ConnectorToolWrite }

// prepare decides everything that needs no token.
func (s *Calls) prepare(ctx context.Context, t *v1alpha1.Task, posted *v1alpha1.TaskConnectorCall) (*call, error) {
	name := posted.ToolName
	i := slices.IndexFunc(t.Status.ConnectionBindings, func(b v1alpha1.TaskConnectionBinding) bool { return b.Tool == name })
	if i < 0 {
		return nil, fails(v1alpha1.ConnectorDenied, "toolName: %.64q is no tool of a ConnectorProvider that this run has", name)
	}
	b := &t.Status.ConnectionBindings[i]
	if t.Spec.RequestedBy == nil || !s.o.Verified(t) {
		return nil, fails(v1alpha1.ConnectorDenied, "it is not proved who asked for task %s, so nobody's account can be used", t.Name)
	}
	if s.o.CheckTool != nil {
		if why := s.o.CheckTool(ctx, t, name); why != "" {
			return nil, fails(v1alpha1.ConnectorDenied, "%s", why)
		}
	}
	c := &call{task: t, posted: posted}
	if err := s.find(ctx, c, b); err != nil {
		return nil, err
	}
	var err error
	if c.arguments, err = arguments(c.tool, posted); err != nil {
		return nil, err
	}
	return c, s.own(ctx, c, b)
}

// carryOut makes a call, or reserves its effect.
func (s *Calls) carryOut(ctx context.Context, c *call, dryRun bool, out *v1alpha1.TaskConnectorCall) error {
	switch {
	case c.writes() && c.posted.ApprovalID == "":
		return s.reserve(ctx, c, dryRun, out)
	case dryRun:
		return nil
	case c.writes():
		return s.spend(ctx, c, out)
	case c.posted.ApprovalID != "":
		return s.covered(ctx, c, out)
	}
	return s.read(ctx, c, out)
}

// covered makes a call of a tool that only reads, and that the task's Agent has gated.
func (s *Calls) covered(ctx context.Context, c *call, out *v1alpha1.TaskConnectorCall) error {
	a, err := s.approved(ctx, c)
	if err != nil {
		return err
	}
	return s.read(tool.WithApproval(ctx, a.Name), c, out)
}

// read makes a call that changes nothing.
func (s *Calls) read(ctx context.Context, c *call, out *v1alpha1.TaskConnectorCall) error {
	ctx, cancel := context.WithTimeout(ctx, maxRead)
	defer cancel()
	token, err := s.token(ctx, c)
	if err != nil {
		return err
	}
	answer := s.send(ctx, c, token)
	if answer.failed != nil {
		return answer.failed
	}
	out.Result = &apiextensionsv1.JSON{Raw: answer.result}
	return nil
}

// token returns a token of the account.
func (s *Calls) token(ctx context.Context, c *call) (connection.Token, error) {
	token, err := s.o.Accounts.Use(ctx, c.connection)
	if _, is := errors.AsType[*connector.UnusableError](err); is {
		return token, unusable(c, err)
	}
	if later, is := errors.AsType[*connection.RefreshError](err); is { // for the model: the worker would only wait and ask again
		f := fails(v1alpha1.ConnectorUnavailable, "the account of %s cannot be used now: %s", display(c.provider), later.Message)
		f.RetryAfterSeconds = int64(later.RetryAfter / time.Second)
		return token, f
	}
	if apierrors.IsServiceUnavailable(err) { // the key is missing
		return token, fails(v1alpha1.ConnectorUnavailable, "the account of %s cannot be used now: %v", display(c.provider), err)
	}
	if err == nil && token.Sequence != c.connection.Status.GrantSequence {
		return token, consent(c, "the account of %s was connected anew in this moment; run the task again", display(c.provider))
	}
	return token, err
}
