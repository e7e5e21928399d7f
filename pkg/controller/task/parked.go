// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// parked comes before the step run. While an approval of the current attempt is pending, the
// task is parked: its condition and message report it, its timeout does not run, and it takes
// no slot. This step expires approvals that nobody decided in time, and cancels those that an
// earlier attempt left pending or whose Tool has changed.
//
// The timeout of a task does not run either while everything that it delegated and that has not
// ended waits for people: it can do nothing about that. It is not parked for it, because its run
// may do other work; the reason of its condition says it, which also tells the task above.
type parked struct {
	now func() time.Time
	// park stops or resumes the clock of a run.
	park func(ctx context.Context, r executor.Ref, parked bool) error
	// pending lists the pending approvals of a task that the cache has.
	pending func(context.Context, *v1alpha1.Task) ([]v1alpha1.Approval, error)
	// tool reads the Tool of an approval as it is stored; nil if it is gone.
	tool func(context.Context, *v1alpha1.Approval) (*v1alpha1.Tool, error)
	// children lists what the task delegated and the cache has.
	children func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	append   appendFunc
	next     func(context.Context, *v1alpha1.Task) error
}

func (s parked) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase != v1alpha1.TaskRunning {
		return s.next(ctx, t)
	}
	pending, err := s.settle(ctx, t)
	if err != nil {
		return err
	}
	waits, err := s.childrenWait(ctx, t)
	if err != nil {
		return err
	}
	err = s.park(ctx, runRef(t), len(pending) > 0 || waits)
	if err != nil && !errors.Is(err, executor.ErrNotFound) { // not started yet, or gone
		return fmt.Errorf("park: %w", err)
	}
	tellParked(t, pending)
	tellChildrenWait(t, waits)
	err = s.next(ctx, t)
	if t.Status.Phase != v1alpha1.TaskRunning || !errors.Is(err, step.ErrDone) {
		return err
	}
	if left, ok := approval.NextExpiry(pending, s.now()); ok {
		return step.Wait{After: max(left, time.Millisecond), Reason: "an approval expires"} // 0 would mean never
	}
	return err
}

// childrenWait reports whether the task has delegated something that has not ended, and all of it waits for people.
func (s parked) childrenWait(ctx context.Context, t *v1alpha1.Task) (bool, error) {
	if !t.Status.HasChildren {
		return false, nil
	}
	list, err := s.children(ctx, t)
	if err != nil {
		return false, err
	}
	waits := false
	for i := range list {
		c := &list[i]
		if !belongs(c) || c.Status.Phase.Terminal() {
			continue
		}
		if waits = isParked(c) || saysChildrenWait(c); !waits {
			return false, nil
		}
	}
	return waits, nil
}

// saysChildrenWait reports whether the status says that all children wait for people.
func saysChildrenWait(t *v1alpha1.Task) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	return c != nil && c.Reason == v1alpha1.ReasonChildrenWaitForApproval
}

// tellChildrenWait reports it, unless the task waits itself.
func tellChildrenWait(t *v1alpha1.Task, waits bool) {
	switch {
	case isParked(t):
	case waits:
		setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForApproval, metav1.ConditionFalse, v1alpha1.ReasonChildrenWaitForApproval,
			"all delegated tasks that have not ended wait for approvals; the timeout does not run meanwhile")
	case saysChildrenWait(t):
		setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForApproval, metav1.ConditionFalse, v1alpha1.ReasonApprovalDecided, "a delegated task goes on")
	}
}

// settle ends the approvals that can no longer be decided, and returns the others in the order
// of their requests.
func (s parked) settle(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Approval, error) {
	pending, err := s.pending(ctx, t)
	if err != nil {
		return nil, err
	}
	tools := map[types.NamespacedName]*v1alpha1.Tool{}
	for i := range pending {
		key, bound := approval.ToolOf(&pending[i])
		if _, read := tools[key]; read || !bound {
			continue
		}
		if tools[key], err = s.tool(ctx, &pending[i]); err != nil {
			return nil, err
		}
	}
	waiting, over := approval.Settle(pending, t.Status.Attempts, s.now(), func(key types.NamespacedName) *v1alpha1.Tool { return tools[key] })
	if len(over) == 0 {
		return waiting, nil
	}
	return waiting, s.append(ctx, t, over...)
}

// andMore begins how many more approvals a task waits for than the one it names.
const andMore = " (and "

// tellParked reports in the task's status what it waits for.
func tellParked(t *v1alpha1.Task, pending []v1alpha1.Approval) {
	if len(pending) == 0 {
		notParked(t, "no approval is pending")
		return
	}
	a := &pending[0]
	message := fmt.Sprintf("waiting for approval %s to call %s", a.Name, a.Spec.TargetTool)
	if a.Spec.Action != "" {
		message += ": " + a.Spec.Action
	}
	if more := len(pending) - 1; more > 0 {
		message += fmt.Sprintf("%s%d more)", andMore, more)
	}
	t.Status.Message = message
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForApproval, metav1.ConditionTrue, v1alpha1.ReasonApprovalPending, message)
}

// notParked reverts what tellParked set.
func notParked(t *v1alpha1.Task, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
	if c == nil || c.Status == metav1.ConditionFalse {
		return
	}
	if t.Status.Message == c.Message {
		t.Status.Message = ""
	}
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingForApproval, metav1.ConditionFalse, v1alpha1.ReasonApprovalDecided, message)
}

func isParked(t *v1alpha1.Task) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval)
}

// approvalTask is the index of approvals by the UID of their task. The cache holds pending ones
// only.
const approvalTask = "spec.taskUID"

func taskOfApproval(o client.Object) []string {
	if a, ok := o.(*v1alpha1.Approval); ok {
		return []string{string(a.Spec.TaskUID)}
	}
	return nil
}

// changedTool lets only those events of Tools pass after which a Tool is not what it was.
func changedTool() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(ctrlevent.CreateEvent) bool { return false },
		UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
	}
}

// waitForTool wakes the tasks that wait for an approval of a call of the Tool.
func (w approvalAPI) waitForTool(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.ApprovalList
	if err := w.List(ctx, &list); err != nil {
		klog.FromContext(ctx).Error(err, "Approvals of calls of a changed Tool cannot be looked for", "tool", klog.KObj(o))
		return nil
	}
	var wake []reconcile.Request
	for i := range list.Items {
		if key, ok := approval.ToolOf(&list.Items[i]); ok && key == client.ObjectKeyFromObject(o) {
			wake = append(wake, waitingTask(ctx, &list.Items[i])...)
		}
	}
	return wake
}

// waitingTask wakes a task when one of its approvals becomes pending or ends.
func waitingTask(_ context.Context, o client.Object) []reconcile.Request {
	a, ok := o.(*v1alpha1.Approval)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TaskName}}}
}
