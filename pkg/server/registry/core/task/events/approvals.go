// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
)

// admitApprovals checks approval events and completes them for storage. all are the events to
// store: after an event that reports an approved call it inserts the outcome of that call. own[i]
// reports whether all[i] came from the caller; nil means that every event did.
func (r *Events) admitApprovals(t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) (all []*v1alpha1.ExecutionEvent, own []bool, err error) {
	root, _ := stored.Root(t)
	owner := approval.Owner{Namespace: t.Namespace, Task: t.Name, UID: t.UID, RootUID: root, RequestedBy: t.Annotations[v1alpha1.AnnotationRequestedBy]}
	added := false
	for i, e := range events {
		outcome, err := approval.Admit(e, owner, r.o.Clock.Now())
		if err != nil {
			err = apierrors.NewBadRequest(err.Error())
			if len(events) > 1 {
				err = refusal.At(fmt.Sprintf("items[%d]: ", i), err)
			}
			return nil, nil, err
		}
		all, own = append(all, e), append(own, true)
		if outcome != nil {
			all, own = append(all, outcome), append(own, false)
			added = true
		}
	}
	if !added {
		return events, nil, nil
	}
	return all, own, nil
}

// ownOnly removes the events that the server added.
func ownOnly(events []*v1alpha1.ExecutionEvent, own []bool) []*v1alpha1.ExecutionEvent {
	if own == nil {
		return events
	}
	var out []*v1alpha1.ExecutionEvent
	for i, e := range events {
		if own[i] {
			out = append(out, e)
		}
	}
	return out
}
