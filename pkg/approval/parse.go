// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/visible"
)

// IDOf returns the id of the approval that e concerns, empty if there is none.
func IDOf(e *v1alpha1.ExecutionEvent) string {
	p, _ := parse(e)
	return p.ApprovalID
}

// parse reads the content of an approval event. It reports false for any other event.
func parse(e *v1alpha1.ExecutionEvent) (payload, bool) {
	var p payload
	if !event.Approval(e.Type) || e.Content == nil || json.Unmarshal(e.Content.Raw, &p) != nil {
		return payload{}, false
	}
	p.ApprovalID = cmp.Or(p.ApprovalID, p.ID)
	owner := streamOwner(e)
	if p.ApprovalID == "" || p.TaskUID != "" && owner != "" && p.TaskUID != owner {
		return payload{}, false
	}
	p.TaskUID = cmp.Or(p.TaskUID, owner)
	return p, true
}

// streamOwner returns the UID of the task whose stream holds the event.
func streamOwner(e *v1alpha1.ExecutionEvent) types.UID {
	for i := range e.OwnerReferences {
		if e.OwnerReferences[i].Kind == "Task" {
			return e.OwnerReferences[i].UID
		}
	}
	return ""
}

// rootUID returns the UID of the task at the top of the tree. It is empty if an older server stored the request of a
// delegated task.
func rootUID(e *v1alpha1.ExecutionEvent, p *payload) types.UID {
	if p.RootTaskUID == "" && cmp.Or(e.RootTask, e.TaskName) == e.TaskName {
		return p.TaskUID
	}
	return p.RootTaskUID
}

func requested(e *v1alpha1.ExecutionEvent, p *payload) *v1alpha1.Approval {
	a := &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: p.ApprovalID, UID: uid(e.Namespace, p.ApprovalID),
			ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp,
			Labels:          taskLabel(e.TaskName),
			OwnerReferences: slices.Clone(e.OwnerReferences),
		},
		Spec: v1alpha1.ApprovalSpec{
			TaskName: e.TaskName, RootTask: e.RootTask, RootTaskUID: rootUID(e, p), TaskUID: p.TaskUID, RequestedBy: p.RequestedBy,
			Action: visible.Plain(p.Action), RiskSummary: visible.Plain(p.RiskSummary),
			TargetTool: p.TargetTool, ToolCallID: cmp.Or(p.ToolCallID, e.ToolCallID),
			TargetArgsDigest: p.TargetArgsDigest, TargetSpecDigest: p.TargetSpecDigest, TargetArgsPreview: p.TargetArgsPreview,
			Timeout: p.Timeout, Binding: p.Binding,
		},
		Status: v1alpha1.ApprovalStatus{State: v1alpha1.ApprovalPending, RequestedSeq: e.Seq},
	}
	a.Status.ArgumentsExact = Exact(&a.Spec)
	if p.Severity != "" {
		a.Spec.Severity = risk(p.Severity)
	}
	if at, err := time.Parse(time.RFC3339, p.ExpiresAt); err == nil {
		a.Spec.ExpiresAt = &metav1.MicroTime{Time: at.UTC()}
	}
	return a
}

func decided(a *v1alpha1.Approval, e *v1alpha1.ExecutionEvent, p *payload, state v1alpha1.ApprovalState) *v1alpha1.Approval {
	a = a.DeepCopy()
	a.ResourceVersion = e.ResourceVersion
	a.Status.State, a.Status.DecisionSeq = state, e.Seq
	a.Status.DecisionReason, a.Status.DecisionActor = visible.Plain(p.Reason), p.Actor
	if !e.CreatedAt.IsZero() {
		a.Status.DecisionTime = e.CreatedAt.DeepCopy()
	}
	if state == v1alpha1.ApprovalApproved {
		a.Status.ExecutionOutcome = v1alpha1.ApprovalNotStarted
	}
	return a
}

// rank orders outcomes by time. The highest rank is final; 0 is no outcome.
func rank(o v1alpha1.ApprovalOutcome) int {
	switch o {
	case v1alpha1.ApprovalNotStarted:
		return 1
	case v1alpha1.ApprovalRunning:
		return 2
	case v1alpha1.ApprovalSucceeded, v1alpha1.ApprovalFailed, v1alpha1.ApprovalUnknown:
		return 3
	}
	return 0
}

// maxLabelValue is the maximum length of a Kubernetes label value, in bytes.
const maxLabelValue = 63

// taskLabel returns labels by which approvals can be selected by task, if the task's name fits into a label.
func taskLabel(task string) map[string]string {
	if task == "" || len(task) > maxLabelValue {
		return nil
	}
	return map[string]string{v1alpha1.LabelTask: task}
}

// uid derives the UID of an approval from its id, so that it is the same on every read. It has the form of
// a UUID of version 8 (RFC 9562), whose bits are free.
func uid(namespace, id string) types.UID {
	sum := sha256.Sum256([]byte("approval\x00" + namespace + "\x00" + id))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
