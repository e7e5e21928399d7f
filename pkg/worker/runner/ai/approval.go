// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/asking"
	"github.com/platform-ai/platform/pkg/worker/runtools"
)

// gate returns the gate that asks people, through the API, to approve calls of the tools that need it.
func (r *run) gate(p *plan.Plan) (*agentloop.Gate, *asking.Approvals) {
	a := &asking.Approvals{Run: r.Run, Timeout: p.ApprovalTimeout, Objects: runtools.Objects(p)}
	return &agentloop.Gate{Names: p.Gated, Ask: a.Ask, Commit: r.Recorder.Commit}, a
}

// judge asks the server's policies about a call.
func (r *run) judge(ctx context.Context, callID, name string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error) {
	return asking.Policies(ctx, r.Run, v1alpha1.ToolCallSpec{ToolName: name, CallID: callID, Arguments: &apiextensionsv1.JSON{Raw: arguments}})
}
