// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// startPlans stores the agent's plans, one after the other, until Finish is called. While one is being stored, only the newest of the
// others waits.
func (t *Talk) startPlans(ctx context.Context) {
	go func() {
		defer close(t.planned)
		for steps := range t.plans {
			if err := t.storePlan(ctx, steps); err != nil && ctx.Err() == nil {
				t.Log.Line("the plan could not be stored: %v", err)
			}
		}
	}()
}

// storePlan stores a plan of the agent as the plan of the task. It waits while the server is away.
func (t *Talk) storePlan(ctx context.Context, steps []acp.Step) error {
	var text strings.Builder
	done, now := 0, ""
	for _, s := range steps {
		mark := " "
		switch s.Status {
		case "completed":
			mark = "x"
			done++
		case "in_progress":
			now = ": " + strings.Join(strings.Fields(s.Text), " ")
		}
		fmt.Fprintf(&text, "- [%s] %s\n", mark, strings.ReplaceAll(strings.TrimSpace(s.Text), "\n", "\n  "))
	}
	if len(steps) == 0 {
		return nil
	}
	p := &v1alpha1.TaskPlan{
		Summary: t.Scrub(fmt.Sprintf("%d of %d steps are done%s", done, len(steps), now)), PlanDocument: t.Scrub(text.String()), ProgressPct: new(int32(100 * done / len(steps))),
	}
	return client.Repeat(ctx, t.Clock, func(ctx context.Context) error {
		_, err := t.API.CoreV1alpha1().Tasks(t.Task.Namespace).UpdatePlan(ctx, t.Task.Name, p, metav1.CreateOptions{})
		return err
	})
}
