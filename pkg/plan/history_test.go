// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A task that says nothing, which gets the default, reads as many messages as its agent says.
func TestHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ task, agent, want int32 }{
		{0, 0, 50}, {50, 0, 50}, {7, 0, 7}, {0, 9, 9}, {50, 9, 9}, {7, 9, 7}, {50, 200, 200}, {100, 50, 100}, {50, 50, 50},
	} {
		task, agent := &v1alpha1.TaskSpec{SessionRef: &v1alpha1.TaskSessionReference{}}, &v1alpha1.Agent{}
		if c.task != 0 {
			task.SessionRef.MaxMessages = &c.task
		}
		if c.agent != 0 {
			agent.Spec.Session = &v1alpha1.AgentSession{MaxMessages: &c.agent}
		}
		if got := History(task, agent); got != int(c.want) {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := History(&v1alpha1.TaskSpec{}, nil); got != 50 {
		t.Errorf("without an agent: %d", got)
	}
}
