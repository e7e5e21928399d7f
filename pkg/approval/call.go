// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Call is one tool call for which an attempt of a task requests approval.
type Call struct {
	Namespace, Task string
	TaskUID         types.UID
	// Attempt is the number of the attempt, and Request is the number of the request in the attempt.
	Attempt, Request int
	// Tool, Description and Parameters describe the tool as the model sees it.
	Tool, Description string
	Parameters        json.RawMessage
	// Object is the Tool that the call uses; nil for a built-in tool.
	Object *v1alpha1.Tool
	// Effect is the ToolEffect that was reserved for the call; empty for a call without one.
	Effect string
	// ID is the model's id of the waiting call.
	ID string
	// Arguments are the arguments as people may see them; the caller has already removed the secrets of the
	// run. ArgsDigest is the digest of the original arguments.
	Arguments  []byte
	ArgsDigest string
	// Action and RiskSummary are the agent's own words; both may be empty.
	Action, RiskSummary string
	// Severity may be empty.
	Severity v1alpha1.EventSeverity
	// Timeout is how long a decision may take; 0 means no limit.
	Timeout time.Duration
}

// Event returns the event that requests approval of the call, and the id of the approval. The server
// computes the time of expiry from the timeout, by its own clock.
func (c Call) Event() (e *v1alpha1.ExecutionEvent, id string, err error) {
	digest, err := c.specDigest()
	if err != nil {
		return nil, "", err
	}
	call := sha256.Sum256([]byte(c.ID))
	spec := v1alpha1.ApprovalSpec{
		TaskName: c.Task, TaskUID: c.TaskUID, Action: c.Action, RiskSummary: c.RiskSummary, Severity: c.Severity,
		TargetTool: c.Tool, ToolCallID: c.ID, TargetArgsDigest: c.ArgsDigest, TargetSpecDigest: digest,
		TargetArgsPreview: &apiextensionsv1.JSON{Raw: Preview(c.Arguments)},
		Binding: &v1alpha1.ApprovalBinding{
			TaskAttempt: int32(c.Attempt), Request: int32(c.Request), Tool: c.bound(), Effect: c.Effect, CallIDDigest: hex.EncodeToString(call[:]),
		},
	}
	if c.Timeout > 0 {
		spec.Timeout = c.Timeout.String()
	}
	e = RequestEvent(c.Namespace, spec)
	return e, IDOf(e), nil
}

// bound returns the state of the Tool that the call uses.
func (c Call) bound() *v1alpha1.ApprovalTool {
	o := c.Object
	if o == nil {
		return nil
	}
	b := &v1alpha1.ApprovalTool{Namespace: o.Namespace, UID: o.UID, Generation: o.Generation}
	if b.Namespace == c.Namespace {
		b.Namespace = ""
	}
	return b
}

// Survives reports whether an approval of an earlier attempt is still valid for one call of c's tool, with the arguments that
// were approved: the call was not begun, and the tool is the same, both as the model sees it and as an object.
func (c Call) Survives(a *v1alpha1.Approval) bool {
	b := a.Spec.Binding
	if b == nil || b.Request == 0 || a.Status.State != v1alpha1.ApprovalApproved || a.Status.ExecutionOutcome != v1alpha1.ApprovalNotStarted {
		return false
	}
	if a.Spec.TaskUID != c.TaskUID || a.Spec.TargetTool != c.Tool || !ptr.Equal(b.Tool, c.bound()) {
		return false
	}
	c.Attempt, c.Request, c.Effect = int(b.TaskAttempt), int(b.Request), b.Effect
	digest, err := c.specDigest()
	return err == nil && digest == a.Spec.TargetSpecDigest
}

// specDigest binds an approval to the tool as the model sees it, to one request of one attempt, and to the effect of the call. Equal
// calls therefore have different approvals, and an approval used by an earlier call is never used again.
func (c Call) specDigest() (string, error) {
	parts := map[string]any{
		"name": c.Tool, "description": c.Description, "parameters": string(c.Parameters), "attempt": c.Attempt, "request": c.Request,
	}
	if c.Effect != "" {
		parts["effect"] = c.Effect
	}
	raw, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("definition of %s: %w", c.Tool, err)
	}
	return Digest(raw)
}
