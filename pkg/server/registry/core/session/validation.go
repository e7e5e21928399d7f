// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Limits of one append, in messages and bytes.
const (
	maxMessages = 1000
	maxID       = 256
	maxContent  = 1 << 20
	maxInput    = 256 << 10
	maxCalls    = 128
	maxMetadata = 64
	maxValue    = 4096
)

// validateMessages checks messages against the rules of a conversation. Order
// and time are set by the server; the client's values are ignored.
func validateMessages(messages []v1alpha1.SessionMessage) field.ErrorList {
	path := field.NewPath("items")
	switch n := len(messages); {
	case n == 0:
		return field.ErrorList{field.Required(path, "at least one message is needed")}
	case n > maxMessages:
		return field.ErrorList{field.TooMany(path, n, maxMessages)}
	}
	var errs field.ErrorList
	for i := range messages {
		errs = append(errs, validateMessage(&messages[i], path.Index(i))...)
	}
	return errs
}

func validateMessage(m *v1alpha1.SessionMessage, path *field.Path) field.ErrorList {
	errs := validateRole(m, path)
	if strings.ContainsFunc(m.ID, unicode.IsControl) {
		errs = append(errs, field.Invalid(path.Child("id"), m.ID, "must have no control characters"))
	}
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"id", m.ID, maxID},
		{"content", m.Content, maxContent},
		{"name", m.Name, maxID},
		{"toolCallID", m.ToolCallID, maxID},
		{"sourceType", m.SourceType, maxID},
		{"sourceRef", m.SourceRef, maxID},
	} {
		if len(f.value) > f.limit {
			errs = append(errs, tooLong(path.Child(f.name), f.limit))
		}
	}
	if m.Input != nil && len(m.Input.Raw) > maxInput {
		errs = append(errs, tooLong(path.Child("input"), maxInput))
	}
	errs = append(errs, validateCalls(m.ToolCalls, path.Child("toolCalls"))...)
	if n := len(m.Metadata); n > maxMetadata {
		errs = append(errs, field.TooMany(path.Child("metadata"), n, maxMetadata))
	}
	for k, v := range m.Metadata {
		if len(k) > maxID || len(v) > maxValue {
			errs = append(errs, field.Invalid(path.Child("metadata"), field.OmitValueType{},
				fmt.Sprintf("a key must be at most %d bytes, a value at most %d", maxID, maxValue)))
			break
		}
	}
	return errs
}

// validateRole checks the fields that depend on the role.
func validateRole(m *v1alpha1.SessionMessage, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	content := path.Child("content")
	switch m.Role {
	case v1alpha1.RoleSystem, v1alpha1.RoleUser:
		if strings.TrimSpace(m.Content) == "" {
			errs = append(errs, field.Required(content, fmt.Sprintf("a message of role %s needs it", m.Role)))
		}
	case v1alpha1.RoleAssistant:
		if strings.TrimSpace(m.Content) == "" && len(m.ToolCalls) == 0 {
			errs = append(errs, field.Required(content, "a message of role assistant needs it, or toolCalls"))
		}
	case v1alpha1.RoleTool:
		if m.ToolCallID == "" {
			errs = append(errs, field.Required(path.Child("toolCallID"), "a message of role tool needs it"))
		}
	case "":
		return field.ErrorList{field.Required(path.Child("role"), "")}
	default:
		return field.ErrorList{field.NotSupported(path.Child("role"), m.Role, []v1alpha1.MessageRole{
			v1alpha1.RoleSystem, v1alpha1.RoleUser, v1alpha1.RoleAssistant, v1alpha1.RoleTool,
		})}
	}
	if m.Role != v1alpha1.RoleAssistant && len(m.ToolCalls) > 0 {
		errs = append(errs, field.Forbidden(path.Child("toolCalls"), "is for messages of role assistant"))
	}
	if m.Role != v1alpha1.RoleTool && m.ToolCallID != "" {
		errs = append(errs, field.Forbidden(path.Child("toolCallID"), "is for messages of role tool"))
	}
	return errs
}

func validateCalls(calls []v1alpha1.MessageToolCall, path *field.Path) field.ErrorList {
	if n := len(calls); n > maxCalls {
		return field.ErrorList{field.TooMany(path, n, maxCalls)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, c := range calls {
		at := path.Index(i)
		switch {
		case c.ID == "":
			errs = append(errs, field.Required(at.Child("id"), ""))
		case len(c.ID) > maxID:
			errs = append(errs, tooLong(at.Child("id"), maxID))
		case seen[c.ID]:
			errs = append(errs, field.Duplicate(at.Child("id"), c.ID))
		}
		seen[c.ID] = true
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case len(c.Name) > maxID:
			errs = append(errs, tooLong(at.Child("name"), maxID))
		}
		if len(c.Arguments) > maxInput {
			errs = append(errs, tooLong(at.Child("arguments"), maxInput))
		}
	}
	return errs
}

// tooLong leaves the value out of the error: it may be long, and it may be
// secret.
func tooLong(path *field.Path, limit int) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must be at most %d bytes", limit))
}
