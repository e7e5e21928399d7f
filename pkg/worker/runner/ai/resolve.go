// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/agentloop"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/tool/approval"
)

// reference returns the namespace and name that ref means to an object of the given namespace.
func reference(namespace string, ref *v1alpha1.NamespacedReference) (refNamespace, name string) {
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return namespace, ref.Name
}

// plan is what an ai task comes to when its references are resolved.
type plan struct {
	task  *v1alpha1.Task
	ai    v1alpha1.TaskAI
	agent v1alpha1.AgentSpec
	// agentName is empty, and agentNamespace the task's, without an agent.
	agentName, agentNamespace string
	model                     v1alpha1.AgentModel
	prompt                    string
}

func (r *run) plan(ctx context.Context, t *v1alpha1.Task) (*plan, error) {
	p := &plan{task: t, agentNamespace: t.Namespace}
	if t.Spec.AI != nil {
		p.ai = *t.Spec.AI
	}
	if ref := t.Spec.AgentRef; ref != nil {
		namespace, name := reference(t.Namespace, ref)
		agent, err := r.API.CoreV1alpha1().Agents(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("agent %s/%s: %w", namespace, name, err)
		}
		p.agent, p.agentName, p.agentNamespace = agent.Spec, agent.Name, agent.Namespace
	}
	if p.agent.Runtime != nil {
		return nil, runner.Fail(v1alpha1.ReasonReferenceInvalid, "agent %s has a runtime; a task of type ai needs an agent with a provider", p.agentName)
	}
	if p.agent.Model != nil {
		p.model = *p.agent.Model
	}
	if p.prompt = t.Spec.Prompt; p.prompt == "" {
		p.prompt = p.ai.Prompt
	}
	if strings.TrimSpace(p.prompt) == "" && !promptIncluded(t) {
		return nil, runner.Fail(v1alpha1.ReasonReferenceInvalid, "the task has no prompt")
	}
	return p, nil
}

// provider finds the Provider of the model, by the controller's rules.
func (r *run) provider(ctx context.Context, p *plan) (*v1alpha1.Provider, error) {
	switch {
	case p.ai.ProviderRef != nil:
		return r.namedProvider(ctx, p.task.Namespace, p.ai.ProviderRef)
	case p.ai.Provider == "" && p.agent.ProviderRef != nil:
		return r.namedProvider(ctx, p.agentNamespace, p.agent.ProviderRef)
	case p.ai.Provider != "":
		return r.onlyProvider(ctx, p.task.Namespace, p.ai.Provider)
	case p.model.Provider != "":
		return r.onlyProvider(ctx, p.agentNamespace, p.model.Provider)
	default:
		return nil, runner.Fail(v1alpha1.ReasonReferenceInvalid, "neither the task nor its agent names a provider")
	}
}

func (r *run) namedProvider(ctx context.Context, namespace string, ref *v1alpha1.NamespacedReference) (*v1alpha1.Provider, error) {
	namespace, name := reference(namespace, ref)
	p, err := r.API.CoreV1alpha1().Providers(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("provider %s/%s: %w", namespace, name, err)
	}
	return p, nil
}

// onlyProvider is the one Provider of a type in a namespace.
func (r *run) onlyProvider(ctx context.Context, namespace string, kind v1alpha1.ProviderType) (*v1alpha1.Provider, error) {
	list, err := r.API.CoreV1alpha1().Providers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("providers of %s: %w", namespace, err)
	}
	var found []*v1alpha1.Provider
	for i := range list.Items {
		if list.Items[i].Spec.Type == kind {
			found = append(found, &list.Items[i])
		}
	}
	if len(found) != 1 {
		return nil, runner.Fail(v1alpha1.ReasonReferenceInvalid, "%d Providers in namespace %s have type %s; name one with providerRef", len(found), namespace, kind)
	}
	return found[0], nil
}

// selected is a tool that the agent or the task names, with the namespace of its Tool object.
type selected struct{ namespace, name string }

// selectedTools are the tools that the agent and the task select.
func selectedTools(p *plan) []selected {
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
	return names
}

// asksByItself tells whether the agent gets request_approval without selecting
// it: when it works in iterations of its own (D2 §4.10).
func asksByItself(p *plan) bool {
	c := p.agent.Coordination
	return c != nil && c.Enabled && c.Autonomous && p.task.Annotations[v1alpha1.AnnotationDisableCoordination] != "true"
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

// systemText is what comes before the conversation: skills, then the system
// prompt (D2 §3.1).
func (r *run) systemText(ctx context.Context, p *plan) (string, error) {
	var parts []string
	for _, of := range []struct {
		namespace string
		skills    []v1alpha1.SkillReference
	}{{p.agentNamespace, p.agent.Skills}, {p.task.Namespace, p.ai.Skills}} {
		for _, ref := range of.skills {
			text, err := r.skill(ctx, of.namespace, ref)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
	}
	prompt, err := r.systemPrompt(ctx, p)
	if err != nil {
		return "", err
	}
	return joinTexts(append(parts, prompt)), nil
}

// joinTexts makes one text of those that are not blank.
func joinTexts(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n")
}

func (r *run) systemPrompt(ctx context.Context, p *plan) (string, error) {
	s := p.agent.SystemPrompt
	switch {
	case p.ai.SystemPrompt != "":
		return p.ai.SystemPrompt, nil
	case s == nil:
		return "", nil
	case s.ConfigMapRef != nil:
		return r.configMapText(ctx, p.agentNamespace, s.ConfigMapRef)
	default:
		return s.Inline, nil
	}
}

// skill is the text of one skill: its own, then its files by path.
func (r *run) skill(ctx context.Context, namespace string, ref v1alpha1.SkillReference) (string, error) {
	if ref.ConfigMapRef != nil {
		return r.configMapText(ctx, namespace, ref.ConfigMapRef)
	}
	s, err := r.API.CoreV1alpha1().Skills(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("skill %s/%s: %w", namespace, ref.Name, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Skill: %s\n\n%s", s.Name, s.Spec.Content.Inline)
	for _, path := range slices.Sorted(maps.Keys(s.Spec.Content.Files)) {
		fmt.Fprintf(&b, "\n\n## File of the skill: %s\n\n%s", path, s.Spec.Content.Files[path])
	}
	return b.String(), nil
}

func (r *run) configMapText(ctx context.Context, namespace string, ref *v1alpha1.KeyReference) (string, error) {
	m, err := r.API.ConfigMap(ctx, namespace, ref.Name)
	if err != nil {
		return "", fmt.Errorf("config map %s/%s: %w", namespace, ref.Name, err)
	}
	text, ok := m.Data[ref.Key]
	if !ok {
		return "", runner.Fail(v1alpha1.ReasonReferenceInvalid, "config map %s/%s has no key %s", namespace, ref.Name, ref.Key)
	}
	return text, nil
}
