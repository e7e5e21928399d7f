// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent serves agents: models and coding agents with their instructions.
package agent

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/support"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// Options are what agents need besides the object store. All other fields may be zero.
type Options struct {
	// Stored is what is stored of agents. It is required.
	Stored *resource.Stored[*v1alpha1.Agent]
	// LocalRuns is set if runs are processes on the server's machine. Users are then warned about settings that only
	// a cluster can honour.
	LocalRuns bool
	// Tool reads a Tool in the context's namespace. Without it there are no warnings about unknown tool names.
	Tool func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	// Providers is what is stored of connector providers, whose tools agents may name.
	Providers *resource.Stored[*v1alpha1.ConnectorProvider]
	// Caller returns the task of a worker that makes a request; nil for other callers.
	Caller func(ctx context.Context) (*v1alpha1.Task, error)
}

// Resource is the resource agents.
type Resource struct {
	*resource.Definition[*v1alpha1.Agent]
	o Options

	making sync.Mutex // held while a worker creates an agent, so that their number stays within its limit
}

// New makes the resource agents.
func New(o Options, guard resource.Guard[*v1alpha1.Agent]) *Resource {
	r := &Resource{o: o}
	r.Definition = &resource.Definition[*v1alpha1.Agent]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("agents"),
		Kind:       "Agent",
		Singular:   "agent",
		Roles:      resource.Roles{Readers: resource.Users(resource.Worker), Makers: []resource.Role{resource.Worker}, Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "agents:read", Write: "agents:write"},
		ShortNames: []string{"ag"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Agent]{
			{Path: "spec.providerRef.name", Value: provider},
			{Path: "spec.model.name", Value: model},
		},
		Columns: columns(),
		Guard:   guard,
		Stored:  o.Stored,
		Shape:   resource.Kept[*v1alpha1.Agent]{Begin: r.beginCreate, Validate: validate, Warnings: o.warnings},
	}
	return r
}

// warnings describe which settings of the agent this version or this host does not support.
func (o Options) warnings(ctx context.Context, a, old *v1alpha1.Agent) []string {
	if old != nil && equality.Semantic.DeepEqual(a.Spec, old.Spec) {
		return nil
	}
	list := support.IdleOfAgent(&a.Spec)
	if text := support.NoDelegates(&a.Spec); text != "" {
		list = append(list, text)
	}
	for _, g := range support.Agent(&a.Spec) {
		text := g.String()
		if g.Refused {
			text += "; until then tasks of this agent are refused"
		}
		list = append(list, text)
	}
	if o.LocalRuns {
		var p v1alpha1.ExecutionPlacement
		if a.Spec.Execution != nil {
			p = *a.Spec.Execution
		}
		list = append(list, support.Local("spec", p, a.Spec.Resources)...)
	}
	path := field.NewPath("spec", "tools")
	for i, t := range a.Spec.Tools {
		if (t.Enabled == nil || *t.Enabled) && o.unknown(ctx, t.Name) {
			list = append(list, support.UnknownTool(path.Index(i).Child("name").String(), t.Name))
		}
	}
	if c := a.Spec.Coordination; c != nil && a.Spec.Runtime == nil { // the tools of coding agents are not known here
		path = field.NewPath("spec", "coordination", "approvalRequiredTools")
		for i, name := range c.ApprovalRequiredTools {
			if o.unknown(ctx, name) {
				list = append(list, support.UnknownGate(path.Index(i).String(), name))
			}
		}
	}
	return list
}

// unknown reports whether a name is neither that of a built-in tool nor that of a Tool or of a ConnectorProvider's tool of the namespace.
func (o Options) unknown(ctx context.Context, name string) bool {
	if o.Tool == nil || builtin.Has(name) {
		return false
	}
	if _, err := o.Tool(ctx, name); !apierrors.IsNotFound(err) {
		return false
	}
	found := false
	err := o.Providers.Select(ctx, request.NamespaceValue(ctx), fields.Everything(), func(p *v1alpha1.ConnectorProvider) error {
		found = found || connector.HTTPTool(p, name) != nil
		return nil
	})
	return err == nil && !found
}

func provider(a *v1alpha1.Agent) string {
	if a.Spec.ProviderRef == nil {
		return ""
	}
	return a.Spec.ProviderRef.Name
}

func model(a *v1alpha1.Agent) string {
	if a.Spec.Model == nil {
		return ""
	}
	return a.Spec.Model.Name
}
