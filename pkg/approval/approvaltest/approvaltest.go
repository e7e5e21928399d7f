// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approvaltest makes the approvals that tests of several packages use.
package approvaltest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Noon is the time at which the tests take place.
func Noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// Asked returns a pending approval of attempt 1 of the task t, with the UID u, of the namespace ns.
func Asked(id string, seq int64, change ...func(*v1alpha1.Approval)) v1alpha1.Approval {
	a := v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: id},
		Spec:       v1alpha1.ApprovalSpec{TaskName: "t", TaskUID: "u", TargetTool: "drop", Binding: &v1alpha1.ApprovalBinding{TaskAttempt: 1}},
		Status:     v1alpha1.ApprovalStatus{State: v1alpha1.ApprovalPending, RequestedSeq: seq},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// Expiring makes an approval expire the given time after Noon.
func Expiring(after time.Duration) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) { a.Spec.ExpiresAt = &metav1.MicroTime{Time: Noon().Add(after)} }
}

// OfAttempt makes an approval belong to an attempt.
func OfAttempt(n int32) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) { a.Spec.Binding = &v1alpha1.ApprovalBinding{TaskAttempt: n} }
}

// OfTool binds an approval to a generation of the Tool with the UID.
func OfTool(uid types.UID, generation int64) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) {
		a.Spec.Binding.Tool = &v1alpha1.ApprovalTool{UID: uid, Generation: generation}
	}
}

// Tool returns a generation of the Tool drop, which approvals of Asked are for, with the UID.
func Tool(uid types.UID, generation int64) *v1alpha1.Tool {
	return &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "drop", UID: uid, Generation: generation}}
}
