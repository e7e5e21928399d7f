// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ai runs tasks of type ai: it makes the models and the tools that the
// plan of the run names, and plays the agent's loop.
package ai

import (
	"context"
	"os"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/agentloop"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/tool"
	"github.com/platform-ai/platform/pkg/worker/tool/approval"
	"github.com/platform-ai/platform/pkg/worker/tool/custom"
	"github.com/platform-ai/platform/pkg/worker/tool/exec"
	"github.com/platform-ai/platform/pkg/worker/tool/file"
	"github.com/platform-ai/platform/pkg/worker/tool/web"
)

// Run asks the model of a task of type ai, with its tools, until it answers.
func Run(ctx context.Context, given *runner.Run) (runner.Result, error) {
	r := &run{given}
	result, err := r.work(ctx)
	return result, failure(err)
}

// run is one run of a task of type ai.
type run struct{ *runner.Run }

func (r *run) work(ctx context.Context) (runner.Result, error) {
	p, err := r.Plan(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	candidates, err := r.candidates(p)
	if err != nil {
		return runner.Result{}, err
	}
	gate := r.gate(p)
	tools, err := r.tools(p, gate)
	if err != nil {
		return runner.Result{}, err
	}
	messages, err := r.conversation(ctx, p.Prompt, p.System())
	if err != nil {
		return runner.Result{}, err
	}
	agentName := ""
	if p.Agent != nil {
		agentName = p.Agent.Name
	}
	result, err := agentloop.Run(ctx, agentloop.Config{
		Candidates: candidates, Tools: tools, Gate: gate, Recorder: r.Recorder, AgentName: agentName, Clock: r.Clock,
		MaxIterations: p.MaxIterations, MaxTokens: p.MaxTokens, Temperature: p.Temperature,
	}, messages)
	u := result.Usage
	return runner.Result{Text: result.Text, Content: map[string]any{
		"iterations": result.Iterations, "stopReason": result.StopReason, "resultLength": len(result.Text),
		"usage": map[string]any{
			"inputTokens": u.InputTokens, "outputTokens": u.OutputTokens, "cachedInputTokens": u.CachedInputTokens,
			"requests": u.Attempts, "requestsWithoutUsage": u.Unreported,
		},
	}}, err
}

// candidates are the clients of the plan's models.
func (r *run) candidates(p *plan.Plan) ([]llm.Candidate, error) {
	var out []llm.Candidate
	for _, c := range p.Candidates {
		provider := c.Provider
		config := openai.Config{
			APIKey:  r.Credentials.ProviderKeys[runspec.CredentialKey(provider.Namespace, provider.Name)],
			BaseURL: provider.Spec.BaseURL, Clock: clock.RealClock{},
		}
		if azure := provider.Spec.Azure; azure != nil {
			config.Azure = &openai.Azure{Deployment: azure.DeploymentName, APIVersion: azure.APIVersion}
		}
		model, err := openai.New(config)
		if err != nil {
			return nil, runner.Fail(v1alpha1.ReasonProviderInvalid, "provider %s: %w", provider.Name, err)
		}
		out = append(out, llm.Candidate{Provider: provider.Name, Name: c.Model, Model: model})
	}
	return out, nil
}

// tools are those of the plan.
func (r *run) tools(p *plan.Plan, gate *agentloop.Gate) (*tool.Catalogue, error) {
	builtin, err := r.builtin(gate)
	if err != nil {
		return nil, err
	}
	var tools []tool.Tool
	for _, use := range p.Tools {
		t := builtin[use.Name]
		if o := use.Object; o != nil {
			t, err = custom.New(use.Name, o.Spec, custom.Options{
				Credential: r.Credentials.ToolKeys[runspec.CredentialKey(o.Namespace, o.Name)], Guard: egress.Guard{Allow: r.FetchAllow},
			})
		}
		if err != nil {
			return nil, runner.Fail(v1alpha1.ReasonToolInvalid, "tool %s: %w", use.Name, err)
		}
		tools = append(tools, t)
	}
	catalogue, err := tool.NewCatalogue(tools...)
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonToolInvalid, "%w", err)
	}
	return catalogue, nil
}

// builtin are the built-in tools by name.
func (r *run) builtin(gate *agentloop.Gate) (map[string]tool.Tool, error) {
	more := []string{r.TempDir}
	if r.ArtifactsDir != "" {
		more = append(more, r.ArtifactsDir)
	}
	roots, err := file.NewRoots(r.WorkDir, more...)
	if err != nil {
		return nil, runner.Misconfigured("%w", err)
	}
	out := map[string]tool.Tool{}
	for _, t := range []tool.Tool{
		file.Read(roots),
		file.Write(roots, r.ArtifactsDir),
		exec.New(exec.Options{
			WorkDir: r.WorkDir, TempDir: r.TempDir, Path: os.Getenv("PATH"), Env: r.Env(), Limits: r.CodeLimits, Sole: true, Clock: clock.RealClock{},
			Policy: r.Policy,
		}),
		web.Fetch(egress.Guard{Allow: r.FetchAllow}),
		web.Search(web.SearchConfig{URL: r.SearchURL, Key: r.Credentials.SearchKey}),
		approval.New(gate.RequestApproval),
	} {
		out[t.Definition().Name] = t
	}
	return out, nil
}
