// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

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
	"github.com/platform-ai/platform/pkg/worker/tool"
	"github.com/platform-ai/platform/pkg/worker/tool/approval"
	"github.com/platform-ai/platform/pkg/worker/tool/custom"
	"github.com/platform-ai/platform/pkg/worker/tool/exec"
	"github.com/platform-ai/platform/pkg/worker/tool/file"
	"github.com/platform-ai/platform/pkg/worker/tool/web"
)

// runAI runs a task of type ai: the model, with its tools, until it answers.
func (w *worker) runAI(ctx context.Context, t *v1alpha1.Task) (done, error) {
	p, err := w.plan(ctx, t)
	if err != nil {
		return done{}, err
	}
	candidates, err := w.candidates(ctx, p)
	if err != nil {
		return done{}, err
	}
	system, err := w.systemText(ctx, p)
	if err != nil {
		return done{}, err
	}
	gate := w.gate(p)
	tools, err := w.tools(ctx, p, gate)
	if err != nil {
		return done{}, err
	}
	messages, err := w.conversation(ctx, p, system)
	if err != nil {
		return done{}, err
	}
	result, err := agentloop.Run(ctx, agentloop.Config{
		Candidates: candidates, Tools: tools, Gate: gate, Recorder: w.events, AgentName: p.agentName, Clock: w.clock,
		MaxIterations: maxIterations(p.agent.Coordination), MaxTokens: maxTokens(p), Temperature: temperature(p),
	}, messages)
	u := result.Usage
	return done{text: result.Text, content: map[string]any{
		"iterations": result.Iterations, "stopReason": result.StopReason, "resultLength": len(result.Text),
		"usage": map[string]any{
			"inputTokens": u.InputTokens, "outputTokens": u.OutputTokens, "cachedInputTokens": u.CachedInputTokens,
			"requests": u.Attempts, "requestsWithoutUsage": u.Unreported,
		},
	}}, err
}

// maxIterations is the limit of the inner loop (D2 §3.1).
func maxIterations(c *v1alpha1.AgentCoordination) int {
	switch {
	case c == nil || !c.Enabled:
		return agentloop.DefaultMaxIterations
	case c.Autonomous:
		return agentloop.AutonomousMaxIterations
	default:
		return agentloop.CoordinationMaxIterations
	}
}

func maxTokens(p *plan) int64 {
	for _, n := range []*int32{p.ai.MaxTokens, p.model.MaxTokens} {
		if n != nil && *n > 0 {
			return int64(*n)
		}
	}
	return agentloop.DefaultMaxTokens
}

func temperature(p *plan) *float64 {
	if p.ai.Temperature != nil {
		return p.ai.Temperature
	}
	return p.model.Temperature
}

// candidates are the model and its fallbacks.
func (w *worker) candidates(ctx context.Context, p *plan) ([]llm.Candidate, error) {
	provider, err := w.provider(ctx, p)
	if err != nil {
		return nil, err
	}
	first, err := w.candidate(provider, p.ai.Model, p.model.Name)
	if err != nil {
		return nil, err
	}
	out := []llm.Candidate{first}
	for _, f := range p.model.Fallbacks {
		fallback := provider
		if f.ProviderRef != nil {
			if fallback, err = w.namedProvider(ctx, p.agentNamespace, f.ProviderRef); err != nil {
				return nil, err
			}
		}
		c, err := w.candidate(fallback, f.Model)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// candidate makes the model of a provider: the first name given, or else the
// provider's default.
func (w *worker) candidate(p *v1alpha1.Provider, names ...string) (llm.Candidate, error) {
	config := openai.Config{APIKey: w.config.Credentials.ProviderKeys[p.Name], BaseURL: p.Spec.BaseURL, Clock: clock.RealClock{}}
	names = append(names, p.Spec.DefaultModel)
	switch p.Spec.Type {
	case v1alpha1.ProviderOpenAI:
	case v1alpha1.ProviderAzureOpenAI:
		if p.Spec.Azure == nil {
			return llm.Candidate{}, fail(ReasonReferenceInvalid, "provider %s: spec.azure is required", p.Name)
		}
		config.Azure = &openai.Azure{Deployment: p.Spec.Azure.DeploymentName, APIVersion: p.Spec.Azure.APIVersion}
		names = append(names, p.Spec.Azure.DeploymentName)
	case v1alpha1.ProviderAnthropic:
		return llm.Candidate{}, fail(ReasonProviderUnsupported, "provider %s: this worker does not speak the protocol %s", p.Name, p.Spec.Type)
	default:
		return llm.Candidate{}, fail(ReasonProviderUnsupported, "provider %s: type %q is not known", p.Name, p.Spec.Type)
	}
	if config.APIKey == "" {
		return llm.Candidate{}, fail(ReasonReferenceInvalid, "provider %s: the worker was given no key for it", p.Name)
	}
	name := ""
	for _, n := range names {
		if name == "" {
			name = n
		}
	}
	if name == "" {
		return llm.Candidate{}, fail(ReasonReferenceInvalid, "no model is named: not by the task, its agent or provider %s", p.Name)
	}
	model, err := openai.New(config)
	if err != nil {
		return llm.Candidate{}, fail(ReasonReferenceInvalid, "provider %s: %w", p.Name, err)
	}
	return llm.Candidate{Provider: p.Name, Name: name, Model: model}, nil
}

// tools are those that the agent and the task select. A name that nobody
// knows is left out, as the spec says, and the log tells.
func (w *worker) tools(ctx context.Context, p *plan, gate *agentloop.Gate) (*tool.Catalogue, error) {
	type selected struct{ namespace, name string }
	var names []selected
	for _, t := range p.agent.Tools {
		if t.Enabled == nil || *t.Enabled {
			names = append(names, selected{p.agentNamespace, t.Name})
		}
	}
	for _, name := range p.ai.Tools {
		names = append(names, selected{p.task.Namespace, name})
	}
	if asksByItself(p) {
		names = append(names, selected{p.task.Namespace, approval.Name})
	}
	builtin, err := w.builtin(gate)
	if err != nil {
		return nil, err
	}
	var tools []tool.Tool
	seen := map[string]bool{}
	for _, s := range names {
		if seen[s.name] {
			continue
		}
		seen[s.name] = true
		if s.name == exec.Name {
			if err := w.config.policy().Check(); err != nil {
				return nil, fail(ReasonSandboxUnavailable, "tool %s: %w", s.name, err)
			}
		}
		t, ok := builtin[s.name]
		if !ok {
			if t, err = w.customTool(ctx, s.namespace, s.name); err != nil {
				return nil, err
			}
		}
		if t != nil {
			tools = append(tools, t)
		}
	}
	catalogue, err := tool.NewCatalogue(tools...)
	if err != nil {
		return nil, fail(ReasonToolInvalid, "%w", err)
	}
	return catalogue, nil
}

// builtin are the core tools by name (D2 §4.10).
func (w *worker) builtin(gate *agentloop.Gate) (map[string]tool.Tool, error) {
	c := w.config
	more := []string{c.TempDir}
	if c.ArtifactsDir != "" {
		more = append(more, c.ArtifactsDir)
	}
	roots, err := file.NewRoots(c.WorkDir, more...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	out := map[string]tool.Tool{}
	for _, t := range []tool.Tool{
		file.Read(roots),
		file.Write(roots, c.ArtifactsDir),
		exec.New(exec.Options{
			WorkDir: c.WorkDir, TempDir: c.TempDir, Path: os.Getenv("PATH"), Env: w.runEnv(), Limits: c.CodeLimits, Sole: true, Clock: clock.RealClock{},
			Policy: c.policy(),
		}),
		web.Fetch(egress.Guard{Allow: c.FetchAllow}),
		web.Search(web.SearchConfig{URL: c.SearchURL, Key: c.Credentials.SearchKey}),
		approval.New(gate.RequestApproval),
	} {
		out[t.Definition().Name] = t
	}
	return out, nil
}

// runEnv tells programs of the run where they are. None of it is secret; the
// task's UID and attempt also let an executor find what is left of a run.
func (w *worker) runEnv() []string {
	c := w.config
	return []string{
		runspec.EnvTaskName + "=" + c.TaskName, runspec.EnvTaskNamespace + "=" + c.TaskNamespace, runspec.EnvTaskUID + "=" + c.TaskUID,
		fmt.Sprintf("%s=%d", runspec.EnvAttempt, c.Attempt), runspec.EnvWorkDir + "=" + c.WorkDir, runspec.EnvArtifactsDir + "=" + c.ArtifactsDir,
	}
}

// customTool makes a tool of a Tool object; nil when there is none of that name.
func (w *worker) customTool(ctx context.Context, namespace, name string) (tool.Tool, error) {
	object, err := w.api.CoreV1alpha1().Tools(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		w.log.line("tool %s is not known and was left out", name)
		return nil, nil //nolint:nilnil // not known, which is tolerated
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s/%s: %w", namespace, name, err)
	}
	t, err := custom.New(name, object.Spec, custom.Options{
		Credential: w.config.Credentials.ToolKeys[name], Guard: egress.Guard{Allow: w.config.FetchAllow},
	})
	if err != nil {
		return nil, fail(ReasonToolInvalid, "tool %s/%s: %w", namespace, name, err)
	}
	return t, nil
}
