// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
)

// payload is the content of approval events of all types.
type payload struct {
	ApprovalID        string                    `json:"approvalID,omitempty"`
	ID                string                    `json:"id,omitempty"` // read only: another name of approvalID
	TaskUID           types.UID                 `json:"taskUID,omitempty"`
	RootTaskUID       types.UID                 `json:"rootTaskUID,omitempty"`
	RequestedBy       string                    `json:"requestedBy,omitempty"`
	Action            string                    `json:"action,omitempty"`
	RiskSummary       string                    `json:"riskSummary,omitempty"`
	Severity          string                    `json:"severity,omitempty"`
	TargetTool        string                    `json:"targetTool,omitempty"`
	ToolCallID        string                    `json:"toolCallID,omitempty"`
	TargetArgsDigest  string                    `json:"targetArgsDigest,omitempty"`
	TargetSpecDigest  string                    `json:"targetSpecDigest,omitempty"`
	TargetArgsPreview *apiextensionsv1.JSON     `json:"targetArgsPreview,omitempty"`
	Timeout           string                    `json:"timeout,omitempty"`
	ExpiresAt         string                    `json:"expiresAt,omitempty"`
	Binding           *v1alpha1.ApprovalBinding `json:"binding,omitempty"`

	Decision v1alpha1.ApprovalState   `json:"decision,omitempty"`
	Outcome  v1alpha1.ApprovalOutcome `json:"executionOutcome,omitempty"`
	Reason   string                   `json:"reason,omitempty"`
	Actor    string                   `json:"actor,omitempty"`
}

// RequestEvent returns the event that requests the approval described by spec, for a task in the namespace.
// TaskName, TaskUID, TargetTool and TargetArgsDigest must be set. Free texts are redacted and cut to
// MaxTextChars.
func RequestEvent(namespace string, spec v1alpha1.ApprovalSpec) *v1alpha1.ExecutionEvent {
	id := ID(namespace, spec.TaskName, spec.TaskUID, spec.TargetTool, spec.TargetArgsDigest, spec.TargetSpecDigest)
	p := payload{
		ApprovalID: id, TaskUID: spec.TaskUID, RequestedBy: spec.RequestedBy,
		Action: text(spec.Action), RiskSummary: text(spec.RiskSummary), Severity: string(spec.Severity),
		TargetTool: spec.TargetTool, ToolCallID: spec.ToolCallID,
		TargetArgsDigest: spec.TargetArgsDigest, TargetSpecDigest: spec.TargetSpecDigest,
		TargetArgsPreview: spec.TargetArgsPreview, Timeout: spec.Timeout, Binding: spec.Binding,
	}
	if spec.ExpiresAt != nil {
		p.ExpiresAt = spec.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	summary := "approval needed to call " + spec.TargetTool
	if p.Action != "" {
		summary += ": " + p.Action
	}
	return &v1alpha1.ExecutionEvent{
		Type: v1alpha1.EventApprovalRequested, Severity: attention(spec.Severity),
		TaskName: spec.TaskName, ToolName: spec.TargetTool, ToolCallID: spec.ToolCallID,
		Summary: summary, Content: p.encode(), DedupKey: RequestKey(id),
	}
}

// Decision is how an approval ended.
type Decision struct {
	// Actor is the name of the user who decided; it is empty after expiry and cancellation.
	Actor string
	// Reason explains the decision; it is redacted and cut to MaxTextChars.
	Reason string
	// TaskUID is the task's UID.
	TaskUID types.UID
	// Tool is the tool of the waiting call; it may be empty.
	Tool string
}

// DecisionEvent returns the event of type t that ends the approval id. t must be one of the four types that
// decide.
func DecisionEvent(t v1alpha1.EventType, id string, d Decision) *v1alpha1.ExecutionEvent {
	state := StateOf(t)
	p := payload{ApprovalID: id, Decision: state, Reason: text(d.Reason), Actor: d.Actor, TaskUID: d.TaskUID}
	summary := "approval " + string(state)
	if d.Tool != "" {
		summary += " of a call of " + d.Tool
	}
	if d.Actor != "" {
		summary += " by " + d.Actor
	}
	if p.Reason != "" {
		summary += ": " + p.Reason
	}
	severity := v1alpha1.SeverityWarning
	if state == v1alpha1.ApprovalApproved {
		severity = v1alpha1.SeverityInfo
	}
	return &v1alpha1.ExecutionEvent{
		Type: t, Severity: severity, ToolName: d.Tool, ToolCallID: id,
		Summary: summary, Content: p.encode(), DedupKey: DecisionKey(id),
	}
}

// Outcome describes the result of an approved call.
type Outcome struct {
	Outcome v1alpha1.ApprovalOutcome
	// Reason explains it; it is redacted and cut to MaxTextChars.
	Reason string
	// TaskUID is the task's UID.
	TaskUID types.UID
	// Tool is the tool that was called; it may be empty.
	Tool string
}

// OutcomeEvent returns the event that reports the outcome of the call of the approval id.
func OutcomeEvent(id string, o Outcome) *v1alpha1.ExecutionEvent {
	p := payload{ApprovalID: id, Outcome: o.Outcome, Reason: text(o.Reason), TaskUID: o.TaskUID}
	summary := "approved call: " + string(o.Outcome)
	if o.Tool != "" {
		summary = "approved call of " + o.Tool + ": " + string(o.Outcome)
	}
	severity := v1alpha1.SeverityInfo
	switch o.Outcome {
	case v1alpha1.ApprovalFailed, v1alpha1.ApprovalUnknown:
		severity = v1alpha1.SeverityWarning
	}
	return &v1alpha1.ExecutionEvent{
		Type: v1alpha1.EventApprovalExecutionUpdated, Severity: severity, ToolName: o.Tool, ToolCallID: id,
		Summary: summary, Content: p.encode(), DedupKey: OutcomeKey(id, o.Outcome),
	}
}

func (p payload) encode() *apiextensionsv1.JSON {
	b, err := json.Marshal(p)
	if err != nil { // the preview is not JSON; the other members always encode
		p.TargetArgsPreview = nil
		if b, err = json.Marshal(p); err != nil {
			return nil
		}
	}
	return &apiextensionsv1.JSON{Raw: b}
}

// attention returns the severity of a request event: warning, unless the tool names another one.
func attention(s v1alpha1.EventSeverity) v1alpha1.EventSeverity {
	if s == "" {
		return v1alpha1.SeverityWarning
	}
	return severity(string(s))
}

// severity returns the severity of the event that reports a risk.
func severity(s string) v1alpha1.EventSeverity {
	r := risk(s)
	if r == v1alpha1.SeverityCritical {
		return v1alpha1.SeverityError
	}
	return r
}

// risk parses the severity of an approval. An unknown one becomes info.
func risk(s string) v1alpha1.EventSeverity {
	r := v1alpha1.EventSeverity(strings.ToLower(strings.TrimSpace(s)))
	if r == v1alpha1.SeverityCritical {
		return r
	}
	return event.NormalizeSeverity(r)
}

// text returns a free text without secrets, of at most MaxTextChars characters. It is redacted before it is
// cut, because half a secret may not look like one.
func text(s string) string {
	s, _ = redact.Text(s)
	if len(s) <= MaxTextChars || utf8.RuneCountInString(s) <= MaxTextChars {
		return s
	}
	s, _ = redact.Text(cut(s, MaxTextChars-1))
	return cut(s, MaxTextChars-1) + "…"
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
