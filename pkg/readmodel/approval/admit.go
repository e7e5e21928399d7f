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
	// maxSkew is how far the clock of who asks may be behind.
	maxSkew = time.Minute
)

// Owner is the task whose stream gets an event.
type Owner struct {
	Namespace, Task string
	UID             types.UID
	// RequestedBy is the user name of who created the task; it may be empty.
	RequestedBy string
}

// Admit checks an approval event on its way to the stream of a task and makes
// it what is stored: the id is that of the call, the de-duplication key that of
// the id, the task's UID and who created it are the server's. A timeout without
// expiresAt runs from now; without either the decision may take forever. Events
// of other types are left alone. The error is a *event.FieldError.
func Admit(e *v1alpha1.ExecutionEvent, o Owner, now time.Time) error {
	if !event.Approval(e.Type) {
		return nil
	}
	p, members, err := decode(e)
	if err != nil {
		return err
	}
	id := cmp.Or(p.ApprovalID, p.ID)
	if !digest(id) {
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
		return p, nil, invalid(wrong.Field, "is a "+wrong.Value)
	}
	if err != nil || json.Unmarshal(e.Content.Raw, &members) != nil || members == nil {
		return p, nil, invalid("", "must be an object")
	}
	return p, members, nil
}

func admitRequest(e *v1alpha1.ExecutionEvent, p *payload, id string, o Owner, now time.Time, set map[string]any) error {
	switch {
	case p.TargetTool == "" || len(p.TargetTool) > event.MaxLabelBytes:
		return invalid("targetTool", fmt.Sprintf("is required, in at most %d bytes", event.MaxLabelBytes))
	case !digest(p.TargetArgsDigest):
		return invalid("targetArgsDigest", "must be 64 lower-case hexadecimal digits")
	case p.TargetSpecDigest != "" && !digest(p.TargetSpecDigest):
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
	set["toolCallID"], set["requestedBy"] = cmp.Or(p.ToolCallID, e.ToolCallID), o.RequestedBy
	return nil
}

func admitExpiry(p *payload, now time.Time, set map[string]any) error {
	if p.Timeout != "" {
		d, err := time.ParseDuration(p.Timeout)
		if err != nil || d <= 0 {
			return invalid("timeout", `must be a positive duration, as "10m"`)
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
		return invalid("expiresAt", `must be a time, as "2006-01-02T15:04:05Z"`)
	case at.Before(now.Add(-maxSkew)):
		return invalid("expiresAt", "is past")
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

// OutcomeOf is the event that the server appends with a tool event of an approved
// call, which has the member approvalID in its content; nil for any other event.
func OutcomeOf(e *v1alpha1.ExecutionEvent, task types.UID) *v1alpha1.ExecutionEvent {
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
		ApprovalID string `json:"approvalID"`
	}
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &p) != nil || !digest(p.ApprovalID) {
		return nil
	}
	return OutcomeEvent(p.ApprovalID, o)
}

// invalid names a member of content, or content itself.
func invalid(member, rule string) error {
	field := "content"
	if member != "" {
		field += "." + member
	}
	return &event.FieldError{Field: field, Rule: rule}
}

// digest reports whether s has the form of a SHA-256 in hexadecimal.
func digest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
