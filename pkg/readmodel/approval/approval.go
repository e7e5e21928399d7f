// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval is what approvals are made of: the id that binds one to the
// exact call it is for, the events that ask and decide, and the fold of those
// events into the API's approvals. It is pure.
//
// An approval is asked for with RequestEvent on the stream of its task and
// decided with DecisionEvent. The de-duplication keys of the two make both
// happen once: of all decisions that are appended, by a person, by expiry or by
// cancellation, the stream keeps the first, and the append of any other returns
// that first one. So an appender looks at the type of what it got back.
//
// What came of the approved action is told by ApprovalExecutionUpdated alone, so
// that approvals can be read without reading tool calls. A worker may not append
// it; the server appends it with a tool event (ToolCallStarted, ToolCallCompleted,
// ToolCallFailed) whose content has the member approvalID. A controller that ends
// a task in which an approved call still runs says unknown first.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
)

// MaxTextChars bounds each free text of an approval, in characters (D1 §2.10).
const MaxTextChars = 1024

// ID is the id of an approval: the lower-case hex SHA-256 of what exactly is to
// be approved. Each part goes in with its length before it, so that no two lists
// of parts are the same bytes. specDigest is a part only where there is one.
func ID(namespace, task string, uid types.UID, tool, argsDigest, specDigest string) string {
	parts := []string{namespace, task, string(uid), tool, argsDigest}
	if specDigest != "" {
		parts = append(parts, specDigest)
	}
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// RequestKey is the de-duplication key of the event that asks.
func RequestKey(id string) string { return "approval/" + id + "/requested" }

// DecisionKey is the de-duplication key of the event that decides, whichever way.
func DecisionKey(id string) string { return "approval/" + id + "/decision" }

// OutcomeKey is the de-duplication key of the event that tells an outcome.
func OutcomeKey(id string, o v1alpha1.ApprovalOutcome) string {
	return "approval/" + id + "/execution/" + string(o)
}

// payload is the content of approval events, of all types together.
type payload struct {
	ApprovalID        string                    `json:"approvalID,omitempty"`
	ID                string                    `json:"id,omitempty"` // read only: another name of approvalID
	TaskUID           types.UID                 `json:"taskUID,omitempty"`
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

// RequestEvent asks for the approval that spec describes, of a task in the
// namespace. TaskName, TaskUID, TargetTool and TargetArgsDigest must be set; free
// texts are redacted and cut to MaxTextChars.
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
	// Actor is the user name of who decided; for expiry and cancellation what did.
	Actor string
	// Reason is why, in words; it is redacted and cut to MaxTextChars.
	Reason string
	// TaskUID is the task's UID.
	TaskUID types.UID
	// Tool is the tool that waits; it may be empty.
	Tool string
}

// DecisionEvent ends the approval id in the way that t says, which must be one
// of the four types that decide.
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

// Outcome is how an approved action went.
type Outcome struct {
	Outcome v1alpha1.ApprovalOutcome
	// Reason explains it, in words; it is redacted and cut to MaxTextChars.
	Reason string
	// TaskUID is the task's UID.
	TaskUID types.UID
	// Tool is the tool that was called; it may be empty.
	Tool string
}

// OutcomeEvent tells how the action of the approval id went.
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

// StateOf is the state that an event of type t leads to, empty if t does not decide.
func StateOf(t v1alpha1.EventType) v1alpha1.ApprovalState {
	switch t {
	case v1alpha1.EventApprovalApproved:
		return v1alpha1.ApprovalApproved
	case v1alpha1.EventApprovalDeclined:
		return v1alpha1.ApprovalDeclined
	case v1alpha1.EventApprovalExpired:
		return v1alpha1.ApprovalExpired
	case v1alpha1.EventApprovalCancelled:
		return v1alpha1.ApprovalCancelled
	}
	return ""
}

// EventTypes are the types that approvals are derived from.
func EventTypes() []v1alpha1.EventType {
	return []v1alpha1.EventType{
		v1alpha1.EventApprovalRequested, v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined,
		v1alpha1.EventApprovalExpired, v1alpha1.EventApprovalCancelled, v1alpha1.EventApprovalExecutionUpdated,
	}
}

func (p payload) encode() *apiextensionsv1.JSON {
	b, err := json.Marshal(p)
	if err != nil { // only a preview that is not JSON
		p.TargetArgsPreview = nil
		if b, err = json.Marshal(p); err != nil {
			return nil
		}
	}
	return &apiextensionsv1.JSON{Raw: b}
}

// attention is the severity of an event that asks. It is never below what the
// platform gives to what waits for a person, unless the tool says so.
func attention(s v1alpha1.EventSeverity) v1alpha1.EventSeverity {
	if s == "" {
		return v1alpha1.SeverityWarning
	}
	return severity(string(s))
}

// severity also knows the word that tools use for the highest risk.
func severity(s string) v1alpha1.EventSeverity {
	if s == "critical" {
		return v1alpha1.SeverityError
	}
	return event.NormalizeSeverity(v1alpha1.EventSeverity(s))
}

// text is a free text without secrets, of at most MaxTextChars characters. It
// is redacted first, because half a secret may not look like one.
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
