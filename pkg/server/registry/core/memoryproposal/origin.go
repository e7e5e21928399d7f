// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// originPage is how many events are read at a time, and originPages how many times. A run with more calls counts as one
// that read untrusted text. The same bounds hold for the messages of its session, and at most originTasks tasks may have spoken
// there.
const (
	originPage  = 500
	originPages = 20
	originTasks = 200
)

// origin returns where a proposal of a run comes from, by the events of the run, of its session and of the tasks that spoke
// there. The worker stores the event of its call before it proposes. If something cannot be read, or the call is missing,
// the proposal counts as one with untrusted text.
func (r *Resource) origin(ctx context.Context, t *v1alpha1.Task) *v1alpha1.MemoryOrigin {
	o := &v1alpha1.MemoryOrigin{TaskName: t.Name, TaskUID: t.UID, RequestedBy: t.Annotations[v1alpha1.AnnotationRequestedBy]}
	proposed, own := r.calls(ctx, t)
	if proposed != nil {
		o.Sequence, o.ToolCallID = proposed.Seq, proposed.ToolCallID
	}
	o.OutsideText = !own || proposed == nil || !asked(t) || !r.heardOwn(ctx, t)
	return o
}

// calls returns the event of the newest call of a task that proposed, if there is one, and whether the task's calls brought
// in nothing but memories.
func (r *Resource) calls(ctx context.Context, t *v1alpha1.Task) (proposed *v1alpha1.ExecutionEvent, own bool) {
	stream := eventlog.Stream{Namespace: t.Namespace, Task: t.Name, UID: t.UID}
	own, after := true, int64(0)
	for range originPages {
		page, err := r.o.Log.TaskPage(ctx, stream, after, originPage, []v1alpha1.EventType{v1alpha1.EventToolCallStarted})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("The events of a run that proposes could not be read", "task", klog.KObj(t), "err", err)
			return proposed, false
		}
		own = own && len(page.Gaps) == 0
		for _, e := range page.Events {
			b, ok := builtin.Find(e.ToolName)
			own = own && ok && b.Trusted
			if ok && b.Proposes {
				proposed = e
			}
		}
		if after = page.Next; len(page.Events) < originPage {
			return proposed, own
		}
	}
	return proposed, false
}

// asked reports whether a person wrote the prompt of a task. A model wrote that of a delegated task and of one that a chat
// created, and a fork has what its source has read.
func asked(t *v1alpha1.Task) bool {
	return t.Status.Delegation == nil && t.Annotations[v1alpha1.AnnotationForkSourceUID] == "" && t.Labels[v1alpha1.LabelCreatedBy] != v1alpha1.CreatedByOrchestrator
}
