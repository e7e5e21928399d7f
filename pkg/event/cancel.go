// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// CancelKey is the de-duplication key of the event that marks a task as cancelled. No event that begins work follows it in its stream.
const CancelKey = "server/cancel-requested"

// Begins reports whether an event begins work of its task: an attempt, a request to a model, a call of a tool or a wait for an approval.
func Begins(e *v1alpha1.ExecutionEvent) bool {
	if e.Type != v1alpha1.EventTaskPhaseChanged {
		return table[e.Type].trait&begins != 0
	}
	var c struct{ From, To v1alpha1.TaskPhase }
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &c) != nil {
		return false // it says something else
	}
	return c.To == v1alpha1.TaskRunning && c.From != c.To
}
