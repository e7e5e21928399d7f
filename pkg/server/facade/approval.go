// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// approvalRow is an approval as REST clients see it (supplement D1 §2.10).
type approvalRow struct {
	ID                string                    `json:"id"`
	Action            string                    `json:"action"`
	RiskSummary       string                    `json:"riskSummary,omitempty"`
	Severity          v1alpha1.EventSeverity    `json:"severity,omitempty"`
	TargetTool        string                    `json:"targetTool,omitempty"`
	ToolCallID        string                    `json:"toolCallID,omitempty"`
	TaskUID           types.UID                 `json:"taskUID,omitempty"`
	TargetArgsDigest  string                    `json:"targetArgsDigest,omitempty"`
	TargetSpecDigest  string                    `json:"targetSpecDigest,omitempty"`
	TargetArgsPreview *apiextensionsv1.JSON     `json:"targetArgsPreview,omitempty"`
	Status            v1alpha1.ApprovalState    `json:"status"`
	CreatedAt         metav1.Time               `json:"createdAt"`
	ExpiresAt         *metav1.MicroTime         `json:"expiresAt,omitempty"`
	Timeout           string                    `json:"timeout,omitempty"`
	DecisionSeq       int64                     `json:"decisionSeq,omitempty"`
	DecisionTime      *metav1.MicroTime         `json:"decisionTime,omitempty"`
	DecisionReason    string                    `json:"decisionReason,omitempty"`
	DecisionActor     string                    `json:"decisionActor,omitempty"`
	Binding           *v1alpha1.ApprovalBinding `json:"binding,omitempty"`
	ExecutionOutcome  v1alpha1.ApprovalOutcome  `json:"executionOutcome,omitempty"`
	ExecutionReason   string                    `json:"executionReason,omitempty"`
}

func rowOf(a *v1alpha1.Approval) approvalRow {
	s, st := &a.Spec, &a.Status
	return approvalRow{
		ID: a.Name, Action: s.Action, RiskSummary: s.RiskSummary, Severity: s.Severity, TargetTool: s.TargetTool,
		ToolCallID: s.ToolCallID, TaskUID: s.TaskUID, TargetArgsDigest: s.TargetArgsDigest, TargetSpecDigest: s.TargetSpecDigest,
		TargetArgsPreview: s.TargetArgsPreview, Status: st.State, CreatedAt: a.CreationTimestamp, ExpiresAt: s.ExpiresAt,
		Timeout: s.Timeout, DecisionSeq: st.DecisionSeq, DecisionTime: st.DecisionTime, DecisionReason: st.DecisionReason,
		DecisionActor: st.DecisionActor, Binding: s.Binding, ExecutionOutcome: st.ExecutionOutcome, ExecutionReason: st.ExecutionReason,
	}
}

// approvalList is the answer about a task. What it tells of the task says whether a decision is still possible.
type approvalList struct {
	Namespace    string             `json:"namespace"`
	TaskName     string             `json:"taskName"`
	TaskUID      types.UID          `json:"taskUID"`
	TaskPhase    v1alpha1.TaskPhase `json:"taskPhase"`
	TaskDeleting bool               `json:"taskDeleting"`
	Approvals    []approvalRow      `json:"approvals"`
}

func listApprovals(c *call) error {
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	var t v1alpha1.Task
	if err := c.fetch(native{method: http.MethodGet, path: in(ns, "tasks", c.params["id"])}, &t); err != nil {
		return err
	}
	var list v1alpha1.ApprovalList
	q := url.Values{"fieldSelector": {"spec.taskUID=" + string(t.UID)}}
	if err := c.fetch(native{method: http.MethodGet, path: in(ns, "approvals"), query: q}, &list); err != nil {
		return err
	}
	out := approvalList{
		Namespace: ns, TaskName: t.Name, TaskUID: t.UID, TaskPhase: t.Status.Phase, TaskDeleting: t.DeletionTimestamp != nil,
		Approvals: make([]approvalRow, len(list.Items)),
	}
	for i := range list.Items {
		out.Approvals[i] = rowOf(&list.Items[i])
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// decide takes the body of spec 1 §2.10. Natively the decision names the task, so one about another task's approval
// finds none.
func decide(c *call) error {
	body, err := c.object(false, nil)
	if err != nil {
		return err
	}
	var d struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if err := strictly(body, &d); err != nil {
		return err
	}
	if d.Decision == "" {
		return badRequest("decision: is required")
	}
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	n, err := post(in(ns, "approvals", c.params["approvalID"], "decision"), &v1alpha1.ApprovalDecision{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ApprovalDecision"},
		Spec:     v1alpha1.ApprovalDecisionSpec{Decision: d.Decision, Reason: d.Reason, TaskName: c.params["id"]},
	})
	if err != nil {
		return err
	}
	var a v1alpha1.Approval
	if err := c.fetch(n, &a); err != nil {
		return err
	}
	reply(c.w, http.StatusOK, rowOf(&a))
	return nil
}

// strictly reads an object into a struct that must know all of its members.
func strictly(object map[string]json.RawMessage, into any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return badRequest("the body is not JSON: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest("the body is not what is expected here: %v", err)
	}
	return nil
}
