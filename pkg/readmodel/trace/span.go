// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func (f *Fold) modelStarted(e *v1alpha1.ExecutionEvent) {
	f.usage.Add(e)
	c := contentOf(e)
	a := f.models.begin(modelRow(e, c), e, c.id())
	a.run = f.path.begin(v1alpha1.TraceKindModel, a.row.ID, a.row.Model, e.Seq)
}

func modelRow(e *v1alpha1.ExecutionEvent, c content) *v1alpha1.TraceModelRequest {
	return &v1alpha1.TraceModelRequest{Provider: e.Provider, Model: e.Model, Iteration: c.count("iteration"), Attempt: c.count("attempt")}
}

func (f *Fold) modelEnded(e *v1alpha1.ExecutionEvent) {
	f.usage.Add(e)
	c := contentOf(e)
	end, id := modelRow(e, c), c.id()
	a := f.models.find(id, func(r *v1alpha1.TraceModelRequest) bool {
		return agree(r.Provider, end.Provider) && agree(r.Model, end.Model) && agree(r.Iteration, end.Iteration) && agree(r.Attempt, end.Attempt)
	})
	if a == nil {
		f.unpaired(e, id)
		return
	}
	r := a.row
	fill(&r.Provider, end.Provider)
	fill(&r.Model, end.Model)
	fill(&r.Iteration, end.Iteration)
	fill(&r.Attempt, end.Attempt)
	r.StopReason, r.InputTokens, r.OutputTokens, r.CachedInputTokens = e.StopReason, e.InputTokens, e.OutputTokens, e.CachedInputTokens
	f.path.finish(a.run, e.Seq)
	f.models.finish(a, e, c)
}

func (f *Fold) toolStarted(e *v1alpha1.ExecutionEvent) {
	c := contentOf(e)
	id, name := toolID(e, c), toolName(e, c)
	row := &v1alpha1.TraceToolCall{Name: name, Iteration: c.count("iteration"), ArgumentBytes: c.number("argumentBytes"), ApprovalID: c.text("approvalID")}
	fill(&row.ApprovalID, f.approvals.of(id))
	a := f.tools.begin(row, e, id)
	kind := v1alpha1.TraceKindTool
	if makesTask(name) {
		kind = v1alpha1.TraceKindChild
		child := &v1alpha1.TraceChildTask{Kind: v1alpha1.TraceChild, Name: c.child(), Agent: c.text("agent", "agentName")}
		f.children.begin(child, e, id)
		if child.Name != "" {
			name = child.Name
		}
	}
	a.run = f.path.begin(kind, a.row.ID, name, e.Seq)
}

func (f *Fold) toolEnded(e *v1alpha1.ExecutionEvent) {
	c := contentOf(e)
	id, name := toolID(e, c), toolName(e, c)
	if child := f.children.find(id, func(*v1alpha1.TraceChildTask) bool { return makesTask(name) }); child != nil {
		fill(&child.row.Name, c.child())
		fill(&child.row.Agent, c.text("agent", "agentName"))
		child.row.Result = shorten(c.text("result"))
		f.children.finish(child, e, c)
	}
	a := f.tools.find(id, func(r *v1alpha1.TraceToolCall) bool { return agree(r.Name, name) })
	if a == nil {
		f.unpaired(e, id)
		return
	}
	fill(&a.row.Name, name)
	fill(&a.row.ApprovalID, c.text("approvalID"))
	a.row.ResultLength = c.number("resultLength")
	if child := c.child(); child != "" && a.run != nil && a.run.Kind == v1alpha1.TraceKindChild {
		a.run.Name = child
	}
	f.path.finish(a.run, e.Seq)
	f.tools.finish(a, e, c)
}

// toolID returns the id of a call, empty if it has none.
func toolID(e *v1alpha1.ExecutionEvent, c content) string {
	for _, id := range [...]string{e.ToolCallID, c.text("toolCallID", "toolCallId", "tool_call_id")} {
		if id != "" && len(id) <= maxID {
			return id
		}
	}
	return c.id()
}

func toolName(e *v1alpha1.ExecutionEvent, c content) string {
	if e.ToolName != "" {
		return e.ToolName
	}
	return c.text("toolName", "tool")
}

// makesTask reports whether a tool creates a task: delegate_task, create_container_task, create_pr_monitor
// and tools named like the first two.
func makesTask(tool string) bool {
	return strings.HasPrefix(tool, "delegate") || strings.HasPrefix(tool, "create_") && strings.HasSuffix(tool, "_task") || tool == "create_pr_monitor"
}

// maxChildResult is the length of a child's result in a trace, in bytes.
const maxChildResult = 1024

func shorten(s string) string {
	if len(s) <= maxChildResult {
		return s
	}
	return strings.ToValidUTF8(s[:maxChildResult], "") + "…"
}

// forked adds a task that was forked from this one. The fork's own stream holds the same event, but there
// the fork is not a child.
func (f *Fold) forked(e *v1alpha1.ExecutionEvent) {
	name := contentOf(e).text("newTask", "newTaskName", "forkTask", "forkTaskName")
	if name == "" || name == f.task {
		return
	}
	at := e.CreatedAt
	f.children.add(&pair[v1alpha1.TraceChildTask]{row: &v1alpha1.TraceChildTask{
		TraceSpan: v1alpha1.TraceSpan{
			ID: name, Status: v1alpha1.SpanCompleted, StartSeq: e.Seq, EndSeq: e.Seq, StartedAt: at, EndedAt: &at, Summary: e.Summary,
		},
		Name: name, Kind: v1alpha1.TraceFork,
	}})
	f.children.advance()
}

func (f *Fold) workspacePrepared(e *v1alpha1.ExecutionEvent) {
	row := &v1alpha1.TraceWorkspace{Status: v1alpha1.SpanCompleted, Seq: e.Seq, Summary: e.Summary, CreatedAt: e.CreatedAt}
	f.path.finish(f.workspace, e.Seq)
	f.workspace = nil
	switch e.Type {
	case v1alpha1.EventWorkspacePreparationStarted:
		row.Status = v1alpha1.SpanRunning
		f.workspace = f.path.begin(v1alpha1.TraceKindWorkspace, "", "", e.Seq)
	case v1alpha1.EventWorkspacePreparationFailed:
		row.Status = v1alpha1.SpanFailed
	}
	f.emit(Workspace, row)
}

func (f *Fold) artifact(e *v1alpha1.ExecutionEvent) {
	row := &v1alpha1.TraceArtifact{
		Name: contentOf(e).text("artifact", "filename", "name"), Status: v1alpha1.TraceArtifactUploaded,
		Seq: e.Seq, Summary: e.Summary, CreatedAt: e.CreatedAt,
	}
	if failed(e.Type) {
		row.Status = v1alpha1.TraceArtifactFailed
	}
	f.emit(Artifacts, row)
}

// agree reports whether two values are equal as far as both are known.
func agree[T comparable](a, b T) bool {
	var unknown T
	return a == b || a == unknown || b == unknown
}

// fill sets a value that is not known yet.
func fill[T comparable](to *T, v T) {
	var unknown T
	if *to == unknown {
		*to = v
	}
}
