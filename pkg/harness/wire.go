// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Meta is what a runtime may add to an answer or event; it is not looked at.
type Meta struct {
	Meta json.RawMessage `json:"_meta,omitempty"`
}

// HealthState is how a runtime is.
type HealthState string

// States of health.
const (
	HealthOK        HealthState = "ok"
	HealthDegraded  HealthState = "degraded"
	HealthUnhealthy HealthState = "unhealthy"
)

// Health is the answer of /v2/health.
type Health struct {
	Protocol string      `json:"protocol"`
	Instance string      `json:"instance"`
	Status   HealthState `json:"status"`
	Meta
}

func (h *Health) check() error {
	if !slices.Contains([]HealthState{HealthOK, HealthDegraded, HealthUnhealthy}, h.Status) {
		return fmt.Errorf("status must be ok, degraded or unhealthy")
	}
	return checkHead(h.Protocol, h.Instance)
}

func checkHead(protocol, instance string) error {
	if protocol != Protocol {
		return fmt.Errorf("protocol must be %s", Protocol)
	}
	return checkName("instance", instance)
}

// Capabilities is the answer of /v2/capabilities.
type Capabilities struct {
	Protocol string `json:"protocol"`
	Runtime  struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"runtime"`
	Capabilities v1alpha1.AgentRuntimeCapabilities `json:"capabilities"`
	Meta
}

// Status is the answer of /v2/status.
type Status struct {
	Protocol        string          `json:"protocol"`
	Instance        string          `json:"instance"`
	Lifecycle       Lifecycle       `json:"lifecycle"`
	ControllerEpoch uint64          `json:"controllerEpoch"`
	RunningPrompts  int64           `json:"runningPrompts"`
	Sessions        []SessionStatus `json:"sessions"`
	Meta
}

// Lifecycle says whether a runtime takes on more.
type Lifecycle string

// Lifecycles of a runtime.
const (
	Serving      Lifecycle = "serving"
	DrainingDown Lifecycle = "draining"
)

func (s *Status) check() error {
	if s.Lifecycle != Serving && s.Lifecycle != DrainingDown {
		return fmt.Errorf("lifecycle must be serving or draining")
	}
	if s.ControllerEpoch > maxInteger {
		return fmt.Errorf("controllerEpoch must be at most %d", uint64(maxInteger))
	}
	if s.Sessions == nil {
		return fmt.Errorf("sessions is required")
	}
	for i := range s.Sessions {
		if err := s.Sessions[i].check(); err != nil {
			return fmt.Errorf("sessions[%d]: %w", i, err)
		}
	}
	return checkHead(s.Protocol, s.Instance)
}

// SessionSpec is what a session is created from.
type SessionSpec struct {
	// ProfileDigest is the one that the runtime must have.
	ProfileDigest string                           `json:"profileDigest,omitempty"`
	Model         string                           `json:"model,omitempty"`
	SystemPrompt  string                           `json:"systemPrompt,omitempty"`
	ToolPolicy    *v1alpha1.AgentRuntimeToolPolicy `json:"toolPolicy,omitempty"`
	// Workspace is nil for a session without one.
	Workspace *WorkspaceSpec `json:"workspace,omitempty"`
}

// WorkspaceSpec announces a workspace.
type WorkspaceSpec struct {
	Intent Intent `json:"intent"`
}

// Intent says what a session may do with its workspace.
type Intent string

// Intents.
const (
	IntentRead  Intent = "read"
	IntentWrite Intent = "write"
)

// SessionState is the state of a session.
type SessionState string

// States of sessions.
const (
	SessionPreparing  SessionState = "preparing"
	SessionIdle       SessionState = "idle"
	SessionRunning    SessionState = "running"
	SessionFinalizing SessionState = "finalizing"
	SessionFencedOff  SessionState = "fenced"
)

// SessionStatus describes a session.
type SessionStatus struct {
	ID         string       `json:"id"`
	Generation uint64       `json:"generation"`
	State      SessionState `json:"state"`
	// Commit is that of the workspace; empty before it has come, or without one.
	Commit string `json:"commit,omitempty"`
	// Prompt is the newest one, or nil.
	Prompt *PromptStatus `json:"prompt,omitempty"`
	Meta
}

func (s *SessionStatus) check() error {
	if !slices.Contains([]SessionState{SessionPreparing, SessionIdle, SessionRunning, SessionFinalizing, SessionFencedOff}, s.State) {
		return fmt.Errorf("state must be preparing, idle, running, finalizing or fenced")
	}
	if s.Generation < 1 || s.Generation > maxInteger {
		return fmt.Errorf("generation must be 1 to %d", uint64(maxInteger))
	}
	if s.Commit != "" && !commit.MatchString(s.Commit) {
		return fmt.Errorf("commit must have 40 hexadecimal digits")
	}
	if s.Prompt != nil {
		if err := s.Prompt.check(); err != nil {
			return fmt.Errorf("prompt: %w", err)
		}
	}
	return checkName("id", s.ID)
}

// PromptState says whether a prompt is over.
type PromptState string

// States of prompts.
const (
	PromptRunning    PromptState = "running"
	PromptSettled    PromptState = "settled"
	PromptCancelling PromptState = "cancelling" // only in the answer to a cancellation
)

// PromptStatus describes a prompt.
type PromptStatus struct {
	ID      string      `json:"id"`
	State   PromptState `json:"state"`
	Outcome Outcome     `json:"outcome,omitempty"`
	LastSeq uint64      `json:"lastSeq"`
}

func (p *PromptStatus) check() error {
	switch {
	case p.State != PromptRunning && p.State != PromptSettled:
		return fmt.Errorf("state must be running or settled")
	case (p.State == PromptSettled) != (p.Outcome != ""):
		return fmt.Errorf("outcome must be there if, and only if, the state is settled")
	case p.Outcome != "" && !p.Outcome.known():
		return fmt.Errorf("outcome is not one of the protocol")
	case p.LastSeq > maxInteger:
		return fmt.Errorf("lastSeq must be at most %d", uint64(maxInteger))
	}
	return checkName("id", p.ID)
}

// PromptSpec is what a prompt is started from.
type PromptSpec struct {
	Texts       []string `json:"texts"`
	LeaseMillis int64    `json:"leaseMillis"`
	MaxTurns    int64    `json:"maxTurns,omitempty"`
}

// Lease is a renewal of a lease.
type Lease struct {
	Sequence    uint64 `json:"sequence"`
	LeaseMillis int64  `json:"leaseMillis"`
}

// leaseAnswer is the answer to a renewal.
type leaseAnswer struct {
	Lease
	Meta
}

// Cancellation asks for the end of a prompt.
type Cancellation struct {
	Reason string `json:"reason,omitempty"`
}

// Cancelled is the answer to a cancellation.
type Cancelled struct {
	State PromptState `json:"state"`
	Meta
}

// Decision is what is decided on a permission.
type Decision string

// Decisions.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	// Withdrawn: the prompt ended before somebody decided.
	Withdrawn Decision = "cancelled"
)

// PermissionAnswer answers a question for a permission.
type PermissionAnswer struct {
	Decision Decision `json:"decision"`
	// ArgumentsDigest is the one that was shown.
	ArgumentsDigest string `json:"argumentsDigest"`
	// Message is for the agent.
	Message string `json:"message,omitempty"`
}

// Decided is the answer to a PermissionAnswer.
type Decided struct {
	Decision Decision `json:"decision"`
	Meta
}

// DeltaSpec asks for a delta.
type DeltaSpec struct {
	MaxBytes int64 `json:"maxBytes"`
}

// DeltaStatus describes a delta.
type DeltaStatus struct {
	ID     string `json:"id"`
	Commit string `json:"commit"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	Files  int64  `json:"files"`
	Meta
}

func (d *DeltaStatus) check() error {
	switch {
	case !commit.MatchString(d.Commit):
		return fmt.Errorf("commit must have 40 hexadecimal digits")
	case !digest.MatchString(d.Digest):
		return fmt.Errorf("digest must be sha256: and 64 lower-case hexadecimal digits")
	case d.Bytes < 1 || d.Files < 0:
		return fmt.Errorf("bytes must be at least 1, and files at least 0")
	}
	return checkName("id", d.ID)
}

// Finalization says what became of a delta.
type Finalization struct {
	Delta   string                     `json:"delta"`
	Outcome v1alpha1.TaskDeliveryState `json:"outcome"`
	Commit  string                     `json:"commit,omitempty"`
}

// DrainSpec begins or ends draining.
type DrainSpec struct {
	Drain bool `json:"drain"`
}

// Drained is the answer to a DrainSpec.
type Drained struct {
	Lifecycle      Lifecycle `json:"lifecycle"`
	RunningPrompts int64     `json:"runningPrompts"`
	Meta
}

// Credentials are what an instance without them gets.
type Credentials struct {
	ControllerToken string `json:"controllerToken"`
	// OperationKey is base64 in JSON.
	OperationKey []byte `json:"operationKey"`
}

// Bootstrapped is the answer to Credentials.
type Bootstrapped struct {
	Instance string `json:"instance"`
	Meta
}

// nothing is an answer that says no more than that something was done.
type nothing struct{ Meta }
