// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package taskresult reads results of tasks that have parts. A result is plain text, or a structured result: a JSON object whose member
// version is 1. A model or a command writes it as its answer, and coordinators read its parts by themselves.
package taskresult

import (
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// MaxSummary is how long the summary of a structured result may be, in bytes.
const MaxSummary = 32 << 10

// Version is that of structured results.
const Version = 1

// Parse reads a structured result; nil for plain text. Members that have another type than they should are left out.
func Parse(text string) *v1alpha1.TaskStructuredResult {
	object := members(text)
	if object == nil {
		return nil
	}
	r := &v1alpha1.TaskStructuredResult{Version: Version}
	for name, into := range map[string]any{
		"summary": &r.Summary, "verdict": &r.Verdict, "feedback": &r.Feedback, "files": &r.Files, "baseSHA": &r.BaseSHA, "headSHA": &r.HeadSHA, "diff": &r.Diff,
		"pushBranch": &r.PushBranch, "pushError": &r.PushError, "artifacts": &r.Artifacts, "data": &r.Data, "metadata": &r.Metadata,
	} {
		if raw, ok := object[name]; ok {
			read(raw, into)
		}
	}
	if r.Verdict != v1alpha1.VerdictApproved && r.Verdict != v1alpha1.VerdictChangesNeeded {
		r.Verdict = ""
	}
	return r
}

// read decodes a member, or leaves the zero value.
func read(raw json.RawMessage, into any) {
	switch into := into.(type) {
	case *[]string:
		readList(raw, into)
	case *[]v1alpha1.TaskResultArtifact:
		readList(raw, into)
	default:
		_ = json.Unmarshal(raw, into) // a value of another type changes nothing of these types
	}
}

// readList decodes a list, or nothing of it.
func readList[T any](raw json.RawMessage, into *[]T) {
	var list []T
	if json.Unmarshal(raw, &list) == nil {
		*into = list
	}
}

// WithoutDiff returns a result without the diff that a structured one may have.
func WithoutDiff(text string) string {
	object := members(text)
	if _, has := object["diff"]; !has {
		return text
	}
	delete(object, "diff")
	shorter, err := json.Marshal(object)
	if err != nil { // it was parsed
		return text
	}
	return string(shorter)
}

// members returns the members of a structured result; nil for plain text.
func members(text string) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &object) != nil || string(object["version"]) != "1" {
		return nil
	}
	return object
}
