// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connector calls tools of ConnectorProviders. The server makes the requests, with the account of the person who asked for the task:
// no run gets a token. A tool that writes is called with the approval of a person. Before one is asked, the server reserves a ToolEffect for
// the call (Reserve), and for each approval it makes at most one request, however often a run repeats the call.
package connector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// executing is how long to wait before the server is asked again about a request that is still being executed. That ends: the server gives
// it the time that the tool may take.
const executing = time.Second

// maxCallID is the maximum length of the id of a call, in bytes.
const maxCallID = 256

// New makes a tool of a provider.
func New(t *v1alpha1.ConnectorTool, g toolkit.Given) (tool.Tool, error) {
	if g.API == nil || g.Task == nil {
		return nil, errors.New("the run has no task")
	}
	return &serverTool{definition: connector.Definition(t), writes: t.Class == v1alpha1.ConnectorToolWrite, api: g.API, task: g.Task, clock: g.Clock}, nil
}

// serverTool is a tool whose calls the server carries out.
type serverTool struct {
	definition tool.Definition
	writes     bool
	api        *client.API
	task       *v1alpha1.Task
	clock      clock.Clock
}

var (
	_ tool.Tool     = (*serverTool)(nil)
	_ tool.Reserver = (*serverTool)(nil)
)

// Definition describes the tool.
func (t *serverTool) Definition() tool.Definition { return t.definition }

// Reserve keeps the effect of a call for which an approval is asked.
func (t *serverTool) Reserve(ctx context.Context, arguments json.RawMessage) (string, error) {
	if !t.writes {
		return "", nil
	}
	answer, err := t.send(ctx, arguments, "")
	switch {
	case err != nil:
		return "", err
	case answer.Failure != nil:
		return "", Explain(answer.Failure)
	case answer.Effect == "":
		return "", tool.Errorf(tool.TypeUnavailable, "the platform's server has kept no effect for the call of %s", t.definition.Name)
	}
	return answer.Effect, nil
}

// Call carries out a call.
func (t *serverTool) Call(ctx context.Context, arguments json.RawMessage) (any, error) {
	answer, err := t.send(ctx, arguments, tool.ApprovalOf(ctx))
	switch {
	case err != nil:
		return nil, err
	case answer.Failure != nil:
		return nil, Explain(answer.Failure)
	case answer.Result == nil || len(answer.Result.Raw) == 0:
		return nil, t.unanswered("the platform's server has answered without a result")
	}
	return json.RawMessage(answer.Result.Raw), nil
}

// send sends a call for as long as a retry may succeed. The server recognises a repeated request of a call that writes by its approval.
func (t *serverTool) send(ctx context.Context, arguments json.RawMessage, approval string) (*v1alpha1.TaskConnectorCall, error) {
	call := &v1alpha1.TaskConnectorCall{ToolName: t.definition.Name, CallID: callID(ctx), Arguments: &apiextensionsv1.JSON{Raw: arguments}, ApprovalID: approval}
	var answer *v1alpha1.TaskConnectorCall
	err := client.Repeat(ctx, t.clock, func(ctx context.Context) (err error) {
		for {
			answer, err = t.api.CoreV1alpha1().Tasks(t.task.Namespace).CallConnector(ctx, t.task.Name, call)
			if approval == "" || !apierrors.IsConflict(err) || !client.Sleep(ctx, t.clock, executing) {
				return err
			}
		}
	})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &status) && status.Status().Code == http.StatusBadGateway:
		return nil, t.unanswered(status.Status().Message)
	case approval != "" && !errors.As(err, &status):
		return nil, t.unanswered("the platform's server has not answered")
	}
	return nil, toolkit.Explain(ctx, err)
}

// unanswered returns the error of a call that has no answer. If the call writes something, it may have been carried out.
func (t *serverTool) unanswered(why string) *tool.Error {
	if t.writes {
		return tool.OutcomeUnknown(t.definition.Name, why)
	}
	return tool.Errorf(tool.TypeUnavailable, "%s", why)
}

// callID returns the id that the model gave to a call. One that is too long, because a gateway put what it has to remember into it, is
// replaced by its digest.
func callID(ctx context.Context) string {
	id := tool.CallID(ctx)
	if len(id) > maxCallID {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return id
}
