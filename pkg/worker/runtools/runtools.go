// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtools makes the tools that the plan of a run names: the built-in ones, which get what the run lets them use, and those of
// Tool objects, with their credentials. The loop of a task of type ai calls them, and so does a coding agent, through its worker.
package runtools

import (
	"context"
	"errors"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/tool/connector"
	"github.com/platform-ai/platform/pkg/worker/tool/custom"
	"github.com/platform-ai/platform/pkg/worker/tool/mcp"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
	"github.com/platform-ai/platform/pkg/worker/tools"
)

// Options are what tools get beside the run.
type Options struct {
	// Ask asks people to approve a call, for the tool request_approval.
	Ask func(ctx context.Context, r tool.ApprovalRequest) (tool.ApprovalAnswer, error)
	// Env are further variables for programs.
	Env []string
}

// run is the run whose tools are made.
type run struct{ *runner.Run }

// Of returns the plan's tools. The error is a *runner.Error if one of them cannot be made.
func Of(ctx context.Context, of *runner.Run, p *plan.Plan, o Options) (*tool.Catalogue, error) {
	r := run{of}
	own, err := r.Variables()
	if err != nil {
		return nil, err
	}
	tokens, err := r.childToken()
	if err != nil {
		return nil, err
	}
	given := toolkit.Given{
		WorkDir: r.WorkDir, HomeDir: r.HomeDir, TempDir: r.TempDir, ArtifactsDir: r.ArtifactsDir, Path: r.Getenv("PATH"), Env: slices.Concat(own, r.Env(), p.CoordinationEnv(r.Task), o.Env), Policy: r.Policy, Limits: r.CodeLimits,
		FetchAllow: r.FetchAllow, SearchURL: r.SearchURL, SearchKey: r.Credentials.SearchKey, Ask: o.Ask, UpdatePlan: r.updatePlan,
		API: r.API, Task: r.Task, Attempt: r.Attempt, Clock: r.Clock, ChildToken: tokens,
		Recall: r.recallTool, Propose: r.propose, SearchTranscript: r.searchTranscript,
		Heads: &toolkit.Heads{},
	}
	var list []tool.Tool
	for _, use := range p.Tools {
		t, err := r.tool(ctx, use, given)
		refused, ok := errors.AsType[*tool.RefusedError](err)
		if ok && refused.Retry {
			return nil, runner.Unavailable(refused.Reason, "tool %s: %w", use.Name, err)
		}
		if ok {
			return nil, runner.Fail(refused.Reason, "tool %s: %w", use.Name, err)
		}
		if err != nil {
			return nil, runner.Fail(v1alpha1.ReasonToolInvalid, "tool %s: %w", use.Name, err)
		}
		list = append(list, t)
	}
	catalogue, err := tool.NewCatalogue(list...)
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonToolInvalid, "%w", err)
	}
	return catalogue, nil
}

// tool makes a tool of a Tool object, or a built-in one.
func (r run) tool(ctx context.Context, use plan.Tool, given toolkit.Given) (tool.Tool, error) {
	if o := use.Object; o != nil {
		key, guard, trace := runspec.CredentialKey(o.Namespace, o.Name), egress.Guard{Allow: r.FetchAllow}, toolkit.Traceparent(r.Task)
		credential, hosts := r.Credentials.ToolKeys[key], r.Credentials.Hosts.Tools[key]
		if o.Spec.MCP != nil {
			return mcp.Open(ctx, use.Name, &o.Spec, mcp.Options{Credential: credential, Hosts: hosts, Traceparent: trace, Guard: guard})
		}
		return custom.New(use.Name, o.Spec, custom.Options{Credential: credential, Hosts: hosts, Traceparent: trace, Guard: guard})
	}
	if c := use.Connector; c != nil {
		return connector.New(c.Tool, given)
	}
	t, ok := tools.Find(use.Name)
	if !ok {
		return nil, errors.New("neither a Tool nor built in")
	}
	return t.New(given)
}

// Objects returns the Tools of the plan by their names.
func Objects(p *plan.Plan) map[string]*v1alpha1.Tool {
	all := map[string]*v1alpha1.Tool{}
	for _, use := range p.Tools {
		if use.Object != nil {
			all[use.Name] = use.Object
		}
	}
	return all
}
