// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session serves sessions: conversations that tasks, chats and
// gateways continue.
package session

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/resource"
	"github.com/platform-ai/platform/pkg/registry/timeline"
)

// Definition is the resource sessions, with pages and streams of the events of
// their tasks. Its rules are all tags of the type.
func Definition(server *timeline.Server) resource.Resource {
	events := timelines{server}
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
		Shape:   resource.Kept[*v1alpha1.Session]{AfterDelete: events.ended},
		Subresources: []resource.Subresource[*v1alpha1.Session]{
			{Name: "events", Methods: []string{http.MethodGet}, Connect: events.events, New: func() runtime.Object { return &v1alpha1.ExecutionEventPage{} }},
			{Name: "stream", Methods: []string{http.MethodGet}, Connect: events.stream},
		},
	}
}
