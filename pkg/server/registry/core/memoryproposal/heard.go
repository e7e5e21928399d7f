// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// heardOwn reports whether the session of a task has only what the person who created the task has said in other tasks, and
// their answers, without untrusted text. All of the session counts, also what the task did not read, because an answer
// may repeat what came before it. A session that is too long to look at counts as one with untrusted text.
func (r *Resource) heardOwn(ctx context.Context, t *v1alpha1.Task) bool {
	ref := t.Spec.SessionRef
	if ref == nil {
		return true
	}
	known := map[types.UID]bool{t.UID: true}
	for after, pages := int64(0), 0; pages < originPages; pages++ {
		page, err := r.o.History(ctx, ref.Name, after)
		if apierrors.IsNotFound(err) {
			return true // only people delete sessions
		}
		if err != nil || page.Info.Truncated() {
			return false
		}
		for i := range page.Messages {
			m := &page.Messages[i]
			uid, name := speaker(m)
			if known[uid] {
				continue
			}
			if uid == "" || len(known) > originTasks || !r.spokeOwn(ctx, name, uid, t) {
				return false
			}
			known[uid] = true
		}
		if !page.More {
			return true
		}
		after = page.Messages[len(page.Messages)-1].Order
	}
	return false
}

// spokeOwn reports whether a task that spoke in the session of another one was created by the same person and had no text
// from elsewhere of its own.
func (r *Resource) spokeOwn(ctx context.Context, name string, uid types.UID, other *v1alpha1.Task) bool {
	by := other.Annotations[v1alpha1.AnnotationRequestedBy]
	t, err := r.o.Task(ctx, name)
	if err != nil || t.UID != uid || by == "" || t.Annotations[v1alpha1.AnnotationRequestedBy] != by || !asked(t) {
		return false
	}
	_, own := r.calls(ctx, t)
	return own
}

// speaker returns the UID and the name of the task that a message of a session comes from; empty if it comes from something
// else. The controller, which adds the messages of tasks, chooses these ids; workers add none.
func speaker(m *v1alpha1.SessionMessage) (uid types.UID, name string) {
	rest, ok := strings.CutPrefix(m.ID, "task:")
	id, _, found := strings.Cut(rest, ":")
	if !ok || !found || m.SourceType != "task" {
		return "", ""
	}
	return types.UID(id), m.SourceRef
}
