// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"context"
	"net/http"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/conversation"
	"github.com/platform-ai/platform/pkg/worker/door"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/tool/mcp"
)

// models are what the agent of a run finds behind its door.
type models struct {
	*door.Door
	// name is the model that is asked first; empty if there is none.
	name string
	// servers is the server of the platform's tools, if the agent has any.
	servers []acp.Server
}

// openDoor opens the door to the run's models and to the server of its tools, which may be nil, and lets the agent reach it. end ends the
// run.
func (r *run) openDoor(ctx context.Context, tools http.Handler, end context.CancelCauseFunc) error {
	d, err := door.Open(door.Options{
		API: r.API, Task: r.Task, MaxRequests: int(plan.MaxTurns(r.Task, r.plan.Agent)), Tools: tools,
		Ended: func(reason, message string) { end(runner.Fail(reason, "%s", message)) },
	})
	if err != nil {
		return runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "%w", err)
	}
	r.door = models{Door: d}
	if tools != nil {
		r.door.servers = []acp.Server{{Name: mcp.ServerName, URL: d.URL(door.ToolsPath), Token: d.Key()}}
	}
	names, err := d.Models(ctx)
	switch {
	case ctx.Err() != nil:
		d.Close()
		return conversation.Stopped(ctx)
	case err != nil: // the agent may have one of its own
		r.Log.Line("the coding agent has no model: %v", err)
	case len(names) > 0:
		r.door.name = names[0]
	}
	if !r.Policy.Off {
		r.Policy.DoorPort = d.Port()
	}
	return nil
}

// models returns what the agent is told of its models.
func (r *run) models() agentprogram.Models {
	m := agentprogram.Models{URL: r.door.URL(""), Key: r.door.Key(), Name: r.door.name}
	if runtime := r.plan.Agent.Spec.Runtime; runtime != nil {
		m.Effort = runtime.DefaultReasoningEffort
	}
	return m
}

// without returns the variables that keep requests to the door out of a proxy.
func (models) without() []string { return []string{"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"} }
