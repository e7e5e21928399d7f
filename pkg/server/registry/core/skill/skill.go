// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skill serves skills: knowledge that agents read before they work. The status of a skill follows from its spec, so it is
// written with it, and no controller is needed.
package skill

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Definition returns the resource skills.
func Definition(guard resource.Guard[*v1alpha1.Skill]) resource.Resource {
	return &resource.Definition[*v1alpha1.Skill]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("skills"),
		Kind:       "Skill",
		Singular:   "skill",
		Roles:      resource.Roles{Readers: resource.Users(resource.Worker), Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "skills:read", Write: "skills:write"},
		ShortNames: []string{"sk"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Skill]{
			{Path: "status.phase", Value: func(s *v1alpha1.Skill) string { return string(s.Status.Phase) }},
		},
		Columns: columns(),
		Guard:   guard,
		Shape:   resource.Kept[*v1alpha1.Skill]{Validate: validate, Status: status},
		Subresources: []resource.Subresource[*v1alpha1.Skill]{
			{Name: "content", Methods: []string{http.MethodGet}, Connect: content, Readers: resource.Users(resource.Worker)},
		},
	}
}

// content serves the skill's Markdown text.
func content(ctx context.Context, p resource.Parent[*v1alpha1.Skill], _ rest.Responder) (http.Handler, error) {
	text := p.Object.Spec.Content.Inline
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if _, err := w.Write([]byte(text)); err != nil {
			klog.FromContext(ctx).V(2).Info("The client did not read a skill's content to its end", "err", err)
		}
	}), nil
}
