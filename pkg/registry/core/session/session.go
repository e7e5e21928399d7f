// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session serves sessions: conversations that tasks, chats and
// gateways continue.
package session

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/resource"
)

// Definition is the resource sessions. Its rules are all tags of the type.
func Definition() resource.Resource {
	return &resource.Definition[*v1alpha1.Session]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("sessions"),
		Kind:       "Session",
		Singular:   "session",
		ShortNames: []string{"sess"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Session]{
			{Path: "spec.sessionType", Value: func(s *v1alpha1.Session) string { return string(s.Spec.SessionType) }},
			{Path: "status.activeTask", Value: func(s *v1alpha1.Session) string { return s.Status.ActiveTask }},
		},
		Columns: columns(),
		Shape:   resource.Kept[*v1alpha1.Session]{},
	}
}
