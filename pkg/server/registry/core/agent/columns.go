// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Agent] {
	return []resource.Column[*v1alpha1.Agent]{
		{Name: "Provider", Description: "The Provider of the model.", Value: func(a *v1alpha1.Agent) any { return provider(a) }},
		{Name: "Model", Description: "The model.", Value: func(a *v1alpha1.Agent) any { return model(a) }},
		{Name: "Ready", Type: "boolean", Description: "Whether all that it refers to was found.", Value: func(a *v1alpha1.Agent) any { return a.Status.Ready }},
		{Name: "Active", Type: "integer", Description: "The number of active tasks.", Value: func(a *v1alpha1.Agent) any { return int64(a.Status.ActiveTasks) }},
		{Name: "Runtime", Wide: true, Description: "The coding agent's runtime.", Value: func(a *v1alpha1.Agent) any { return runtime(a) }},
		{Name: "Tools", Wide: true, Description: "The enabled tools.", Value: func(a *v1alpha1.Agent) any { return tools(a) }},
		{Name: "Last Used", Wide: true, Description: "The time since a task of it last ended.", Value: func(a *v1alpha1.Agent) any { return a.Status.LastUsed }},
	}
}

func runtime(a *v1alpha1.Agent) string {
	switch r := a.Spec.Runtime; {
	case r == nil:
		return ""
	case r.RuntimeRef != nil:
		return r.RuntimeRef.Name
	default:
		return string(r.Type)
	}
}

func tools(a *v1alpha1.Agent) string {
	var names []string
	for _, t := range a.Spec.Tools {
		if t.Enabled == nil || *t.Enabled {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, ",")
}
