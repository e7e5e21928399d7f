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
)

// gate returns the gate that asks people, through the API, to approve calls of the tools that need it.
func (r *run) gate(p *plan.Plan) (*agentloop.Gate, *asking.Approvals) {
	a := &asking.Approvals{Run: r.Run, Timeout: p.ApprovalTimeout, Objects: objects(p)}
	return &agentloop.Gate{Names: p.Gated, Ask: a.Ask, Commit: r.Recorder.Commit}, a
}

// objects returns the Tools of the plan by their names.
func objects(p *plan.Plan) map[string]*v1alpha1.Tool {
	all := map[string]*v1alpha1.Tool{}
	for _, use := range p.Tools {
		if use.Object != nil {
			all[use.Name] = use.Object
		}
	}
	return all
}

// judge asks the server's policies about a call.
func (r *run) judge(ctx context.Context, callID, name string, arguments json.RawMessage) (v1alpha1.ToolCallStatus, error) {
	return asking.Policies(ctx, r.Run, v1alpha1.ToolCallSpec{ToolName: name, CallID: callID, Arguments: &apiextensionsv1.JSON{Raw: arguments}})
}
