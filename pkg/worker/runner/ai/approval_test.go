// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"slices"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
	"github.com/platform-ai/platform/pkg/worker/runtools"
)

// TestGate: people are asked about the tools of the plan, and request_approval is offered if the plan has it.
func TestGate(t *testing.T) {
	r := &run{runnertest.New(t, "", v1alpha1.TaskSpec{}).Run}
	p := &plan.Plan{Gated: []string{"drop"}, ApprovalTimeout: time.Minute}
	for _, asks := range []bool{false, true} {
		if asks {
			p.Tools = []plan.Tool{{Name: builtin.RequestApproval.Name}}
		}
		g, _ := r.gate(p)
		if !slices.Equal(g.Names, p.Gated) {
			t.Errorf("%v", g.Names)
		}
		tools, err := runtools.Of(t.Context(), r.Run, p, runtools.Options{Ask: g.RequestApproval})
		if err != nil {
			t.Fatal(err)
		}
		if _, offered := tools.Definition("request_approval"); offered != asks {
			t.Errorf("request_approval is offered: %t", offered)
		}
	}
}
