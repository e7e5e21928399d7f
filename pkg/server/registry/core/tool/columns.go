// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Tool] {
	return []resource.Column[*v1alpha1.Tool]{
		{Name: "Type", Description: "How the tool is called.", Value: func(t *v1alpha1.Tool) any { return kind(t) }},
		{Name: "Endpoint", Description: "The address that is called.", Value: func(t *v1alpha1.Tool) any { return endpoint(t) }},
		{Name: "Available", Type: "boolean", Description: "Whether the controller can reach it.", Value: func(t *v1alpha1.Tool) any { return t.Status.Available }},
		{Name: "Description", Wide: true, Description: "What the tool does.", Value: func(t *v1alpha1.Tool) any { return t.Spec.Description }},
		{Name: "Last Check", Wide: true, Description: "The time since it was last tried.", Value: func(t *v1alpha1.Tool) any { return t.Status.LastCheck }},
		{Name: "Error", Wide: true, Description: "Why it is not available.", Value: func(t *v1alpha1.Tool) any { return t.Status.Error }},
	}
}

func kind(t *v1alpha1.Tool) string {
	switch {
	case t.Spec.MCP != nil:
		return "MCP"
	case t.Spec.HTTP != nil:
		return "HTTP " + string(t.Spec.HTTP.Method)
	}
	return ""
}

func endpoint(t *v1alpha1.Tool) string {
	switch {
	case t.Status.Endpoint != "":
		return t.Status.Endpoint
	case t.Spec.MCP != nil && t.Spec.MCP.Remote != nil:
		return t.Spec.MCP.Remote.URL
	case t.Spec.HTTP != nil:
		return t.Spec.HTTP.URL
	}
	return ""
}
