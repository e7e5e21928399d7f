// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// cooling describes a cool-down in one word and a time.
func cooling(p *v1alpha1.Provider) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAvailable)
	if p.Status.CoolDownUntil == nil || c == nil {
		return ""
	}
	return c.Reason + " until " + p.Status.CoolDownUntil.UTC().Format("15:04:05Z")
}

func columns() []resource.Column[*v1alpha1.Provider] {
	return []resource.Column[*v1alpha1.Provider]{
		{Name: "Type", Description: "The wire protocol.", Value: func(p *v1alpha1.Provider) any { return string(p.Spec.Type) }},
		{Name: "Model", Description: "The default model.", Value: func(p *v1alpha1.Provider) any { return p.Spec.DefaultModel }},
		{Name: "Ready", Type: "boolean", Description: "Whether the Secret and its key exist.", Value: func(p *v1alpha1.Provider) any { return p.Status.Ready }},
		{Name: "Cooling", Description: "Why runs ask it last for now, and until when; empty if they do not.", Value: func(p *v1alpha1.Provider) any { return cooling(p) }},
		{Name: "URL", Wide: true, Description: "The address of the server.", Value: func(p *v1alpha1.Provider) any { return p.Spec.BaseURL }},
		{Name: "Secret", Wide: true, Description: "The Secret with the API key.", Value: func(p *v1alpha1.Provider) any { return p.Spec.SecretRef.Name }},
		{Name: "Message", Wide: true, Description: "Why it is not ready.", Value: func(p *v1alpha1.Provider) any { return p.Status.Message }},
	}
}
