// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/registry/core/budget"
	"github.com/platform-ai/platform/pkg/server/registry/core/connection"
	"github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/core/repositorymonitor"
	"github.com/platform-ai/platform/pkg/server/registry/core/task"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/agentrequest"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/toolcall"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Stored is what is stored of the resources that others need. It is made before them, and before what else the server needs them for,
// so that nobody has to be completed later.
type Stored struct {
	Tasks     stored.Tasks
	Agents    *resource.Stored[*v1alpha1.Agent]
	Sessions  *resource.Stored[*v1alpha1.Session]
	Tools     *resource.Stored[*v1alpha1.Tool]
	Providers *resource.Stored[*v1alpha1.Provider]
	Budgets   *resource.Stored[*v1alpha1.Budget]
	Memories  *resource.Stored[*v1alpha1.Memory]
	Proposals *resource.Stored[*v1alpha1.MemoryProposal]
	// Deliveries are those of code hosts to the webhook.
	Deliveries *resource.Stored[*v1alpha1.CodeHostDelivery]
	Monitors   repositorymonitor.Stored
	Gateways   gateway.Stored
	Connectors connection.Stored
	// Effects are the requests that calls of tools of connectors make, and that change something elsewhere.
	Effects *resource.Stored[*v1alpha1.ToolEffect]

	tasks *task.Resource
}

// Asking returns the task whose agent asks a model. It is for the time after All.
func (s *Stored) Asking(ctx context.Context, name string) (*agentrequest.Run, error) {
	return s.tasks.Asking(ctx, name)
}

// NewStored returns what is stored of the resources of one server, which All binds.
func NewStored() *Stored {
	return &Stored{
		Tasks:     stored.NewTasks(),
		Agents:    resource.NewStored[*v1alpha1.Agent](v1alpha1.Resource("agents")),
		Sessions:  resource.NewStored[*v1alpha1.Session](v1alpha1.Resource("sessions")),
		Tools:     resource.NewStored[*v1alpha1.Tool](v1alpha1.Resource("tools")),
		Providers: resource.NewStored[*v1alpha1.Provider](v1alpha1.Resource("providers")),
		Budgets:   resource.NewStored[*v1alpha1.Budget](v1alpha1.Resource("budgets")),
		Memories:  resource.NewStored[*v1alpha1.Memory](v1alpha1.Resource("memories")),
		Proposals: resource.NewStored[*v1alpha1.MemoryProposal](v1alpha1.Resource("memoryproposals")),

		Deliveries: resource.NewStored[*v1alpha1.CodeHostDelivery](v1alpha1.Resource("codehostdeliveries")),
		Monitors:   repositorymonitor.NewStored(),
		Gateways:   gateway.NewStored(),
		Connectors: connection.NewStored(),
		Effects:    resource.NewStored[*v1alpha1.ToolEffect](v1alpha1.Resource("tooleffects")),
	}
}

// Judge returns what puts calls of tools to the policies of the server.
func (s *Stored) Judge() toolcall.Judge {
	return toolcall.Judge{Tool: s.Tools.Get, Config: s.Tools.Config}
}

// ModelRequests returns what reads what is stored about model requests.
func (s *Stored) ModelRequests() modelrequest.Readers {
	return modelrequest.Readers{
		Task: s.Tasks.Get, Agent: s.Agents.Get, Provider: s.Providers.Get, UpdateProvider: s.Providers.UpdateStored, Budgets: budget.Of(s.Budgets),
	}
}
