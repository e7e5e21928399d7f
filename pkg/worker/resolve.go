// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
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

func (w *worker) plan(ctx context.Context, t *v1alpha1.Task) (*plan, error) {
	p := &plan{task: t, agentNamespace: t.Namespace}
	if t.Spec.AI != nil {
		p.ai = *t.Spec.AI
	}
	if ref := t.Spec.AgentRef; ref != nil {
		namespace, name := reference(t.Namespace, ref)
		agent, err := w.api.CoreV1alpha1().Agents(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("agent %s/%s: %w", namespace, name, err)
		}
		p.agent, p.agentName, p.agentNamespace = agent.Spec, agent.Name, agent.Namespace
	}
	if p.agent.Runtime != nil {
		return nil, fail(ReasonReferenceInvalid, "agent %s has a runtime; a task of type ai needs an agent with a provider", p.agentName)
	}
	if p.agent.Model != nil {
		p.model = *p.agent.Model
	}
	if p.prompt = t.Spec.Prompt; p.prompt == "" {
		p.prompt = p.ai.Prompt
	}
	if strings.TrimSpace(p.prompt) == "" && !promptIncluded(t) {
		return nil, fail(ReasonReferenceInvalid, "the task has no prompt")
	}
	return p, nil
}

// provider finds the Provider of the model, by the controller's rules.
func (w *worker) provider(ctx context.Context, p *plan) (*v1alpha1.Provider, error) {
	switch {
	case p.ai.ProviderRef != nil:
		return w.namedProvider(ctx, p.task.Namespace, p.ai.ProviderRef)
	case p.ai.Provider == "" && p.agent.ProviderRef != nil:
		return w.namedProvider(ctx, p.agentNamespace, p.agent.ProviderRef)
	case p.ai.Provider != "":
		return w.onlyProvider(ctx, p.task.Namespace, p.ai.Provider)
	case p.model.Provider != "":
		return w.onlyProvider(ctx, p.agentNamespace, p.model.Provider)
	default:
		return nil, fail(ReasonReferenceInvalid, "neither the task nor its agent names a provider")
	}
}

func (w *worker) namedProvider(ctx context.Context, namespace string, ref *v1alpha1.NamespacedReference) (*v1alpha1.Provider, error) {
	namespace, name := reference(namespace, ref)
	p, err := w.api.CoreV1alpha1().Providers(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("provider %s/%s: %w", namespace, name, err)
	}
	return p, nil
}

// onlyProvider is the one Provider of a type in a namespace.
func (w *worker) onlyProvider(ctx context.Context, namespace string, kind v1alpha1.ProviderType) (*v1alpha1.Provider, error) {
	list, err := w.api.CoreV1alpha1().Providers(namespace).List(ctx, metav1.ListOptions{})
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
		return nil, fail(ReasonReferenceInvalid, "%d Providers in namespace %s have type %s; name one with providerRef", len(found), namespace, kind)
	}
	return found[0], nil
}

// systemText is what comes before the conversation: skills, then the system
// prompt (D2 §3.1).
func (w *worker) systemText(ctx context.Context, p *plan) (string, error) {
	var parts []string
	for _, of := range []struct {
		namespace string
		skills    []v1alpha1.SkillReference
	}{{p.agentNamespace, p.agent.Skills}, {p.task.Namespace, p.ai.Skills}} {
		for _, ref := range of.skills {
			text, err := w.skill(ctx, of.namespace, ref)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
	}
	prompt, err := w.systemPrompt(ctx, p)
	if err != nil {
		return "", err
	}
	return joinTexts(append(parts, prompt)), nil
}

// joinTexts makes one text of those that are not blank.
func joinTexts(parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n")
}

func (w *worker) systemPrompt(ctx context.Context, p *plan) (string, error) {
	s := p.agent.SystemPrompt
	switch {
	case p.ai.SystemPrompt != "":
		return p.ai.SystemPrompt, nil
	case s == nil:
		return "", nil
	case s.ConfigMapRef != nil:
		return w.configMapText(ctx, p.agentNamespace, s.ConfigMapRef)
	default:
		return s.Inline, nil
	}
}

// skill is the text of one skill: its own, then its files by path.
func (w *worker) skill(ctx context.Context, namespace string, ref v1alpha1.SkillReference) (string, error) {
	if ref.ConfigMapRef != nil {
		return w.configMapText(ctx, namespace, ref.ConfigMapRef)
	}
	s, err := w.api.CoreV1alpha1().Skills(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
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

func (w *worker) configMapText(ctx context.Context, namespace string, ref *v1alpha1.KeyReference) (string, error) {
	m, err := w.api.configMap(ctx, namespace, ref.Name)
	if err != nil {
		return "", fmt.Errorf("config map %s/%s: %w", namespace, ref.Name, err)
	}
	text, ok := m.Data[ref.Key]
	if !ok {
		return "", fail(ReasonReferenceInvalid, "config map %s/%s has no key %s", namespace, ref.Name, ref.Key)
	}
	return text, nil
}
