// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package asking

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// Policies asks the server's policies about a call of the run, with arguments. The server leaves secrets of the run out of the
// verdict, because it records it; what it does not recognise is removed here, before the model reads it. While the server is away,
// Policies waits, like everything else that must not be skipped. A call that the server cannot read, or over which it fails each
// time, is not made: that is a *tool.Error, which costs the call and not the run.
func Policies(ctx context.Context, r *runner.Run, c v1alpha1.ToolCallSpec) (v1alpha1.ToolCallStatus, error) {
	c.TaskName, c.Sensitive = r.Task.Name, r.SecretsIn(c.Arguments.Raw)
	call := &v1alpha1.ToolCall{Spec: c}
	var judged *v1alpha1.ToolCall
	err := client.Repeat(ctx, r.Clock, func(ctx context.Context) (err error) {
		judged, err = r.API.CoreV1alpha1().ToolCalls(r.Task.Namespace).Create(ctx, call, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return v1alpha1.ToolCallStatus{}, unjudged(ctx, c.ToolName, err, r.Scrub)
	}
	for i := range judged.Status.Findings {
		f := &judged.Status.Findings[i]
		f.Message = redact.Fragments(r.Scrub(f.Message), c.Sensitive)
	}
	return judged.Status, nil
}

// unjudged returns the error of a call over which the server gave no verdict.
func unjudged(ctx context.Context, name string, err error, scrub func(string) string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case unreadable(err):
		return tool.InvalidArguments("policies cannot judge the call, so it was not made: %s", scrub(err.Error())).
			Suggest("correct or shorten the arguments")
	case client.Temporary(err):
		return tool.Errorf(tool.TypeUnavailable, "the server could not say whether policies allow the call, so it was not made").
			Suggest("continue without it, or call it with other arguments")
	}
	return fmt.Errorf("policies on a call of %s: %s", name, scrub(err.Error()))
}

// unreadable reports whether the server refused what a call consists of.
func unreadable(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}
