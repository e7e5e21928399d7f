// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxApprovals is how many approvals of a run are remembered. The oldest are forgotten first.
const maxApprovals = 256

// approvals are those of the current run, oldest first. The call that waits for an approval may begin
// before or after the approval is requested.
type approvals []*approval

type approval struct {
	id, call string
	run      *run // nil when it is decided
}

// of returns the id of the newest approval of a call, empty if there is none.
func (l approvals) of(call string) string {
	for i := len(l) - 1; i >= 0 && call != ""; i-- {
		if l[i].call == call {
			return l[i].id
		}
	}
	return ""
}

// forget drops decided approvals, and clears the call ids of the others, because a later run assigns the
// ids again.
func (l *approvals) forget() {
	var waiting approvals
	for _, a := range *l {
		a.call = ""
		if a.run != nil {
			waiting = append(waiting, a)
		}
	}
	*l = waiting
}

// approvalRequested notes a requested approval. The waiting call does nothing meanwhile, so its time is
// attributed to the approval.
func (f *Fold) approvalRequested(e *v1alpha1.ExecutionEvent) {
	c := contentOf(e)
	id := c.text("approvalID", "approvalId", "id")
	if id == "" || len(id) > maxID {
		id = "approval-" + strconv.FormatInt(e.Seq, 10)
	}
	w := &approval{id: id, call: toolID(e, c)}
	name := c.text("targetTool")
	fill(&name, e.ToolName)
	if call := f.waiting(w.call); call != nil {
		call.row.ApprovalID = id
		fill(&name, call.row.Name)
		f.path.finish(call.run, e.Seq)
		call.run = nil
	}
	w.run = f.path.begin(v1alpha1.TraceKindApproval, id, name, e.Seq)
	f.approvals = append(f.approvals, w)
	if len(f.approvals) > maxApprovals {
		f.path.lose(f.approvals[0].run)
		f.approvals = append(approvals(nil), f.approvals[1:]...)
	}
}

// waiting returns the open call with an id, or nil if there is none.
func (f *Fold) waiting(id string) *pair[v1alpha1.TraceToolCall] {
	if id == "" {
		return nil
	}
	return f.tools.find(id, nil)
}

func (f *Fold) approvalDecided(e *v1alpha1.ExecutionEvent) {
	id := contentOf(e).text("approvalID", "approvalId", "id")
	if id == "" {
		id = e.ToolCallID
	}
	for _, w := range f.approvals {
		if w.id != id || w.run == nil {
			continue
		}
		f.path.finish(w.run, e.Seq)
		w.run = nil
		if call := f.waiting(w.call); call != nil && call.run == nil {
			call.run = f.path.begin(v1alpha1.TraceKindTool, call.row.ID, call.row.Name, e.Seq)
		}
	}
}
