// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// offspring ends the work of a task with regard to what it delegated.
type offspring struct {
	stored      func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	cancelBelow func(ctx context.Context, t *v1alpha1.Task, why string) error
}

// before returns an endFunc that ends a task only when its children have ended or were detached.
func (s offspring) before(end endFunc) endFunc {
	return func(ctx context.Context, t *v1alpha1.Task, o outcome) error {
		if t.Status.HasChildren {
			waits, err := s.settle(ctx, t, o)
			if err != nil {
				return err
			}
			if waits {
				return step.ErrDone // the end of a child will wake the task
			}
		}
		return end(ctx, t, o)
	}
}

// settle reports whether the task must wait with its end. A task that succeeded waits for its children; in all other
// cases they are cancelled.
func (s offspring) settle(ctx context.Context, t *v1alpha1.Task, o outcome) (waits bool, err error) {
	if o.phase != v1alpha1.TaskSucceeded {
		return false, s.cancelBelow(ctx, t, "the task above ended: "+o.message)
	}
	list, err := s.stored(ctx, t)
	if err != nil {
		return false, err
	}
	live := alive(list)
	if len(live) == 0 {
		waitsForNoChild(t, v1alpha1.ReasonChildrenEnded, "all delegated tasks have ended or were detached")
		return false, nil
	}
	message := fmt.Sprintf("the work is done; %d delegated tasks have not ended: %s", len(live), strings.Join(live[:min(len(live), 5)], ", "))
	t.Status.Message = message
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForChildren, metav1.ConditionTrue, v1alpha1.ReasonChildrenActive, message)
	return true, nil
}

// alive returns the names of the children that belong to their parent and have not ended.
func alive(children []v1alpha1.Task) []string {
	var names []string
	for i := range children {
		if c := &children[i]; belongs(c) && !c.Status.Phase.Terminal() {
			names = append(names, c.Name)
		}
	}
	return names
}

// waitsForNoChild reverts what settle reported.
func waitsForNoChild(t *v1alpha1.Task, reason, message string) {
	if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForChildren) {
		setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForChildren, metav1.ConditionFalse, reason, message)
	}
}
