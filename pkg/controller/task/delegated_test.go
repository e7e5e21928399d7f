// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestDelegatedAgain: what the server allowed when a child was created is decided again before it starts, because agents may
// have changed and the parent may have ended.
func TestDelegatedAgain(t *testing.T) {
	child := func(t *v1alpha1.Task) {
		t.Spec.Type, t.Spec.AgentRef = v1alpha1.TaskTypeAI, &v1alpha1.NamespacedReference{Name: "clerk"}
		t.Status.Delegation = &v1alpha1.TaskDelegation{Parent: "boss", ParentUID: "boss-uid", Depth: 2}
	}
	boss := func(p v1alpha1.TaskPhase) *v1alpha1.Task {
		return &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "boss", UID: "boss-uid"}, Status: v1alpha1.TaskStatus{Phase: p}}
	}
	chief := func(change func(*v1alpha1.AgentCoordination)) *v1alpha1.Agent {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "chief"}}
		a.Spec.Coordination = &v1alpha1.AgentCoordination{Enabled: true, MaxConcurrentChildren: new(int32(7)), AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}}}
		change(a.Spec.Coordination)
		return a
	}
	same := func(*v1alpha1.AgentCoordination) {}
	for _, tc := range []struct {
		name             string
		parent           *v1alpha1.Task
		coordinator      *v1alpha1.Agent
		err, agentErr    error
		want, end, phase string
		siblings         int
	}{
		{name: "as before", parent: boss(v1alpha1.TaskRunning), coordinator: chief(same), want: "done", siblings: 7},
		{name: "the parent is gone", want: "done", end: `ParentEnded: the parent "boss" is gone`, phase: "Cancelled"},
		{name: "the parent has ended", parent: boss(v1alpha1.TaskFailed), coordinator: chief(same), want: "done", end: `ParentEnded: the parent "boss" is Failed`, phase: "Cancelled"},
		{name: "the agent is gone", parent: boss(v1alpha1.TaskRunning), want: "done", end: "CoordinationDisabled: the parent has no agent that may delegate", phase: "Failed"},
		{
			name: "may not delegate any more", parent: boss(v1alpha1.TaskRunning), coordinator: chief(func(c *v1alpha1.AgentCoordination) { c.Enabled = false }), want: "done",
			end: `CoordinationDisabled: agent "chief" may not delegate: its spec.coordination.enabled is not set`, phase: "Failed",
		},
		{
			name: "less deep", parent: boss(v1alpha1.TaskRunning), coordinator: chief(func(c *v1alpha1.AgentCoordination) { c.MaxDepth = new(int32(1)) }), want: "done",
			end: `DepthExceeded: the task would be 2 levels below the root, and agent "chief" allows 1 (spec.coordination.maxDepth)`, phase: "Failed",
		},
		{
			name: "not on the list any more", parent: boss(v1alpha1.TaskRunning), want: "done", phase: "Failed",
			coordinator: chief(func(c *v1alpha1.AgentCoordination) { c.AllowedAgents = []v1alpha1.NamespacedReference{{Name: "x"}} }),
			end:         `AgentNotAllowed: agent "n/clerk" is not among those that agent "chief" may delegate to (spec.coordination.allowedAgents): n/x`,
		},
		{name: "nobody knows the parent", err: errBoom, want: "boom"},
		{name: "nobody knows the agent", parent: boss(v1alpha1.TaskRunning), coordinator: chief(same), agentErr: errBoom, want: "agent: boom"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rules := delegated{
				parent: func(context.Context, *v1alpha1.Task) (*v1alpha1.Task, *v1alpha1.Agent, error) {
					return tc.parent, tc.coordinator, tc.err
				},
				agentOf: func(context.Context, *v1alpha1.Task) (*v1alpha1.Agent, error) { return nil, tc.agentErr },
			}
			l := &eventLog{}
			siblings, left := 0, false
			nothing := func(context.Context, *v1alpha1.Task) error { return nil }
			s := admit{
				credentials: noCredentials,
				append:      l.append, leaveSlot: nothing, end: l.finish, lockSession: nothing, takePlace: noPlace, leavePlace: nothing, takeSlot: nothing, now: noon, newID: func() types.UID { return "job" },
				resolve:    func(context.Context, *v1alpha1.Task) (*resolved, error) { return &resolved{agentName: "clerk"}, nil },
				checkChild: rules.check,
				takeChild:  func(_ context.Context, _ *v1alpha1.Task, limit int) error { siblings = limit; return nil },
				leaveChild: func(context.Context, *v1alpha1.Task) error { left = true; return nil },
			}
			k := task(pending, child)
			outcomeIs(t, s.do(t.Context(), k), tc.want)
			end, phase := "", ""
			if l.end != nil {
				end, phase = l.end.reason+": "+l.end.message, string(l.end.phase)
			}
			if end != tc.end || phase != tc.phase || siblings != tc.siblings || left != (tc.siblings == 0) {
				t.Errorf("end %q (%s), want %q (%s); %d siblings, slot given back: %t", end, phase, tc.end, tc.phase, siblings, left)
			}
			if tc.siblings > 0 && k.Status.Phase != v1alpha1.TaskRunning {
				t.Errorf("the child is %s", k.Status.Phase)
			}
			detached := task(pending, child, func(t *v1alpha1.Task) { t.Status.Delegation.Detached = true })
			s.checkChild = func(context.Context, *v1alpha1.Task) (int, error) {
				return 0, errors.New("was asked about a detached task")
			}
			outcomeIs(t, s.do(t.Context(), detached), "done")
		})
	}
}
