// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// originPage is how many events are read at a time, and originPages how many times. A run with more calls counts as one
// that read text from elsewhere.
const (
	originPage  = 500
	originPages = 20
)

// origin returns where a proposal of a run comes from, by the events of the run. The worker stores the event of its
// call before it proposes. If the events cannot be read, or lack the call, the run counts as one that read text from
// elsewhere.
func (r *Resource) origin(ctx context.Context, t *v1alpha1.Task) *v1alpha1.MemoryOrigin {
	o := &v1alpha1.MemoryOrigin{TaskName: t.Name, TaskUID: t.UID, RequestedBy: t.Annotations[v1alpha1.AnnotationRequestedBy], OutsideText: true}
	stream := eventlog.Stream{Namespace: t.Namespace, Task: t.Name, UID: t.UID}
	outside, after := false, int64(0)
	for range originPages {
		page, err := r.o.Log.TaskPage(ctx, stream, after, originPage, []v1alpha1.EventType{v1alpha1.EventToolCallStarted})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("The events of a run that proposes could not be read", "task", klog.KObj(t), "err", err)
			return o
		}
		outside = outside || len(page.Gaps) > 0
		for _, e := range page.Events {
			if !slices.Contains(ownTools(), e.ToolName) {
				outside = true
				continue
			}
			if slices.Contains(proposingTools(), e.ToolName) {
				o.Sequence, o.ToolCallID = e.Seq, e.ToolCallID
			}
		}
		if after = page.Next; len(page.Events) < originPage {
			o.OutsideText = outside || o.Sequence == 0
			return o
		}
	}
	return o
}

// proposingTools are the tools that propose.
func proposingTools() []string { return []string{"remember", "propose_memory"} }

// ownTools are the tools that bring nothing but memories into a run.
func ownTools() []string { return append(proposingTools(), "recall_memory") }
