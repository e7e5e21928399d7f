// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// once sends a call, and returns what the model reads of it.
func (t *serverTool) once(ctx context.Context, c *v1alpha1.TaskCodeHostCall) (json.RawMessage, error) {
	answer, err := t.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.resultOf(answer)
}

// send sends a call for as long as a retry may succeed. The server recognises a repeated request by the id of the call.
func (t *serverTool) send(ctx context.Context, c *v1alpha1.TaskCodeHostCall) (*v1alpha1.TaskCodeHostCall, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var answer v1alpha1.TaskCodeHostCall
	lost := false
	err := client.Repeat(ctx, t.clock, func(ctx context.Context) error {
		answer = v1alpha1.TaskCodeHostCall{}
		err := t.api.CoreV1alpha1().RESTClient().Post().Namespace(t.task.Namespace).Resource("tasks").Name(t.task.Name).
			SubResource("codehost").Body(c).Do(ctx).Into(&answer)
		lost = lost || unanswered(err)
		return err
	})
	switch {
	case err == nil:
		return &answer, nil
	case lost && t.writes():
		return nil, t.without("the platform's server has not answered")
	default:
		return nil, toolkit.Explain(ctx, err)
	}
}

func (t *serverTool) writes() bool { return t.of.Effects.Has(builtin.Writes) }

// unanswered reports whether a request that failed may have been carried out.
func unanswered(err error) bool {
	if err == nil || utilnet.IsConnectionRefused(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusRequestTimeout
}

// resultOf returns the result of an answered call, as the server wrote it.
func (t *serverTool) resultOf(answer *v1alpha1.TaskCodeHostCall) (json.RawMessage, error) {
	switch {
	case answer.Failure != nil:
		return nil, Explain(answer.Failure)
	case answer.Result != nil && len(answer.Result.Raw) > 0:
		return answer.Result.Raw, nil
	default:
		return nil, t.without("the platform's server has answered without a result")
	}
}

// without returns the error of a call that has no answer. If the call writes something, it may have been carried out.
func (t *serverTool) without(why string) *tool.Error {
	if t.writes() {
		return tool.OutcomeUnknown(t.of.Name, why)
	}
	return tool.Errorf(tool.TypeUnavailable, "%s", why)
}

// types has the type of error for each kind of failure.
var types = map[v1alpha1.TaskCodeHostFailureReason]tool.ErrorType{
	v1alpha1.CodeHostInvalidArguments: tool.TypeInvalidArguments,
	v1alpha1.CodeHostDenied:           tool.TypePermissionDenied,
	v1alpha1.CodeHostNotFound:         tool.TypeNotFound,
	v1alpha1.CodeHostRefused:          tool.TypePermissionDenied,
	v1alpha1.CodeHostRateLimited:      tool.TypeUnavailable,
	v1alpha1.CodeHostUnavailable:      tool.TypeUnavailable,
	v1alpha1.CodeHostOutcomeUnknown:   tool.TypeOutcomeUnknown,
}

// Explain returns a failure for the model.
func Explain(f *v1alpha1.TaskCodeHostFailure) *tool.Error {
	of, ok := types[f.Reason]
	if !ok {
		of = tool.TypeInternal
	}
	e := tool.Errorf(of, "%s", f.Message)
	switch {
	case f.Reason == v1alpha1.CodeHostRefused:
		return e.Suggest("look at its present state before you decide what to do; do not repeat the call if nothing has changed")
	case passing(f) && f.RetryAfterSeconds > 0:
		return e.Suggest("go on without it, or call it again after %d seconds", f.RetryAfterSeconds)
	}
	return e
}

// passing reports whether a call that failed has changed nothing and may succeed later.
func passing(f *v1alpha1.TaskCodeHostFailure) bool {
	return f.Reason == v1alpha1.CodeHostRateLimited || f.Reason == v1alpha1.CodeHostUnavailable
}

// retryAfter returns how long the code host answers no requests; 0 if it did not say.
func retryAfter(f *v1alpha1.TaskCodeHostFailure) time.Duration {
	const most = int64(maxWait / time.Second)
	return time.Duration(min(max(f.RetryAfterSeconds, 0), most+1)) * time.Second
}
