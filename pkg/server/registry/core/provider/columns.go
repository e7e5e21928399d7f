// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

func columns() []resource.Column[*v1alpha1.Provider] {
	return []resource.Column[*v1alpha1.Provider]{
		{Name: "Type", Description: "The wire protocol.", Value: func(p *v1alpha1.Provider) any { return string(p.Spec.Type) }},
		{Name: "Model", Description: "The default model.", Value: func(p *v1alpha1.Provider) any { return p.Spec.DefaultModel }},
		{Name: "Ready", Type: "boolean", Description: "Whether the Secret and its key exist.", Value: func(p *v1alpha1.Provider) any { return p.Status.Ready }},
		{Name: "URL", Wide: true, Description: "The address of the server.", Value: func(p *v1alpha1.Provider) any { return p.Spec.BaseURL }},
		{Name: "Secret", Wide: true, Description: "The Secret with the API key.", Value: func(p *v1alpha1.Provider) any { return p.Spec.SecretRef.Name }},
		{Name: "Message", Wide: true, Description: "Why it is not ready.", Value: func(p *v1alpha1.Provider) any { return p.Status.Message }},
	}
}
