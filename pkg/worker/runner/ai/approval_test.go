// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
)

// TestGateOfAgent: who is asked about what, and which agents ask by themselves.
func TestGateOfAgent(t *testing.T) {
	r := &run{runnertest.New(t, "", v1alpha1.TaskSpec{}).Run}
	for name, tc := range map[string]struct {
		c     *v1alpha1.AgentCoordination
		off   bool
		names []string
		asks  bool
	}{
		"no coordination": {},
		"gated": {c: &v1alpha1.AgentCoordination{
			ApprovalRequiredTools: []string{"drop", "request_approval"}, ApprovalTimeout: &metav1.Duration{Duration: time.Minute},
		}, names: []string{"drop"}},
		"autonomous":             {c: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true}, asks: true},
		"autonomous, turned off": {c: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true}, off: true},
		"not autonomous":         {c: &v1alpha1.AgentCoordination{Enabled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plan{task: &v1alpha1.Task{}, agent: v1alpha1.AgentSpec{Coordination: tc.c}}
			if tc.off {
				p.task.Annotations = map[string]string{v1alpha1.AnnotationDisableCoordination: "true"}
			}
			g := r.gate(p)
			if fmt.Sprint(g.Names) != fmt.Sprint(tc.names) || asksByItself(p) != tc.asks {
				t.Errorf("%v %t", g.Names, asksByItself(p))
			}
			tools, err := r.tools(t.Context(), p, g)
			if err != nil {
				t.Fatal(err)
			}
			if _, offered := tools.Definition("request_approval"); offered != tc.asks {
				t.Errorf("request_approval is offered: %t", offered)
			}
		})
	}
}
