// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace folds the events of a task into a summary of what the task did: model requests, tool calls,
// child tasks, problems, and the critical path of what the task waited for. It has no clock and no store.
//
// A fold emits each row as soon as nothing can change it any more and then forgets it, so its memory is
// bounded by what is open at a time, whatever the length of the stream. Rows emitted for a part of a stream
// stay correct for the whole stream. Only running spans, and what comes after them, are still open.
//
// Pairs. A start and an end are matched by an id: the first of the content keys modelRequestID,
// model_request_id, requestID and id, and for tools, before all of these, the event's toolCallID. An end
// without an id ends the newest start without an id that agrees with it in all values that both have. One
// lost end must not shift all pairs that follow. An end without a matching start is reported as unpaired,
// with a warning and never as an error. A start without an end gets a warning once no end can follow any
// more: when the task ends or a later attempt's worker starts.
package trace

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Group is a list of rows of a trace, by its key in the document.
type Group string

// The groups, with the type of their rows.
const (
	ModelRequests Group = "modelRequests" // *v1alpha1.TraceModelRequest
	ToolCalls     Group = "toolCalls"     // *v1alpha1.TraceToolCall
	ChildTasks    Group = "childTasks"    // *v1alpha1.TraceChildTask
	Workspace     Group = "workspace"     // *v1alpha1.TraceWorkspace
	Artifacts     Group = "artifacts"     // *v1alpha1.TraceArtifact
	Errors        Group = "errors"        // *v1alpha1.TraceProblem
	Warnings      Group = "warnings"      // *v1alpha1.TraceProblem
	CriticalPath  Group = "criticalPath"  // *v1alpha1.TraceSegment
	RawUnpaired   Group = "rawUnpaired"   // *v1alpha1.ExecutionEvent
)

// Groups returns all groups in the order of the document.
func Groups() []Group {
	return []Group{ModelRequests, ToolCalls, ChildTasks, Workspace, Artifacts, Errors, Warnings, CriticalPath, RawUnpaired}
}

// Types returns the event types on which the rows of a group depend; nil means all. A fold over only these
// events gives the group the same rows as a fold over all events.
func (g Group) Types() []v1alpha1.EventType {
	switch g {
	case ModelRequests:
		return append(settling(), v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed)
	case ToolCalls:
		return append(settling(), v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed, v1alpha1.EventApprovalRequested)
	case ChildTasks:
		return append(settling(), v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed, v1alpha1.EventTaskForkCreated)
	case Workspace:
		return []v1alpha1.EventType{v1alpha1.EventWorkspacePreparationStarted, v1alpha1.EventWorkspacePreparationCompleted, v1alpha1.EventWorkspacePreparationFailed, v1alpha1.EventWorkspaceFrozen, v1alpha1.EventDeliveryStateChanged}
	case Artifacts:
		return []v1alpha1.EventType{v1alpha1.EventArtifactUploadCompleted, v1alpha1.EventArtifactUploadFailed}
	}
	return nil
}

// settling returns the event types after which no end can follow for what is open.
func settling() []v1alpha1.EventType {
	return []v1alpha1.EventType{v1alpha1.EventWorkerStarted, v1alpha1.EventTaskSucceeded, v1alpha1.EventTaskFailed, v1alpha1.EventTaskCancelled}
}

// Emit receives a row of a group. From then on the row belongs to the receiver.
type Emit func(g Group, row any)

// Fold turns events, added in the order of their sequence, into rows.
type Fold struct {
	task                   string
	emit                   Emit
	models                 pairs[v1alpha1.TraceModelRequest]
	tools                  pairs[v1alpha1.TraceToolCall]
	children               pairs[v1alpha1.TraceChildTask]
	approvals              approvals
	workspace, publication *run
	path                   path
	clock                  clock
	usage                  Usage
	terminal               *v1alpha1.ExecutionEvent
	part                   bool // events before the first one are not folded
}

// New starts a fold of the events of a task.
func New(task string, emit Emit) *Fold {
	f := &Fold{task: task, emit: emit}
	f.path.emit = func(s *v1alpha1.TraceSegment) { emit(CriticalPath, s) }
	f.models = pairs[v1alpha1.TraceModelRequest]{
		prefix: "model-request-",
		span:   func(r *v1alpha1.TraceModelRequest) *v1alpha1.TraceSpan { return &r.TraceSpan },
		emit:   func(r *v1alpha1.TraceModelRequest) { emit(ModelRequests, r) },
		lost:   func(s *v1alpha1.TraceSpan, r *run) { f.lost(v1alpha1.EventModelRequestStarted, s, r) },
	}
	f.tools = pairs[v1alpha1.TraceToolCall]{
		prefix: "tool-call-",
		span:   func(r *v1alpha1.TraceToolCall) *v1alpha1.TraceSpan { return &r.TraceSpan },
		emit:   func(r *v1alpha1.TraceToolCall) { emit(ToolCalls, r) },
		lost:   func(s *v1alpha1.TraceSpan, r *run) { f.lost(v1alpha1.EventToolCallStarted, s, r) },
	}
	f.children = pairs[v1alpha1.TraceChildTask]{
		prefix: "tool-call-",
		span:   func(r *v1alpha1.TraceChildTask) *v1alpha1.TraceSpan { return &r.TraceSpan },
		emit: func(r *v1alpha1.TraceChildTask) {
			if r.Name != "" { // a reference without a name is ignored
				emit(ChildTasks, r)
			}
		},
		lost: func(*v1alpha1.TraceSpan, *run) {}, // the call has the warning
	}
	return f
}

// NewPart starts a fold of events that follow others, which it does not see. An end whose start may be among those is left
// out.
func NewPart(task string, emit Emit) *Fold {
	f := New(task, emit)
	f.part = true
	return f
}

// Begins reports whether an event begins a span.
func Begins(t v1alpha1.EventType) bool {
	return t == v1alpha1.EventModelRequestStarted || t == v1alpha1.EventToolCallStarted || t == v1alpha1.EventTaskForkCreated
}

// Add takes the next event. It keeps no reference to the event except as a row.
func (f *Fold) Add(e *v1alpha1.ExecutionEvent) {
	f.path.reach(f.clock.at(e))
	switch e.Type {
	case v1alpha1.EventWorkerStarted:
		f.settle("its end was not recorded before the next attempt began")
	case v1alpha1.EventModelRequestStarted:
		f.modelStarted(e)
	case v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed:
		f.modelEnded(e)
	case v1alpha1.EventToolCallStarted:
		f.toolStarted(e)
	case v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed:
		f.toolEnded(e)
	case v1alpha1.EventApprovalRequested:
		f.approvalRequested(e)
	case v1alpha1.EventTaskForkCreated:
		f.forked(e)
	case v1alpha1.EventWorkspacePreparationStarted, v1alpha1.EventWorkspacePreparationCompleted, v1alpha1.EventWorkspacePreparationFailed:
		f.workspacePrepared(e)
	case v1alpha1.EventWorkspaceFrozen, v1alpha1.EventDeliveryStateChanged:
		f.published(e)
	case v1alpha1.EventArtifactUploadCompleted, v1alpha1.EventArtifactUploadFailed:
		f.artifact(e)
	default:
		if event.ApprovalDecision(e.Type) {
			f.approvalDecided(e)
		}
	}
	f.problem(e)
	if event.Terminal(e.Type) {
		row := event.Row(e)
		f.terminal = &row
		f.settle("its end was not recorded before the task ended")
		f.path.close()
	}
}

// End emits everything still open as running; the critical path extends to the latest event. The Fold must
// not be used afterwards.
func (f *Fold) End() {
	if f.terminal != nil { // spans that began after the end of the task
		f.settle("it began after the task had ended")
	}
	f.models.flush()
	f.tools.flush()
	f.children.flush()
	f.path.end()
}

// Usage returns the sum over the model requests, or nil if there were none.
func (f *Fold) Usage() *v1alpha1.TaskUsage { return f.usage.Sum() }

// TerminalEvent returns the event that ended the task, as a row, or nil while the task runs.
func (f *Fold) TerminalEvent() *v1alpha1.ExecutionEvent { return f.terminal }

// settle is called when no end can follow any more for what is open.
func (f *Fold) settle(why string) {
	f.path.cut(v1alpha1.TraceKindModel, v1alpha1.TraceKindTool, v1alpha1.TraceKindChild)
	f.models.settle(why)
	f.tools.settle(why)
	f.children.settle(why)
	f.approvals.forget()
}

// lost warns of a start whose end never came.
func (f *Fold) lost(t v1alpha1.EventType, s *v1alpha1.TraceSpan, r *run) {
	f.path.lose(r)
	f.emit(Warnings, &v1alpha1.TraceProblem{Seq: s.StartSeq, Type: t, Severity: v1alpha1.SeverityWarning, Message: s.ID + ": " + s.Error})
}

// unpaired reports an end whose start is missing.
func (f *Fold) unpaired(e *v1alpha1.ExecutionEvent, id string) {
	if f.part {
		return
	}
	row := event.Row(e)
	f.emit(RawUnpaired, &row)
	text := string(e.Type) + " has no start"
	if id != "" {
		text = id + ": " + text
	}
	f.emit(Warnings, &v1alpha1.TraceProblem{Seq: e.Seq, Type: e.Type, Severity: v1alpha1.SeverityWarning, Message: text})
}

// problem notes an event that reports an error or a warning. A failure is an error whatever its severity,
// and is not listed as a warning too.
func (f *Fold) problem(e *v1alpha1.ExecutionEvent) {
	g := Warnings
	switch {
	case e.Severity == v1alpha1.SeverityError || failed(e.Type):
		g = Errors
	case e.Severity != v1alpha1.SeverityWarning:
		return
	}
	p := &v1alpha1.TraceProblem{Seq: e.Seq, Type: e.Type, Severity: e.Severity, Message: e.Summary}
	if p.Message == "" {
		p.Message = contentOf(e).text("error", "message", "reason")
	}
	if p.Message == "" {
		p.Message = string(e.Type)
	}
	f.emit(g, p)
}

// failed reports whether a type reports that something did not complete.
func failed(t v1alpha1.EventType) bool {
	for _, suffix := range [...]string{"Failed", "Cancelled", "Declined", "Expired"} {
		if strings.HasSuffix(string(t), suffix) {
			return true
		}
	}
	return false
}
