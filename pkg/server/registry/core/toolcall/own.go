// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"context"
	"encoding/json"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
)

// Judge puts calls that the server itself makes for a caller to the policies that judge the calls of runs. Its zero value
// belongs in Options.
type Judge struct{ judge *judge }

// Call judges a call in a namespace. Policies see the caller as the user of the request and as the one who created the task;
// the task has no name, UID and type, because there is none. The arguments satisfy the schema of the tool. Nothing is
// recorded. The error is an API error, and says that nobody could decide.
func (j *Judge) Call(ctx context.Context, caller user.Info, namespace, tool string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error) {
	if j.judge == nil {
		return v1alpha1.ToolCallStatus{}, apierrors.NewInternalError(errors.New("calls of tools cannot be judged yet"))
	}
	ctx = request.WithUser(request.WithNamespace(ctx, namespace), caller)
	c := &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{ToolName: tool, Arguments: &apiextensionsv1.JSON{Raw: arguments}}}
	c.Namespace = namespace
	if err := j.judge.complete(ctx, v1alpha1.ToolCallTask{CreatedBy: caller.GetName()}, c); err != nil {
		return v1alpha1.ToolCallStatus{}, err
	}
	findings, err := j.judge.findings(ctx, namespace, c)
	if err != nil {
		return v1alpha1.ToolCallStatus{}, err
	}
	for i := range findings {
		message, _ := redact.Text(findings[i].Message)
		findings[i].Message = cut(message)
	}
	return v1alpha1.ToolCallStatus{Verdict: verdictOf(findings), Findings: findings}, nil
}
