// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ai runs tasks of type ai: it creates the models and the tools that the plan of the
// run names, and runs the agent's loop.
package ai

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/ownplan"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runtools"
)

// Runner asks the model of a task of type ai, with its tools, until it answers.
var Runner runner.Runner = runner.Func(work)

func work(ctx context.Context, given *runner.Run) (runner.Result, error) {
	// The executor defers the first collections, which is good for short runs. An agent runs for longer and holds more.
	debug.SetGCPercent(100)
	r := &run{given}
	result, err := r.work(ctx)
	return result, failure(err)
}

// run is one run of a task of type ai.
type run struct{ *runner.Run }

func (r *run) work(ctx context.Context) (runner.Result, error) {
	p, err := ownplan.Of(ctx, r.Run)
	if err != nil {
		return runner.Result{}, err
	}
	candidates, err := r.candidates(p)
	if err != nil {
		return runner.Result{}, err
	}
	about, err := r.iteration(ctx, p)
	if err != nil {
		return runner.Result{}, err
	}
	before, err := readUncertain(ctx, r.Run)
	if err != nil {
		return runner.Result{}, err
	}
	gate, asks := r.gate(p)
	about.restrict(gate)
	files, err := r.skills(p)
	if err != nil {
		return runner.Result{}, err
	}
	network, closeNetwork, err := r.OpenNetwork(ctx, plan.PublicNetwork(p.Agent))
	if err != nil {
		return runner.Result{}, err
	}
	defer closeNetwork()
	tools, err := runtools.Of(ctx, r.Run, p, runtools.Options{Ask: gate.RequestApproval, Env: slices.Concat(about.env(), files.env(), network)})
	if err != nil {
		return runner.Result{}, err
	}
	about.carry(gate, asks, tools)
	messages, err := r.conversation(ctx, p.Agent, p.Prompt, plan.JoinTexts([]string{p.System(), files.note(p), r.memories(ctx, p.Prompt)}))
	if err != nil {
		return runner.Result{}, err
	}
	prompt := &messages[len(messages)-1]
	prompt.Text = before.preface(about.preface()) + prompt.Text
	agentName, mode := "", v1alpha1.RecordingMode("")
	if p.Agent != nil {
		agentName = p.Agent.Name
		if rec := p.Agent.Spec.Recording; rec != nil {
			mode = rec.Mode
		}
	}
	result, err := agentloop.Run(ctx, agentloop.Config{
		Candidates: candidates, Cooling: r.cooling(p), Tools: tools, Gate: gate, Judge: r.judge, StoredFirst: runtools.StoredFirst(), Recorder: r.Recorder, Begin: r.Recorder.Begin, Recording: agentloop.NewRecording(mode), AgentName: agentName, Clock: r.Clock,
		MaxIterations: p.MaxIterations, MaxTokens: p.MaxTokens, Temperature: p.Temperature, MaxContext: maxContext(p, messages, tools),
	}, messages)
	u := result.Usage
	return runner.Result{Text: result.Text, Content: map[string]any{
		"iterations": result.Iterations, "stopReason": result.StopReason, "resultLength": len(result.Text),
		"usage": map[string]any{
			"inputTokens": u.InputTokens, "outputTokens": u.OutputTokens, "cachedInputTokens": u.CachedInputTokens,
			"cacheWriteInputTokens": u.CacheWriteInputTokens, "requests": u.Attempts, "requestsWithoutUsage": u.Unreported,
		},
	}}, err
}

// maxContext returns how many bytes the conversation may have so that it fits the model's window together with the
// instructions, the tools and the answer; 0 for no limit. At least a quarter of the window is left to it. It is an estimate:
// the model may still find the conversation too long, and then it is shortened again.
func maxContext(p *plan.Plan, messages []llm.Message, tools *tool.Catalogue) int {
	if p.ContextWindow == 0 {
		return 0
	}
	fixed := llm.Request{Tools: tools.Definitions()}
	for _, m := range messages {
		if m.Role == llm.RoleSystem {
			fixed.Messages = append(fixed.Messages, m)
		}
	}
	return int(max(llm.BytesOf(p.ContextWindow-p.MaxTokens)-fixed.MaxInput(), llm.BytesOf(p.ContextWindow)/4))
}

// candidates returns clients for the plan's models.
func (r *run) candidates(p *plan.Plan) ([]llm.Candidate, error) {
	var out []llm.Candidate
	for _, c := range p.Candidates {
		provider := c.Provider
		vendor, ok := vendors.Find(provider.Spec.Type)
		if !ok {
			return nil, runner.Fail(v1alpha1.ReasonProviderUnsupported,
				"provider %s: spec.type: must be %s, not %s", provider.Name, vendors.Types(), provider.Spec.Type)
		}
		key := runspec.CredentialKey(provider.Namespace, provider.Name)
		model, err := vendor.New(llm.Endpoint{
			Spec: &provider.Spec, Key: r.Credentials.ProviderKeys[key], Hosts: r.Credentials.Hosts.Providers[key], Clock: clock.RealClock{},
		})
		if err != nil {
			return nil, runner.Fail(v1alpha1.ReasonProviderInvalid, "provider %s: %w", provider.Name, err)
		}
		out = append(out, llm.Candidate{Provider: provider.Name, Name: c.Model, Model: model, CoolingUntil: coolingUntil(provider)})
	}
	return out, nil
}

func coolingUntil(p *v1alpha1.Provider) time.Time {
	if until := p.Status.CoolDownUntil; until != nil {
		return until.Time
	}
	return time.Time{}
}

// cooling returns a function that reads the Providers of the plan again, so that a run learns which vendors other runs
// have given up since it began.
func (r *run) cooling(p *plan.Plan) func(context.Context) []time.Time {
	return func(ctx context.Context) []time.Time {
		read := map[types.NamespacedName]time.Time{}
		var out []time.Time
		for _, c := range p.Candidates {
			key := types.NamespacedName{Namespace: c.Provider.Namespace, Name: c.Provider.Name}
			if _, known := read[key]; !known {
				now, err := r.API.CoreV1alpha1().Providers(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
				if err != nil {
					return nil // the run goes on with what it knows
				}
				read[key] = coolingUntil(now)
			}
			out = append(out, read[key])
		}
		return out
	}
}
