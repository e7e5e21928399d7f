// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

const (
	// maxContentBytes bounds the content of an approval event, so that it is never
	// cut when it is stored. It is well above what the single limits allow.
	maxContentBytes = 32 << 10
	// maxSkew is how far the requesting worker's clock may be behind the server's.
	maxSkew = time.Minute
)

// Owner is the task to whose stream an event is appended.
type Owner struct {
	Namespace, Task string
	UID             types.UID
	// RootUID is the UID of the task at the top of its tree; it may be empty.
	RootUID types.UID
	// RequestedBy is the name of the user who created the task; it may be empty.
	RequestedBy string
}

// Admit checks an event on its way to the stream of a task and completes it for storage. An approval event
// gets the id of its call, the de-duplication key of that id, the task's UID and the user who created the
// task. A timeout without expiresAt runs from now. Without either, there is no limit on the time of the
// decision. Other events are not changed. If a tool event reports about an approved call, outcome is the
// event to be stored after it; otherwise outcome is nil. Workers report about calls, and the server about
// approvals. The error is a *event.FieldError.
func Admit(e *v1alpha1.ExecutionEvent, o Owner, now time.Time) (outcome *v1alpha1.ExecutionEvent, err error) {
	if !event.Approval(e.Type) {
		return outcomeOf(e, o.UID), nil
	}
	return nil, admit(e, o, now)
}

func admit(e *v1alpha1.ExecutionEvent, o Owner, now time.Time) error {
	p, members, err := decode(e)
	if err != nil {
		return err
	}
	id := cmp.Or(p.ApprovalID, p.ID)
	if !v1alpha1.IsLowerHex(id, digestDigits) {
		return invalid("approvalID", "must be 64 lower-case hexadecimal digits")
	}
	if p.TaskUID != "" && p.TaskUID != o.UID {
		return invalid("taskUID", "must be the UID of the task")
	}
	set := map[string]any{"approvalID": id, "taskUID": o.UID}
	switch e.Type {
	case v1alpha1.EventApprovalRequested:
		err = admitRequest(e, &p, id, o, now, set)
	case v1alpha1.EventApprovalExecutionUpdated:
		if rank(p.Outcome) == 0 {
			return invalid("executionOutcome", "must be not_started, running, succeeded, failed or unknown")
		}
		e.DedupKey = OutcomeKey(id, p.Outcome)
	default:
		set["decision"] = StateOf(e.Type)
		e.ToolCallID, e.DedupKey = id, DecisionKey(id)
	}
	if err == nil {
		err = texts(&p)
	}
	if err != nil {
		return err
	}
	delete(members, "id")
	for k, v := range set {
		if members[k], err = json.Marshal(v); err != nil {
			return invalid(k, err.Error())
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return invalid("", err.Error())
	}
	e.Content = &apiextensionsv1.JSON{Raw: raw}
	return nil
}

func decode(e *v1alpha1.ExecutionEvent) (p payload, members map[string]json.RawMessage, err error) {
	if e.Content == nil {
		return p, nil, invalid("", "is required")
	}
	if len(e.Content.Raw) > maxContentBytes {
		return p, nil, invalid("", fmt.Sprintf("must be at most %d bytes", maxContentBytes))
	}
	var wrong *json.UnmarshalTypeError
	err = json.Unmarshal(e.Content.Raw, &p)
	if errors.As(err, &wrong) && wrong.Field != "" {
		return p, nil, invalid(wrong.Field, "must not be a "+wrong.Value)
	}
	if err != nil || json.Unmarshal(e.Content.Raw, &members) != nil || members == nil {
		return p, nil, invalid("", "must be an object")
	}
	return p, members, nil
}

// digestDigits is the number of digits of a SHA-256 in hexadecimal.
const digestDigits = 64

func admitRequest(e *v1alpha1.ExecutionEvent, p *payload, id string, o Owner, now time.Time, set map[string]any) error {
	switch {
	case p.TargetTool == "" || len(p.TargetTool) > event.MaxLabelBytes:
		return invalid("targetTool", fmt.Sprintf("is required, in at most %d bytes", event.MaxLabelBytes))
	case !v1alpha1.IsLowerHex(p.TargetArgsDigest, digestDigits):
		return invalid("targetArgsDigest", "must be 64 lower-case hexadecimal digits")
	case p.TargetSpecDigest != "" && !v1alpha1.IsLowerHex(p.TargetSpecDigest, digestDigits):
		return invalid("targetSpecDigest", "must be 64 lower-case hexadecimal digits")
	case id != ID(o.Namespace, o.Task, o.UID, p.TargetTool, p.TargetArgsDigest, p.TargetSpecDigest):
		return invalid("approvalID", "is not the id of this call of this task")
	case p.TargetArgsPreview != nil && len(p.TargetArgsPreview.Raw) > MaxPreviewBytes:
		return invalid("targetArgsPreview", fmt.Sprintf("must be at most %d bytes", MaxPreviewBytes))
	}
	if err := admitExpiry(p, now, set); err != nil {
		return err
	}
	e.ToolCallID, e.ToolName = cmp.Or(e.ToolCallID, p.ToolCallID), cmp.Or(e.ToolName, p.TargetTool)
	e.DedupKey = RequestKey(id)
	set["toolCallID"], set["requestedBy"], set["rootTaskUID"] = cmp.Or(p.ToolCallID, e.ToolCallID), o.RequestedBy, cmp.Or(o.RootUID, o.UID)
	return nil
}

func admitExpiry(p *payload, now time.Time, set map[string]any) error {
	if p.Timeout != "" {
		d, err := time.ParseDuration(p.Timeout)
		if err != nil || d <= 0 {
			return invalid("timeout", `must be a positive duration, such as "10m"`)
		}
		if p.ExpiresAt == "" {
			set["expiresAt"] = now.Add(d).UTC().Format(time.RFC3339Nano)
		}
	}
	if p.ExpiresAt == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, p.ExpiresAt)
	switch {
	case err != nil:
		return invalid("expiresAt", `must be a time, such as "2006-01-02T15:04:05Z"`)
	case at.Before(now.Add(-maxSkew)):
		return invalid("expiresAt", "must not be in the past")
	}
	return nil
}

// texts checks the free texts.
func texts(p *payload) error {
	for _, f := range []struct{ name, value string }{
		{"action", p.Action}, {"riskSummary", p.RiskSummary}, {"reason", p.Reason}, {"actor", p.Actor},
	} {
		if utf8.RuneCountInString(f.value) > MaxTextChars {
			return invalid(f.name, fmt.Sprintf("must be at most %d characters", MaxTextChars))
		}
	}
	return nil
}

// OutcomeUnknown is the type of error of a call that may have been carried out.
const OutcomeUnknown = "outcome_unknown"

// outcomeOf returns the outcome event for a tool event of an approved call. Such a tool event has the
// member approvalID in its content. For any other event it returns nil.
func outcomeOf(e *v1alpha1.ExecutionEvent, task types.UID) *v1alpha1.ExecutionEvent {
	o := Outcome{TaskUID: task, Tool: e.ToolName}
	switch e.Type {
	case v1alpha1.EventToolCallStarted:
		o.Outcome = v1alpha1.ApprovalRunning
	case v1alpha1.EventToolCallCompleted:
		o.Outcome = v1alpha1.ApprovalSucceeded
	case v1alpha1.EventToolCallFailed:
		o.Outcome, o.Reason = v1alpha1.ApprovalFailed, e.Summary
	default:
		return nil
	}
	var p struct {
		ApprovalID     string `json:"approvalID"`
		ProgramFailure string `json:"programFailure"`
		ErrorType      string `json:"errorType"`
	}
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &p) != nil || !v1alpha1.IsLowerHex(p.ApprovalID, digestDigits) {
		return nil
	}
	if o.Outcome == v1alpha1.ApprovalFailed && p.ErrorType == OutcomeUnknown {
		o.Outcome = v1alpha1.ApprovalUnknown
	}
	if p.ProgramFailure != "" && o.Outcome == v1alpha1.ApprovalSucceeded { // the call was made, and what it ran failed
		o.Outcome, o.Reason = v1alpha1.ApprovalFailed, p.ProgramFailure
	}
	return OutcomeEvent(p.ApprovalID, o)
}

// invalid returns the error about a member of content, or about content itself if member is empty.
func invalid(member, rule string) error {
	field := "content"
	if member != "" {
		field += "." + member
	}
	return &event.FieldError{Field: field, Rule: rule}
}
