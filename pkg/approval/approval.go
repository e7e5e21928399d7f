// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval holds all rules about approvals. Servers, controllers, workers and the command line call
// it and add no rule of their own. It has no clock and no store, so the same input gives the same result
// everywhere.
//
// agentloop and worker/runner/codingagent hold gated calls back, and worker/asking asks for them and waits in the worker by watching the
// approval. Meanwhile controller/task stops the clock of the run and ends what nobody decides. registry/core/task
// admits the events, registry/core/approval serves approvals and decisions, and cli is where people decide.
//
//	approval.go  the id of an approval, its de-duplication keys and states
//	call.go      requesting approval of one call (worker)
//	event.go     the events that request, decide and report an outcome
//	admit.go     what the server accepts and stores of such events
//	fold.go      the approvals derived from events
//	parse.go     what one event says of an approval
//	decide.go    a person's decision, and the response to it
//	settle.go    how an approval ends without a decision: expiry, another Tool, or the end of its attempt
//	spend.go     one approval is valid for one call, which a later iteration may make
//	digest.go    the digest of arguments
//	preview.go   arguments without secrets, in bounded size
//	show.go      arguments as a person reads them
//
// An approval is requested by appending the event of Call.Event to the stream of its task. An event of
// DecisionEvent ends it. De-duplication keys make both happen only once: the stream keeps the first
// decision, whether a person, expiry or cancellation made it, and appending another one returns the first.
// A caller that appends a decision must therefore check the type of the event that was returned.
//
// Only ApprovalExecutionUpdated reports the outcome of the approved call, so that approvals can be read
// without reading tool calls. Workers may not append it. The server appends it with each tool event
// (ToolCallStarted, ToolCallCompleted, ToolCallFailed) whose content has the member approvalID. A
// controller that ends an attempt in which an approved call still runs appends the outcome unknown.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// MaxTextChars bounds each free text of an approval, in characters.
const MaxTextChars = 1024

// MaxPending is how many approvals of one task may wait for a decision. An answer of a model has at most 128 calls.
const MaxPending = 256

// ID returns the id of an approval: the lower-case hex SHA-256 of exactly what is to be approved. The
// length of each part precedes it, so that different lists of parts never have the same bytes. An empty
// specDigest is left out.
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

// KeyPrefix returns what the de-duplication keys of all events of an approval begin with.
func KeyPrefix(id string) string { return "approval/" + id + "/" }

// RequestKey returns the de-duplication key of the event that requests an approval.
func RequestKey(id string) string { return KeyPrefix(id) + "requested" }

// DecisionKey returns the de-duplication key of the event that ends an approval. It is the same for every decision.
func DecisionKey(id string) string { return KeyPrefix(id) + "decision" }

// OutcomeKey returns the de-duplication key of the event that reports an outcome.
func OutcomeKey(id string, o v1alpha1.ApprovalOutcome) string {
	return KeyPrefix(id) + "execution/" + string(o)
}

// OutcomeKeys returns the de-duplication keys of all events that report an outcome.
func OutcomeKeys(id string) []string {
	var keys []string
	for _, o := range []v1alpha1.ApprovalOutcome{v1alpha1.ApprovalRunning, v1alpha1.ApprovalSucceeded, v1alpha1.ApprovalFailed, v1alpha1.ApprovalUnknown} {
		keys = append(keys, OutcomeKey(id, o))
	}
	return keys
}

// Verify checks that the id of an approval belongs to the call that the approval shows. The error states
// what differs.
func Verify(a *v1alpha1.Approval) error {
	s := &a.Spec
	if id := ID(a.Namespace, s.TaskName, s.TaskUID, s.TargetTool, s.TargetArgsDigest, s.TargetSpecDigest); id != a.Name {
		return fmt.Errorf("approval %s is not for the call that the server shows with it, whose id is %s", a.Name, id)
	}
	return nil
}

// States lists the states of an approval.
func States() []v1alpha1.ApprovalState {
	return []v1alpha1.ApprovalState{
		v1alpha1.ApprovalPending, v1alpha1.ApprovalApproved, v1alpha1.ApprovalDeclined, v1alpha1.ApprovalExpired, v1alpha1.ApprovalCancelled,
	}
}

// StateOf returns the state to which an event of type t leads, empty if t is not a decision.
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

// PendingChange returns by how much an event of type t changes the number of pending approvals: 1, -1 or 0.
func PendingChange(t v1alpha1.EventType) int64 {
	switch {
	case t == v1alpha1.EventApprovalRequested:
		return 1
	case StateOf(t) != "":
		return -1
	}
	return 0
}

// EventTypes returns the event types from which approvals are derived.
func EventTypes() []v1alpha1.EventType {
	return []v1alpha1.EventType{
		v1alpha1.EventApprovalRequested, v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined,
		v1alpha1.EventApprovalExpired, v1alpha1.EventApprovalCancelled, v1alpha1.EventApprovalExecutionUpdated,
	}
}
