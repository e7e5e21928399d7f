// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Group has the resources of the platform that workers use.
type Group struct{ client rest.Interface }

// RESTClient returns the client for requests that have no method here.
func (g Group) RESTClient() rest.Interface { return g.client }

// Tasks returns the tasks of a namespace.
func (g Group) Tasks(namespace string) Tasks {
	return Tasks{Resource[v1alpha1.Task, *v1alpha1.Task]{g.client, "tasks", namespace}}
}

// Approvals returns the approvals of a namespace.
func (g Group) Approvals(namespace string) Approvals {
	return Approvals{Resource[v1alpha1.Approval, *v1alpha1.Approval]{g.client, "approvals", namespace}}
}

// Providers returns the providers of a namespace.
func (g Group) Providers(namespace string) Providers {
	return Providers{Resource[v1alpha1.Provider, *v1alpha1.Provider]{g.client, "providers", namespace}}
}

// Agents returns the agents of a namespace.
func (g Group) Agents(namespace string) Resource[v1alpha1.Agent, *v1alpha1.Agent] {
	return Resource[v1alpha1.Agent, *v1alpha1.Agent]{g.client, "agents", namespace}
}

// Skills returns the skills of a namespace.
func (g Group) Skills(namespace string) Resource[v1alpha1.Skill, *v1alpha1.Skill] {
	return Resource[v1alpha1.Skill, *v1alpha1.Skill]{g.client, "skills", namespace}
}

// ConnectorProviders returns the connector providers of a namespace.
func (g Group) ConnectorProviders(namespace string) Resource[v1alpha1.ConnectorProvider, *v1alpha1.ConnectorProvider] {
	return Resource[v1alpha1.ConnectorProvider, *v1alpha1.ConnectorProvider]{g.client, "connectorproviders", namespace}
}

// Tools returns the tools of a namespace.
func (g Group) Tools(namespace string) Resource[v1alpha1.Tool, *v1alpha1.Tool] {
	return Resource[v1alpha1.Tool, *v1alpha1.Tool]{g.client, "tools", namespace}
}

// ToolCalls judges calls of tools in a namespace.
func (g Group) ToolCalls(namespace string) Resource[v1alpha1.ToolCall, *v1alpha1.ToolCall] {
	return Resource[v1alpha1.ToolCall, *v1alpha1.ToolCall]{g.client, "toolcalls", namespace}
}

// MemoryProposals returns the proposals of a namespace.
func (g Group) MemoryProposals(namespace string) Resource[v1alpha1.MemoryProposal, *v1alpha1.MemoryProposal] {
	return Resource[v1alpha1.MemoryProposal, *v1alpha1.MemoryProposal]{g.client, "memoryproposals", namespace}
}

// MemorySearches searches the memories of a namespace.
func (g Group) MemorySearches(namespace string) Resource[v1alpha1.MemorySearch, *v1alpha1.MemorySearch] {
	return Resource[v1alpha1.MemorySearch, *v1alpha1.MemorySearch]{g.client, "memorysearches", namespace}
}

// TranscriptSearches searches the transcripts of a namespace.
func (g Group) TranscriptSearches(namespace string) Resource[v1alpha1.TranscriptSearch, *v1alpha1.TranscriptSearch] {
	return Resource[v1alpha1.TranscriptSearch, *v1alpha1.TranscriptSearch]{g.client, "transcriptsearches", namespace}
}

// Approvals are the approvals of a namespace.
type Approvals struct {
	Resource[v1alpha1.Approval, *v1alpha1.Approval]
}

// List returns the approvals that the options select.
func (r Approvals) List(ctx context.Context, opts metav1.ListOptions) (*v1alpha1.ApprovalList, error) {
	var l v1alpha1.ApprovalList
	return &l, r.list(ctx, opts, &l)
}

// Providers are the providers of a namespace.
type Providers struct {
	Resource[v1alpha1.Provider, *v1alpha1.Provider]
}

// List returns the providers that the options select.
func (r Providers) List(ctx context.Context, opts metav1.ListOptions) (*v1alpha1.ProviderList, error) {
	var l v1alpha1.ProviderList
	return &l, r.list(ctx, opts, &l)
}
