// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
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

// forked adds a task that was forked from this one. The fork's own stream holds the same event, but there
// the fork is not a child.
func (f *Fold) forked(e *v1alpha1.ExecutionEvent) {
	c := contentOf(e)
	name := c.text("newTask", "newTaskName", "forkTask", "forkTaskName")
	if name == "" || name == f.task {
		return
	}
	at := e.CreatedAt
	f.children.add(&pair[v1alpha1.TraceChildTask]{row: &v1alpha1.TraceChildTask{
		TraceSpan: v1alpha1.TraceSpan{
			ID: name, Status: v1alpha1.SpanCompleted, StartSeq: e.Seq, EndSeq: e.Seq, StartedAt: at, EndedAt: &at, Summary: e.Summary,
		},
		Name: name, Agent: c.text("agent", "agentName"), Kind: v1alpha1.TraceFork,
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

// published follows what becomes of what a run changed in its workspace.
func (f *Fold) published(e *v1alpha1.ExecutionEvent) {
	row := &v1alpha1.TraceWorkspace{Status: v1alpha1.SpanCompleted, Seq: e.Seq, Summary: e.Summary, CreatedAt: e.CreatedAt}
	if e.Type == v1alpha1.EventDeliveryStateChanged {
		switch to := v1alpha1.TaskDeliveryState(contentOf(e).text("to")); {
		case to.Terminal():
			f.path.finish(f.publication, e.Seq)
			f.publication = nil
			if !to.Delivered() {
				row.Status = v1alpha1.SpanFailed
			}
		default:
			row.Status = v1alpha1.SpanRunning
			if f.publication == nil {
				f.publication = f.path.begin(v1alpha1.TraceKindWorkspace, "", "", e.Seq)
			}
		}
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
