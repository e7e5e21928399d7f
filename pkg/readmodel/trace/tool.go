// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

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
