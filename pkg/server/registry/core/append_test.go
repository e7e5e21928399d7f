// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestEventsNameTheAgent: every event of a task with an agent names the agent, whoever appends it. An agent that the
// event names already stays.
func TestEventsNameTheAgent(t *testing.T) {
	s := start(t)
	s.mustTask("a", `{type: ai, prompt: go, agentRef: {name: coder}}`)
	for given, want := range map[string]string{"": "coder", "other": "other"} {
		e := ev(v1alpha1.EventWorkerStarted)
		e.AgentName = given
		got, err := s.CreateNamed(s.User(), "tasks/events", "a", e)
		if err != nil {
			t.Fatal(err)
		}
		if name := got.(*v1alpha1.ExecutionEvent).AgentName; name != want {
			t.Errorf("agent %q, want %q", name, want)
		}
	}
}

// refused returns how many events count as not stored.
func (s *server) refused() (n float64) {
	s.t.Helper()
	families, err := s.Metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "_append_failures_total") {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
