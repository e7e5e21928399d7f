// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event is the law of execution events: which types there are, who may
// append them, what closes a stream, how an event is named, checked, cleaned
// and cut. It is pure; storage and API apply it.
//
// An event on its way into the store goes through Validate and then Sanitize,
// in the worker and again in the store. Sanitize redacts first, because a cut
// could leave half a secret that no longer looks like one, and truncates then.
// Sanitizing twice gives what sanitizing once gave.
package event

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// trait is what a type means beyond its name.
type trait uint8

const (
	// terminal ends the task and closes its stream.
	terminal trait = 1 << iota
	// controlled may be appended only through controller-owned paths.
	controlled
	// approval tells of an approval.
	approval
	// decides ends an approval.
	decides
	// model carries the provider, model and token fields.
	model
	// late tells of the record and not of the run, so it may follow the end.
	late
)

// table is the complete, closed list of types.
var table = map[v1alpha1.EventType]trait{
	v1alpha1.EventTaskCreated:      0,
	v1alpha1.EventTaskPhaseChanged: 0,
	v1alpha1.EventTaskJobCreated:   0,
	v1alpha1.EventTaskStarted:      0,
	v1alpha1.EventTaskSucceeded:    terminal | controlled,
	v1alpha1.EventTaskFailed:       terminal | controlled,
	v1alpha1.EventTaskCancelled:    terminal | controlled,

	v1alpha1.EventWorkerStarted:   0,
	v1alpha1.EventWorkerCompleted: 0,
	v1alpha1.EventWorkerFailed:    0,

	v1alpha1.EventModelRequestStarted:   model,
	v1alpha1.EventModelRequestCompleted: model,
	v1alpha1.EventModelRequestFailed:    model,
	v1alpha1.EventModelUsageUpdated:     model,
	v1alpha1.EventModelContextUpdated:   model,
	v1alpha1.EventModelMessage:          0,
	v1alpha1.EventContextTruncated:      model,

	v1alpha1.EventToolCallStarted:   0,
	v1alpha1.EventToolCallCompleted: 0,
	v1alpha1.EventToolCallFailed:    0,

	v1alpha1.EventWorkspacePreparationStarted:   0,
	v1alpha1.EventWorkspacePreparationCompleted: 0,
	v1alpha1.EventWorkspacePreparationFailed:    0,

	v1alpha1.EventAgentRuntimeStarted:        0,
	v1alpha1.EventAgentRuntimeCommandStarted: 0,
	v1alpha1.EventAgentRuntimeCompleted:      0,
	v1alpha1.EventAgentRuntimeFailed:         0,
	v1alpha1.EventAgentRuntimeCancelled:      0,

	v1alpha1.EventResultSubmitted:         0,
	v1alpha1.EventArtifactUploadCompleted: 0,
	v1alpha1.EventArtifactUploadFailed:    0,
	v1alpha1.EventPlanUpdated:             0,

	v1alpha1.EventGatewayDeliveryCompleted: late,

	v1alpha1.EventTaskForkRequested: late,
	v1alpha1.EventTaskForkCreated:   late,

	v1alpha1.EventApprovalRequested:        approval,
	v1alpha1.EventApprovalApproved:         approval | decides | controlled,
	v1alpha1.EventApprovalDeclined:         approval | decides | controlled,
	v1alpha1.EventApprovalExpired:          approval | decides | controlled,
	v1alpha1.EventApprovalCancelled:        approval | decides | controlled,
	v1alpha1.EventApprovalExecutionUpdated: approval | controlled,
}

// Types returns every event type, sorted.
func Types() []v1alpha1.EventType {
	types := make([]v1alpha1.EventType, 0, len(table))
	for t := range table {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// Known reports whether t is one of the event types.
func Known(t v1alpha1.EventType) bool { _, ok := table[t]; return ok }

// Terminal reports whether t ends its task, after which the stream is closed but
// for late events.
func Terminal(t v1alpha1.EventType) bool { return table[t]&terminal != 0 }

// Late reports whether t may follow a terminal event: forks and deliveries tell
// of the record of a task and not of its run.
func Late(t v1alpha1.EventType) bool { return table[t]&late != 0 }

// ControllerOwned reports whether only controller-owned paths may append t:
// terminal task events, approval decisions and the execution of an approval.
func ControllerOwned(t v1alpha1.EventType) bool { return table[t]&controlled != 0 }

// Approval reports whether t tells of an approval.
func Approval(t v1alpha1.EventType) bool { return table[t]&approval != 0 }

// ApprovalDecision reports whether t ends an approval.
func ApprovalDecision(t v1alpha1.EventType) bool { return table[t]&decides != 0 }

// NormalizeSeverity returns s trimmed and in lower case, and info for what is
// not a severity.
func NormalizeSeverity(s v1alpha1.EventSeverity) v1alpha1.EventSeverity {
	n := v1alpha1.EventSeverity(strings.ToLower(strings.TrimSpace(string(s))))
	if KnownSeverity(n) {
		return n
	}
	return v1alpha1.SeverityInfo
}

// KnownSeverity reports whether s is one of the four severities.
func KnownSeverity(s v1alpha1.EventSeverity) bool {
	switch s {
	case v1alpha1.SeverityDebug, v1alpha1.SeverityInfo, v1alpha1.SeverityWarning, v1alpha1.SeverityError:
		return true
	}
	return false
}
