// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a task runs with: its prompt, models, tools, skills, limits and keys, or why it cannot
// run. The decision is made here for all callers: admission when a task is written (OfTask, OfAgent), the controller
// before it starts anything and the worker for its own run (both Make), the authorization that lets a run read the
// objects it uses (UsesOf), and the status of Agents (CheckAgent). Nothing in this package writes, waits or reads a
// clock: the same objects give the same Plan.
//
// The rules:
//
//   - The prompt is the first of spec.prompt and spec.ai.prompt that is not blank.
//   - The task overrides its Agent in the Provider, the model, the system prompt, the temperature and the limits.
//     References in an Agent default to the Agent's namespace.
//   - The Agent's skills come first, then the task's, then the system prompt. If one of them is missing, the task
//     is refused.
//   - The Agent's enabled tools come first, then the task's, then those that are added automatically, each name once. A
//     built-in tool takes precedence over a Tool of the same name, and a Tool over one that a ConnectorProvider of the task's namespace
//     declares. Any other name is left out, with a note. If a Tool cannot be used, the task is refused.
//   - If a Provider's type is not supported or its key is missing, the task is refused, even if only a fallback
//     uses that Provider.
package plan

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// Limits of a run of type ai where neither task nor Agent says otherwise.
const (
	// DefaultMaxIterations is how often a run may ask its model.
	DefaultMaxIterations = 10
	// CoordinationMaxIterations is the same for Agents that coordinate others.
	CoordinationMaxIterations = 50
	// AutonomousMaxIterations is the same for Agents that work in iterations of their own.
	AutonomousMaxIterations = 100
	// DefaultMaxTokens limits the output of one call of a model, in tokens.
	DefaultMaxTokens = 4096
)

// Plan is what a task runs with. Apart from Secrets and Notes, a task of type container leaves everything empty: its
// command is in its spec.
type Plan struct {
	// Prompt is the user's prompt; empty if it is the last message of the session.
	Prompt string
	// Agent is nil for a task without one.
	Agent *v1alpha1.Agent
	// Candidates are the model and its fallbacks, in the order in which they are tried. There is at least one.
	Candidates []Candidate
	// Runtime is the registered runtime at which the coding agent is; nil for another task, and for a worker, which was given what it
	// needs of it.
	Runtime *v1alpha1.AgentRuntime
	// Tools are those that the model may call, in the order of Uses.
	Tools []Tool
	// Bindings are the linked accounts that the tools of ConnectorProviders use. A worker has them from its task.
	Bindings []v1alpha1.TaskConnectionBinding
	// Gated are the tools whose calls need a person's approval.
	Gated []string
	// Skills are the Skill objects that the run uses, each once. Their texts are a part of System.
	Skills []*v1alpha1.Skill
	// ApprovalTimeout is how long a decision may take; 0 means no limit.
	ApprovalTimeout time.Duration
	// MaxIterations is how often the model may be asked, MaxTokens limits the output of each answer.
	MaxIterations int
	MaxTokens     int64
	// ContextWindow is how many tokens the model reads and writes in one call; 0 if nobody said.
	ContextWindow int64
	// Temperature is nil for the model's default.
	Temperature *float64
	// Secrets are those that the run needs, each once, without optional ones that do not exist.
	Secrets []Secret
	// Absent are the keys of Secrets that optional variables name and that did not exist. No rule about hosts was checked for
	// them, so the run must not get them either if they appear before it starts.
	Absent []v1alpha1.KeyReference
	// ConfigMaps are the keys that the run needs, each once, with their values: it may not read ConfigMaps itself.
	ConfigMaps []ConfigMap
	// Autonomous is set for a task that works in iterations. The plan is then that of one iteration.
	Autonomous bool
	// MayPark is set where the run may have to wait for a person, and so longer than its timeout. That is so for every run
	// with tools: a policy can hold back any call.
	MayPark bool
	// Notes say, for people, what was asked for and is left out.
	Notes []string

	texts []text
}

// Candidate is a model at a Provider.
type Candidate struct {
	Provider *v1alpha1.Provider
	// Model is the name that the Provider's service knows it by.
	Model string
}

// Tool is one that the model may call.
type Tool struct {
	Name string
	// Object defines it, and Connector does if it is one of a ConnectorProvider; both are nil for a built-in tool.
	Object    *v1alpha1.Tool
	Connector *ConnectorTool
}

// ConnectorTool is a tool that the server calls with the account of the person who asked for the task.
type ConnectorTool struct {
	// Provider is the ConnectorProvider that declares it.
	Provider string
	Tool     *v1alpha1.ConnectorTool
}

// Make decides what the task runs with at a place. The error is a *refusal.Error if the task cannot run as it is
// written; any other error comes from the Reader.
func Make(ctx context.Context, r Reader, place Place, t *v1alpha1.Task) (*Plan, error) {
	m := &maker{reader: r, place: place, namespace: t.Namespace, plan: &Plan{}}
	m.accounts = &accounts{reader: r, task: t, started: place.Started, plan: m.plan}
	if err := m.mount(ctx, t); err != nil {
		return nil, err
	}
	judged := t
	if t.Spec.Type == v1alpha1.TaskTypeAgent {
		if there, err := m.hasRuntime(ctx, t); err != nil {
			return nil, err
		} else if !there { // which matters more than the rest
			return nil, refusal.New(v1alpha1.ReasonRuntimeNotAvailable, "tasks of type agent need an agent runtime, and this server has none")
		}
		judged = t.DeepCopy() // what holds for a task of type ai holds for it as well, once it is to start
		judged.Spec.Type = v1alpha1.TaskTypeAI
	}
	if list := OfTask(judged); len(list) > 0 {
		return nil, list[0]
	}
	if r := ofPrior(t); r != nil {
		return nil, r
	}
	if err := m.variables(ctx, t); err != nil {
		return nil, err
	}
	if err := m.repository(ctx, t); err != nil {
		return nil, err
	}
	switch t.Spec.Type {
	case v1alpha1.TaskTypeContainer:
		if err := m.container(t); err != nil {
			return nil, err
		}
	case v1alpha1.TaskTypeAI:
		if err := m.ai(ctx, t); err != nil {
			return nil, err
		}
		if m.plan.Autonomous && t.Spec.Workspace.Writes() {
			return nil, refusal.New(v1alpha1.ReasonNotSupported, "spec.workspace.intent: not supported yet: each iteration of an autonomous agent begins with the same commit, so that "+
				"only what the last one changed would be published; use an agent that is not autonomous")
		}
	case v1alpha1.TaskTypeAgent:
		if err := m.codingAgent(ctx, t); err != nil {
			return nil, err
		}
	default:
		return nil, refusal.New(v1alpha1.ReasonUnknownType, "tasks of type %q are not known", t.Spec.Type)
	}
	return m.plan, nil
}

// maker makes one Plan. Each part of a plan is made by a method, from the same task and reads.
type maker struct {
	reader Reader
	place  Place
	// namespace is that of the run.
	namespace string
	// accounts is nil if no task is planned.
	accounts *accounts
	// withoutKeys leaves out whether API keys and credentials exist.
	withoutKeys bool
	// anyModel accepts that no model is named.
	anyModel bool
	plan     *Plan
	// skills are those that were read.
	skills []*v1alpha1.Skill
}

func (m *maker) container(t *v1alpha1.Task) error {
	return m.place.command().Runs(t)
}

func (m *maker) ai(ctx context.Context, t *v1alpha1.Task) error {
	p := m.plan
	if !PromptInSession(&t.Spec) {
		p.Prompt = Prompt(&t.Spec)
	}
	if err := m.agent(ctx, t); err != nil {
		return err
	}
	uses := UsesOf(t, p.Agent)
	if err := m.models(ctx, uses, modelNames(t, p.Agent)); err != nil {
		return err
	}
	if err := m.system(ctx, uses); err != nil {
		return err
	}
	if p.Autonomous = Autonomous(t, p.Agent); p.Autonomous {
		p.texts = append(p.texts, autonomousText(t.Status.Iteration, p.Agent.Spec.Coordination.MaxIterations))
	}
	if err := m.tools(ctx, uses.Tools); err != nil {
		return err
	}
	p.Gated, p.MayPark = m.accounts.gated(uses), len(p.Tools) > 0
	p.limit(t.Spec.AI)
	return nil
}

func (m *maker) agent(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.AgentRef == nil {
		return nil
	}
	ref := refer(t.Namespace, t.Spec.AgentRef)
	if err := m.isolated(ref, "Agent"); err != nil {
		return err
	}
	a, err := m.reader.Agent(ctx, ref.NamespacedName)
	if err := lookedFor(err, "Agent", ref.NamespacedName); err != nil {
		return err
	}
	if s := a.Spec.SecretRef; s != nil {
		if err := m.mounted(ctx, types.NamespacedName{Namespace: a.Namespace, Name: s.Name}); err != nil {
			return err
		}
	}
	m.plan.Agent = a
	if list := OfAgent(t, a); len(list) > 0 {
		return list[0]
	}
	if refused := incompatible(t, a); refused != nil {
		return refused
	}
	return nil
}

// incompatible refuses an agent that cannot do a task of its type. The agent may be nil.
func incompatible(t *v1alpha1.Task, a *v1alpha1.Agent) *refusal.Error {
	if a != nil && a.Spec.Runtime != nil && t.Spec.Type == v1alpha1.TaskTypeAI {
		return refusal.New(v1alpha1.ReasonIncompatibleAgent, "agent %q has a runtime; a task of type ai needs an agent with a provider", a.Name)
	}
	return nil
}

// isolated refuses a reference to another namespace unless the place allows it.
func (m *maker) isolated(r Reference, kind string) error {
	if r.Namespace == r.From || m.place.OtherNamespaces {
		return nil
	}
	return refusal.New(v1alpha1.ReasonNamespaceIsolationViolation, "%s %q of namespace %q may not be used from namespace %q", kind, r.Name, r.Namespace, r.From)
}

// MaxTokens returns the limit of the output of one model call of a task, in tokens. The agent is nil for a task without
// one.
func MaxTokens(t *v1alpha1.Task, agent *v1alpha1.Agent) int64 {
	ai, model := &v1alpha1.TaskAI{}, &v1alpha1.AgentModel{}
	if t.Spec.AI != nil {
		ai = t.Spec.AI
	}
	if agent != nil && agent.Spec.Model != nil {
		model = agent.Spec.Model
	}
	return maxTokens(ai, model)
}

func maxTokens(ai *v1alpha1.TaskAI, model *v1alpha1.AgentModel) int64 {
	for _, n := range []*int32{ai.MaxTokens, model.MaxTokens} {
		if n != nil && *n > 0 {
			return int64(*n)
		}
	}
	return DefaultMaxTokens
}

// limit sets the limits of the run. The task's take precedence over the Agent's.
func (p *Plan) limit(ai *v1alpha1.TaskAI) {
	if ai == nil {
		ai = &v1alpha1.TaskAI{}
	}
	var a v1alpha1.AgentSpec
	if p.Agent != nil {
		a = p.Agent.Spec
	}
	model := ptr.Deref(a.Model, v1alpha1.AgentModel{})
	p.MaxTokens = maxTokens(ai, &model)
	p.ContextWindow = int64(ptr.Deref(model.ContextWindow, 0))
	p.Temperature = model.Temperature
	if ai.Temperature != nil {
		p.Temperature = ai.Temperature
	}
	c := a.Coordination
	p.ApprovalTimeout = approvalTimeout(c)
	switch {
	case c == nil || !c.Enabled:
		p.MaxIterations = DefaultMaxIterations
	case c.Autonomous:
		p.MaxIterations = AutonomousMaxIterations
	default:
		p.MaxIterations = CoordinationMaxIterations
	}
}

// approvalTimeout returns how long a decision may take; 0 means no limit.
func approvalTimeout(c *v1alpha1.AgentCoordination) time.Duration {
	if c == nil || c.ApprovalTimeout == nil {
		return 0
	}
	return c.ApprovalTimeout.Value()
}

// mount checks the Secret that the task wants as files.
func (m *maker) mount(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.SecretRef == nil {
		return nil
	}
	ref := refer(t.Namespace, t.Spec.SecretRef)
	if err := m.isolated(ref, "Secret"); err != nil {
		return err
	}
	return m.mounted(ctx, ref.NamespacedName)
}

// mounted needs a Secret as files.
func (m *maker) mounted(ctx context.Context, key types.NamespacedName) error {
	if m.place.Started {
		return nil
	}
	if err := m.need(ctx, Secret{Use: ForMount, Namespace: key.Namespace, Ref: v1alpha1.KeyReference{Name: key.Name}}, nil); err != nil {
		return err
	}
	if m.place.NoMounts != "" {
		return refusal.New(v1alpha1.ReasonRefused, "Secret %s: %s", key.Name, m.place.NoMounts)
	}
	return nil
}

// variables checks the sources of the task's environment variables.
func (m *maker) variables(ctx context.Context, t *v1alpha1.Task) error {
	for _, e := range t.Spec.Env {
		from := e.ValueFrom
		if from == nil {
			continue
		}
		if err := m.place.command().Variable(&e); err != nil {
			return err
		}
		if m.place.Started {
			continue
		}
		optional, err := m.variable(ctx, t.Namespace, e.Name, from)
		// Optional means that the value may be missing, not that a Secret's hosts do not matter.
		if refused, ok := errors.AsType[*refusal.Error](err); ok && optional && refused.Missing {
			if r := from.SecretKeyRef; r != nil {
				m.plan.Absent = append(m.plan.Absent, v1alpha1.KeyReference{Name: r.Name, Key: r.Key})
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) variable(ctx context.Context, namespace, name string, from *corev1.EnvVarSource) (optional bool, err error) {
	switch {
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		return ptr.Deref(r.Optional, false), m.need(ctx, Secret{
			Use: ForVariable, For: types.NamespacedName{Namespace: namespace, Name: name}, Namespace: namespace,
			Ref: v1alpha1.KeyReference{Name: r.Name, Key: r.Key},
		}, nil)
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		use := ConfigMap{NamespacedName: types.NamespacedName{Namespace: namespace, Name: r.Name}, Key: r.Key}
		err := m.lookUp(ctx, &use)
		if err == nil && !m.place.Pods { // a Pod's variables have references of their own
			m.keep(use)
		}
		return ptr.Deref(r.Optional, false), err
	default:
		return false, nil
	}
}
