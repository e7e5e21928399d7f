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

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Call is one call of a tool that an attempt of a task asks leave for.
type Call struct {
	Namespace, Task string
	TaskUID         types.UID
	// Attempt is the number of the attempt, and Request that of the request in it.
	Attempt, Request int
	// Tool, Description and Parameters are the tool as the model knows it.
	Tool, Description string
	Parameters        json.RawMessage
	// ID is the model's id of the call that waits.
	ID string
	// Arguments are what people may see of the arguments; secrets of the run are
	// removed already. ArgsDigest is the digest of the arguments themselves.
	Arguments  []byte
	ArgsDigest string
	// Action and RiskSummary are the agent's own words; both may be empty.
	Action, RiskSummary string
	// Severity may be empty.
	Severity v1alpha1.EventSeverity
	// Timeout is how long a decision may take; 0 is without end.
	Timeout time.Duration
}

// Event asks for the approval of the call, and returns its id. The server computes
// the time of expiry from the timeout, by its own clock.
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
		Binding:           &v1alpha1.ApprovalBinding{TaskAttempt: int32(c.Attempt), CallIDDigest: hex.EncodeToString(call[:])},
	}
	if c.Timeout > 0 {
		spec.Timeout = c.Timeout.String()
	}
	e = RequestEvent(c.Namespace, spec)
	return e, IDOf(e), nil
}

// specDigest binds an approval to the tool as the model knows it, and to one
// request of one attempt. So equal calls have different approvals: one that an
// earlier call spent, or that an earlier attempt was given, is never used again.
func (c Call) specDigest() (string, error) {
	raw, err := json.Marshal(map[string]any{
		"name": c.Tool, "description": c.Description, "parameters": string(c.Parameters), "attempt": c.Attempt, "request": c.Request,
	})
	if err != nil {
		return "", fmt.Errorf("definition of %s: %w", c.Tool, err)
	}
	return Digest(raw)
}
