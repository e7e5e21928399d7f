// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// ending is one way in which a task ends, in the words of its status, its stream and its conditions.
type ending struct {
	phase    v1alpha1.TaskPhase
	event    v1alpha1.EventType
	severity v1alpha1.EventSeverity
	// reason is that of the conditions Complete and Succeeded.
	reason string
}

// endings lists all endings. The first one is used for unknown phases and events, so that a task never succeeds by
// mistake.
var endings = [...]ending{
	{v1alpha1.TaskFailed, v1alpha1.EventTaskFailed, v1alpha1.SeverityError, v1alpha1.ReasonTaskFailed},
	{v1alpha1.TaskSucceeded, v1alpha1.EventTaskSucceeded, v1alpha1.SeverityInfo, v1alpha1.ReasonTaskSucceeded},
	{v1alpha1.TaskCancelled, v1alpha1.EventTaskCancelled, v1alpha1.SeverityWarning, v1alpha1.ReasonTaskCancelled},
}

// endingOf returns the ending with the given terminal phase.
func endingOf(p v1alpha1.TaskPhase) ending {
	for _, e := range endings {
		if e.phase == p {
			return e
		}
	}
	return endings[0]
}

// endingBy returns the ending with the given type of event, which closed a stream.
func endingBy(typ v1alpha1.EventType) ending {
	for _, e := range endings {
		if e.event == typ {
			return e
		}
	}
	return endings[0]
}
