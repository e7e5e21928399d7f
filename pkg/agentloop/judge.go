// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// judge asks the policies about a call. A call that the tool would refuse anyway is not put to them.
func (l *loop) judge(ctx context.Context, c llm.ToolCall) (v1alpha1.ToolCallStatus, error) {
	if l.c.Judge == nil {
		return v1alpha1.ToolCallStatus{}, nil
	}
	raw, err := l.c.Tools.Check(c.Name, c.Arguments)
	if err != nil {
		return v1alpha1.ToolCallStatus{}, nil //nolint:nilerr // the call fails with this error, and is recorded
	}
	return l.c.Judge(ctx, c.ID, c.Name, raw)
}

// Denied tells the model that policies denied a call. There is no start event of such a call; the server has recorded
// the verdict.
func Denied(name string, findings []v1alpha1.ToolCallFinding) *tool.Error {
	e := tool.Errorf(tool.TypePolicyDenied, "a policy denied this call of %s; it was not made", name)
	if len(findings) == 0 || findings[0].Message == "" {
		return e.Suggest("do not repeat it; find another way, or say what you cannot do")
	}
	return e.Suggest("the policy says: %s", findings[0].Message)
}
