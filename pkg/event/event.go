// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event defines the rules of execution events: which types exist, who may append them, which ones
// close a stream, and how an event is named, checked, sanitized and cut. It has no clock and no store;
// storage and API apply its rules.
//
// An event on its way into the store passes through Validate and then Sanitize, first in the worker and
// again in the store. Sanitize redacts before it truncates, because a cut could leave half a secret that no
// longer looks like one. Sanitizing an event twice gives the same result as sanitizing it once.
package event

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Writer is the kind of program that appends events of a type.
type Writer string

// Writers. Every client that may append events of a task writes as a worker. Appending events of the other
// writers requires create on executionevents/controlled, which controllers have. The server also appends
// its own events by itself.
const (
	// Worker runs the task and reports about the run.
	Worker Writer = "worker"
	// Controller decides on a task's life and reports its decisions.
	Controller Writer = "controller"
	// Server reports what was done through its API: decisions, forks, plans, deliveries.
	Server Writer = "server"
)

// law holds the rules of a type.
type law struct {
	by Writer
	trait
}

// trait is a property of a type.
type trait uint8

const (
	// terminal ends the task and closes its stream.
	terminal trait = 1 << iota
	// approval concerns an approval.
	approval
	// decides ends an approval.
	decides
	// model carries the provider, model and token fields.
	model
	// late describes the record of a task and not its run, so it may follow the end.
	late
	// begins begins work of the task, so it may not follow the mark of a cancellation.
	begins
)

// table is the complete, closed list of types, and the only place that defines who writes each type.
var table = map[v1alpha1.EventType]law{
	v1alpha1.EventTaskCreated:      {Controller, 0},
	v1alpha1.EventTaskPhaseChanged: {Controller, 0},
	v1alpha1.EventTaskJobCreated:   {Controller, begins},
	v1alpha1.EventTaskStarted:      {Controller, begins},
	v1alpha1.EventTaskSucceeded:    {Controller, terminal},
	v1alpha1.EventTaskFailed:       {Controller, terminal},
	v1alpha1.EventTaskCancelled:    {Controller, terminal},

	v1alpha1.EventWorkerStarted:   {Worker, begins},
	v1alpha1.EventWorkerCompleted: {Worker, 0},
	v1alpha1.EventWorkerFailed:    {Worker, 0},

	v1alpha1.EventModelRequestStarted:   {Worker, model | begins},
	v1alpha1.EventModelRequestCompleted: {Worker, model},
	v1alpha1.EventModelRequestFailed:    {Worker, model},
	v1alpha1.EventModelUsageUpdated:     {Worker, model},
	v1alpha1.EventModelContextUpdated:   {Worker, model},
	v1alpha1.EventModelMessage:          {Worker, 0},
	v1alpha1.EventContextTruncated:      {Worker, model},

	v1alpha1.EventToolCallStarted:   {Worker, begins},
	v1alpha1.EventToolCallCompleted: {Worker, 0},
	v1alpha1.EventToolCallFailed:    {Worker, 0},

	v1alpha1.EventWorkspacePreparationStarted:   {Worker, begins},
	v1alpha1.EventWorkspacePreparationCompleted: {Worker, 0},
	v1alpha1.EventWorkspacePreparationFailed:    {Worker, 0},
	v1alpha1.EventWorkspaceFrozen:               {Worker, 0},
	v1alpha1.EventDeliveryStateChanged:          {Controller, 0},

	v1alpha1.EventAgentRuntimeStarted:        {Worker, begins},
	v1alpha1.EventAgentRuntimeCommandStarted: {Worker, begins},
	v1alpha1.EventAgentRuntimeCompleted:      {Worker, 0},
	v1alpha1.EventAgentRuntimeFailed:         {Worker, 0},
	v1alpha1.EventAgentRuntimeCancelled:      {Worker, 0},

	v1alpha1.EventResultSubmitted:         {Worker, 0},
	v1alpha1.EventArtifactUploadCompleted: {Worker, 0},
	v1alpha1.EventArtifactUploadFailed:    {Worker, 0},
	v1alpha1.EventPlanUpdated:             {Server, 0},
	v1alpha1.EventTaskMessageReceived:     {Server, 0},
	v1alpha1.EventTaskMessagesRead:        {Server, 0},

	v1alpha1.EventGatewayDeliveryCompleted: {Server, late},

	v1alpha1.EventTaskForkRequested: {Server, late},
	v1alpha1.EventTaskForkCreated:   {Server, late},

	v1alpha1.EventApprovalRequested:        {Worker, approval | begins},
	v1alpha1.EventApprovalApproved:         {Server, approval | decides},
	v1alpha1.EventApprovalDeclined:         {Server, approval | decides},
	v1alpha1.EventApprovalExpired:          {Server, approval | decides},
	v1alpha1.EventApprovalCancelled:        {Server, approval | decides},
	v1alpha1.EventApprovalExecutionUpdated: {Server, approval},

	v1alpha1.EventToolCallJudged: {Server, 0},
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

// Terminal reports whether t ends its task. After a terminal event the stream is closed, except for late
// events.
func Terminal(t v1alpha1.EventType) bool { return table[t].trait&terminal != 0 }

// Late reports whether t may follow a terminal event. Forks and deliveries may, because they describe the
// record of a task and not its run.
func Late(t v1alpha1.EventType) bool { return table[t].trait&late != 0 }

// WrittenBy returns who appends events of type t; empty for an unknown type.
func WrittenBy(t v1alpha1.EventType) Writer { return table[t].by }

// ControllerOwned reports whether t is a known type that workers may not append.
func ControllerOwned(t v1alpha1.EventType) bool { return Known(t) && table[t].by != Worker }

// ModelRequest reports whether t begins or ends a model request.
func ModelRequest(t v1alpha1.EventType) bool {
	return t == v1alpha1.EventModelRequestStarted || t == v1alpha1.EventModelRequestCompleted || t == v1alpha1.EventModelRequestFailed
}

// Approval reports whether t concerns an approval.
func Approval(t v1alpha1.EventType) bool { return table[t].trait&approval != 0 }

// ApprovalDecision reports whether t ends an approval.
func ApprovalDecision(t v1alpha1.EventType) bool { return table[t].trait&decides != 0 }

// NormalizeSeverity returns s trimmed and in lower case, or info if s is not a severity.
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
