// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ai runs tasks of type ai: it resolves what the task refers to through
// the API server, makes the model and the tools, and plays the agent's loop.
package ai

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
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
	p, err := r.plan(ctx, r.Task)
	if err != nil {
		return runner.Result{}, err
	}
	candidates, err := r.candidates(ctx, p)
	if err != nil {
		return runner.Result{}, err
	}
	system, err := r.systemText(ctx, p)
	if err != nil {
		return runner.Result{}, err
	}
	gate := r.gate(p)
	tools, err := r.tools(ctx, p, gate)
	if err != nil {
		return runner.Result{}, err
	}
	messages, err := r.conversation(ctx, p, system)
	if err != nil {
		return runner.Result{}, err
	}
	result, err := agentloop.Run(ctx, agentloop.Config{
		Candidates: candidates, Tools: tools, Gate: gate, Recorder: r.Recorder, AgentName: p.agentName, Clock: r.Clock,
		MaxIterations: maxIterations(p.agent.Coordination), MaxTokens: maxTokens(p), Temperature: temperature(p),
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

// candidates are the model and its fallbacks.
func (r *run) candidates(ctx context.Context, p *plan) ([]llm.Candidate, error) {
	provider, err := r.provider(ctx, p)
	if err != nil {
		return nil, err
	}
	first, err := r.candidate(provider, p.ai.Model, p.model.Name)
	if err != nil {
		return nil, err
	}
	out := []llm.Candidate{first}
	for _, f := range p.model.Fallbacks {
		fallback := provider
		if f.ProviderRef != nil {
			if fallback, err = r.namedProvider(ctx, p.agentNamespace, f.ProviderRef); err != nil {
				return nil, err
			}
		}
		c, err := r.candidate(fallback, f.Model)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// candidate makes the model of a provider: the first name given, or else the
// provider's default.
func (r *run) candidate(p *v1alpha1.Provider, names ...string) (llm.Candidate, error) {
	config := openai.Config{APIKey: r.Credentials.ProviderKeys[runspec.CredentialKey(p.Namespace, p.Name)], BaseURL: p.Spec.BaseURL, Clock: clock.RealClock{}}
	names = append(names, p.Spec.DefaultModel)
	switch p.Spec.Type {
	case v1alpha1.ProviderOpenAI:
	case v1alpha1.ProviderAzureOpenAI:
		if p.Spec.Azure == nil {
			return llm.Candidate{}, runner.Fail(v1alpha1.ReasonReferenceInvalid, "provider %s: spec.azure is required", p.Name)
		}
		config.Azure = &openai.Azure{Deployment: p.Spec.Azure.DeploymentName, APIVersion: p.Spec.Azure.APIVersion}
		names = append(names, p.Spec.Azure.DeploymentName)
	case v1alpha1.ProviderAnthropic:
		return llm.Candidate{}, runner.Fail(v1alpha1.ReasonProviderUnsupported, "provider %s: this worker does not speak the protocol %s", p.Name, p.Spec.Type)
	default:
		return llm.Candidate{}, runner.Fail(v1alpha1.ReasonProviderUnsupported, "provider %s: type %q is not known", p.Name, p.Spec.Type)
	}
	if config.APIKey == "" {
		return llm.Candidate{}, runner.Fail(v1alpha1.ReasonReferenceInvalid, "provider %s: the worker was given no key for it", p.Name)
	}
	name := ""
	for _, n := range names {
		if name == "" {
			name = n
		}
	}
	if name == "" {
		return llm.Candidate{}, runner.Fail(v1alpha1.ReasonReferenceInvalid, "no model is named: not by the task, its agent or provider %s", p.Name)
	}
	model, err := openai.New(config)
	if err != nil {
		return llm.Candidate{}, runner.Fail(v1alpha1.ReasonReferenceInvalid, "provider %s: %w", p.Name, err)
	}
	return llm.Candidate{Provider: p.Name, Name: name, Model: model}, nil
}

// tools are those that the agent and the task select. A name that nobody
// knows is left out, as the spec says, and the log tells.
func (r *run) tools(ctx context.Context, p *plan, gate *agentloop.Gate) (*tool.Catalogue, error) {
	builtin, err := r.builtin(gate)
	if err != nil {
		return nil, err
	}
	var tools []tool.Tool
	seen := map[string]bool{}
	for _, s := range selectedTools(p) {
		if seen[s.name] {
			continue
		}
		seen[s.name] = true
		if s.name == exec.Name {
			if err := r.Policy.Check(); err != nil {
				return nil, runner.Fail(v1alpha1.ReasonSandboxUnavailable, "tool %s: %w", s.name, err)
			}
		}
		t, ok := builtin[s.name]
		if !ok {
			if t, err = r.customTool(ctx, s.namespace, s.name); err != nil {
				return nil, err
			}
		}
		if t != nil {
			tools = append(tools, t)
		}
	}
	catalogue, err := tool.NewCatalogue(tools...)
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonToolInvalid, "%w", err)
	}
	return catalogue, nil
}

// builtin are the core tools by name (D2 §4.10).
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

// customTool makes a tool of a Tool object; nil when there is none of that name.
func (r *run) customTool(ctx context.Context, namespace, name string) (tool.Tool, error) {
	object, err := r.API.CoreV1alpha1().Tools(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r.Log.Line("tool %s is not known and was left out", name)
		return nil, nil //nolint:nilnil // not known, which is tolerated
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s/%s: %w", namespace, name, err)
	}
	t, err := custom.New(name, object.Spec, custom.Options{
		Credential: r.Credentials.ToolKeys[runspec.CredentialKey(namespace, name)], Guard: egress.Guard{Allow: r.FetchAllow},
	})
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonToolInvalid, "tool %s/%s: %w", namespace, name, err)
	}
	return t, nil
}
