// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	law "github.com/platform-ai/platform/pkg/event"
)

// De-duplication keys: each fact of a task is one event, however often its reconcile is
// repeated. Workers' keys have other prefixes.
const (
	keyCreated  = "controller/created"
	keyTerminal = "controller/terminal"
)

// event returns an event of the controller, with plain values as content.
func event(t *v1alpha1.Task, typ v1alpha1.EventType, key, summary string, content map[string]any) v1alpha1.ExecutionEvent {
	e := law.New(typ, v1alpha1.SeverityInfo, key, summary, content)
	e.StreamType, e.StreamID, e.TaskName, e.AgentName = v1alpha1.StreamTask, t.Name, t.Name, t.Status.AgentName
	return *e
}

// phaseChanged returns the event for a change of the task's phase in the current attempt.
func phaseChanged(t *v1alpha1.Task, from, to v1alpha1.TaskPhase, message string) v1alpha1.ExecutionEvent {
	key := fmt.Sprintf("controller/phase/%d/%s", t.Status.Attempts, to)
	if to.Terminal() {
		key = "controller/phase/terminal"
	}
	content := map[string]any{"from": string(from), "to": string(to), "attempt": t.Status.Attempts}
	if message != "" {
		content["message"] = message
	}
	return event(t, v1alpha1.EventTaskPhaseChanged, key, fmt.Sprintf("%s → %s", from, to), content)
}
