// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Judge puts calls of tools to the policies. All fields are required.
type Judge struct {
	// Tool reads a Tool of the request's namespace.
	Tool func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	// Config returns what the server gives its resources.
	Config func() (resource.Config, error)
}

func (j Judge) now() (*judge, error) {
	c, err := j.Config()
	if err != nil {
		return nil, err
	}
	return &judge{tool: j.Tool, scheme: c.Scheme, admission: c.Admission, policies: c.Policies}, nil
}

// Call judges a call in a namespace that the server itself makes for a caller. Policies see the caller as the user of the request and as the one who created the task;
// the task has no name, UID and type, because there is none. The arguments satisfy the schema of the tool. Nothing is
// recorded. The error is an API error, and says that nobody could decide.
func (j Judge) Call(ctx context.Context, caller user.Info, namespace, tool string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error) {
	by, err := j.now()
	if err != nil {
		return v1alpha1.ToolCallStatus{}, err
	}
	ctx = request.WithUser(request.WithNamespace(ctx, namespace), caller)
	c := &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{ToolName: tool, Arguments: &apiextensionsv1.JSON{Raw: arguments}}}
	c.Namespace = namespace
	if err := by.complete(ctx, v1alpha1.ToolCallTask{CreatedBy: caller.GetName()}, c); err != nil {
		return v1alpha1.ToolCallStatus{}, err
	}
	findings, err := by.findings(ctx, namespace, c)
	if err != nil {
		return v1alpha1.ToolCallStatus{}, err
	}
	for i := range findings {
		message, _ := redact.Text(findings[i].Message)
		findings[i].Message = cut(message)
	}
	return v1alpha1.ToolCallStatus{Verdict: verdictOf(findings), Findings: findings}, nil
}
