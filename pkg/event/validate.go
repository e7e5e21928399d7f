// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// MaxDedupKeyBytes bounds a de-duplication key.
const MaxDedupKeyBytes = 512

// MaxBodyBytes bounds one submitted event as JSON, before redaction.
const MaxBodyBytes = 256 << 10

// MaxElapsed bounds the time between the start of a worker and an event of it.
const MaxElapsed = 10 * 365 * 24 * time.Hour

// MaxLabelBytes bounds each of agentName, toolName, toolCallID, provider, model
// and stopReason, which are names and not payloads.
const MaxLabelBytes = 512

// ErrInvalid matches every FieldError with errors.Is.
var ErrInvalid = errors.New("invalid event")

// FieldError names a field of an event and the rule that it breaks.
type FieldError struct {
	Field string // JSON name
	Value string // the given value, if it is short and not a payload
	Rule  string
}

// Error states which field breaks which rule.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Rule)
	}
	return fmt.Sprintf("%s: %q: %s", e.Field, e.Value, e.Rule)
}

// Is makes every FieldError an ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Validate checks an event that a producer submitted and returns nil or a *FieldError. It ignores fields
// that the server sets.
func Validate(e *v1alpha1.ExecutionEvent) error {
	switch {
	case e.Type == "":
		return &FieldError{Field: "type", Rule: "is required"}
	case !Known(e.Type):
		return &FieldError{Field: "type", Value: clip(string(e.Type)), Rule: "is not an event type"}
	case e.StreamType != "" && e.StreamType != v1alpha1.StreamTask:
		return &FieldError{Field: "streamType", Value: clip(string(e.StreamType)), Rule: `must be "task"`}
	case len(e.DedupKey) > MaxDedupKeyBytes:
		return &FieldError{Field: "dedupKey", Rule: fmt.Sprintf("must be at most %d bytes", MaxDedupKeyBytes)}
	case e.Attempt < 0:
		return &FieldError{Field: "attempt", Rule: "must not be negative"}
	case e.ElapsedMicros != nil && (*e.ElapsedMicros < 0 || *e.ElapsedMicros > MaxElapsed.Microseconds()):
		return &FieldError{Field: "elapsedMicros", Rule: fmt.Sprintf("must be 0-%d", MaxElapsed.Microseconds())}
	case e.Content != nil && len(e.Content.Raw) > 0 && !json.Valid(e.Content.Raw):
		return &FieldError{Field: "content", Rule: "is not valid JSON"}
	}
	for _, f := range labels(e) {
		if len(*f.value) > MaxLabelBytes {
			return &FieldError{Field: f.name, Rule: fmt.Sprintf("must be at most %d bytes", MaxLabelBytes)}
		}
	}
	for _, f := range counts(e) {
		if *f.value != nil && **f.value < 0 {
			return &FieldError{Field: f.name, Rule: "must not be negative"}
		}
	}
	return nil
}

// label is a short text field.
type label struct {
	name  string
	value *string
}

func labels(e *v1alpha1.ExecutionEvent) [6]label {
	return [...]label{
		{"agentName", &e.AgentName},
		{"toolName", &e.ToolName},
		{"toolCallID", &e.ToolCallID},
		{"provider", &e.Provider},
		{"model", &e.Model},
		{"stopReason", &e.StopReason},
	}
}

// count is a number that a model provider reports.
type count struct {
	name  string
	value **int64
}

func counts(e *v1alpha1.ExecutionEvent) [5]count {
	return [...]count{
		{"inputTokens", &e.InputTokens},
		{"outputTokens", &e.OutputTokens},
		{"cachedInputTokens", &e.CachedInputTokens},
		{"contextWindowUsed", &e.ContextWindowUsed},
		{"contextWindowSize", &e.ContextWindowSize},
	}
}

// clip shortens a value that an error repeats.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}
