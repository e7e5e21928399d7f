// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// BenchmarkNamespace reads a namespace of 10,000 decided approvals in 1,000 tasks.
func BenchmarkNamespace(b *testing.B) {
	v := newView(b)
	last := ""
	for i := range 1000 {
		task := fmt.Sprintf("t%d", i)
		var list []*v1alpha1.ExecutionEvent
		for n := range 10 {
			digest, err := approval.Digest(fmt.Append(nil, n))
			if err != nil {
				b.Fatal(err)
			}
			ask := approval.RequestEvent("ns", v1alpha1.ApprovalSpec{TaskName: task, TaskUID: types.UID(task), TargetTool: "exec", TargetArgsDigest: digest, Action: "run a command"})
			last = approval.IDOf(ask)
			list = append(list, ask, approval.DecisionEvent(v1alpha1.EventApprovalApproved, last, approval.Decision{Actor: "bob", TaskUID: types.UID(task)}))
		}
		if _, err := v.log.Append(b.Context(), eventlog.Stream{Namespace: "ns", Task: task, UID: types.UID(task)}, list); err != nil {
			b.Fatal(err)
		}
	}
	ctx := request.WithNamespace(b.Context(), "ns")
	read := func(o internalversion.ListOptions, items int) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				l, err := v.list(ctx, &o)
				if err != nil || len(l.(*v1alpha1.ApprovalList).Items) != items {
					b.Fatal(len(l.(*v1alpha1.ApprovalList).Items), err)
				}
			}
		}
	}
	get := func(forget bool) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if forget {
					v.places.Clear()
				}
				if _, err := v.get(ctx, last); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("list", read(internalversion.ListOptions{}, 10_000))
	b.Run("page", read(internalversion.ListOptions{Limit: 500}, 500))
	b.Run("pending", read(internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(fieldState, "pending")}, 0))
	b.Run("task", read(internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(fieldTask, "t7")}, 10))
	b.Run("get", get(false))
	b.Run("get unseen", get(true))
}
