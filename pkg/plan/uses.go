// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// Uses are the objects that a run of type ai reads, as its task and its Agent name them. They may not exist.
type Uses struct {
	// Provider is the Provider of the model; nil if neither task nor Agent names one.
	Provider *ProviderChoice
	// Fallbacks are the models after the first one, in their order. A fallback without a Provider uses that of the
	// first model.
	Fallbacks []Fallback
	// Skills are those of the Agent, then those of the task.
	Skills []SkillUse
	// SystemPrompt is the system prompt of the task, or else of the Agent.
	SystemPrompt Text
	// Tools are the names of the Agent's tools that are enabled, then the task's, then the automatic ones that the Agent
	// does not switch off, each once: if both Agent and task have a name, it is the Agent's. A name can be that of a built-in
	// tool, which takes precedence, of a Tool, or of nothing.
	Tools []types.NamespacedName
	// Gated are the tools whose calls need a person's approval: those of the Agent, then those of the tasks above this one,
	// or above the one that it was forked from.
	Gated []string
}

// Reference is what an object of namespace From refers to.
type Reference struct {
	From string
	types.NamespacedName
}

// ProviderChoice names a Provider, or selects the only one of its type in a namespace.
type ProviderChoice struct {
	// Ref has no name if Type is set.
	Ref  Reference
	Type v1alpha1.ProviderType
}

// Fallback is a model that is tried after others.
type Fallback struct {
	// Provider is nil for that of the first model.
	Provider *Reference
	// Model is empty for the default of the Provider.
	Model string
}

// SkillUse is a Skill, or a key of a ConfigMap with the text of one.
type SkillUse struct {
	types.NamespacedName
	// ConfigMap is set if the name is that of a ConfigMap. Key is then its key.
	ConfigMap bool
	Key       string
}

// Text is an inline text, or the key of a ConfigMap that holds it.
type Text struct {
	Inline string
	// ConfigMap and Key say where the text is, if it is not Inline.
	ConfigMap types.NamespacedName
	Key       string
}

// UsesOf returns what a run of the task uses. The agent is nil for a task without one.
func UsesOf(t *v1alpha1.Task, agent *v1alpha1.Agent) *Uses {
	ai, a := t.Spec.AI, agent
	if ai == nil {
		ai = &v1alpha1.TaskAI{}
	}
	if a == nil {
		a = &v1alpha1.Agent{}
		a.Namespace = t.Namespace
	}
	u := &Uses{Provider: providerOf(t.Namespace, ai, a), SystemPrompt: systemPromptOf(ai, a)}
	if m := a.Spec.Model; m != nil {
		for _, f := range m.Fallbacks {
			use := Fallback{Model: f.Model}
			if f.ProviderRef != nil {
				use.Provider = new(refer(a.Namespace, f.ProviderRef))
			}
			u.Fallbacks = append(u.Fallbacks, use)
		}
	}
	u.addSkills(a.Namespace, a.Spec.Skills)
	u.addSkills(t.Namespace, ai.Skills)
	for _, tool := range a.Spec.Tools {
		if tool.Enabled == nil || *tool.Enabled {
			u.addTool(a.Namespace, tool.Name)
		}
	}
	for _, name := range ai.Tools {
		u.addTool(t.Namespace, name)
	}
	for _, name := range automaticTools(t, agent) {
		if !switchedOff(a, name) {
			u.addTool(t.Namespace, name)
		}
	}
	if c := a.Spec.Coordination; c != nil {
		u.gate(c.ApprovalRequiredTools)
	}
	if d := t.Status.Delegation; d != nil {
		u.gate(d.ApprovalRequiredTools)
	}
	u.gate(t.Status.ApprovalRequiredTools)
	return u
}

// gate adds tools whose calls need an approval. Asking for one needs none itself.
func (u *Uses) gate(names []string) {
	for _, name := range names {
		if name != builtin.RequestApproval.Name && !slices.Contains(u.Gated, name) {
			u.Gated = append(u.Gated, name)
		}
	}
}

// refer resolves a reference in an object of the given namespace.
func refer(from string, ref *v1alpha1.NamespacedReference) Reference {
	return Reference{From: from, NamespacedName: ref.In(from)}
}

// providerOf returns the task's choice, or else the Agent's. A name takes precedence over a type.
func providerOf(namespace string, ai *v1alpha1.TaskAI, a *v1alpha1.Agent) *ProviderChoice {
	only := func(namespace string, t v1alpha1.ProviderType) *ProviderChoice {
		return &ProviderChoice{Ref: Reference{From: namespace, NamespacedName: types.NamespacedName{Namespace: namespace}}, Type: t}
	}
	switch {
	case ai.ProviderRef != nil:
		return &ProviderChoice{Ref: refer(namespace, ai.ProviderRef)}
	case ai.Provider != "":
		return only(namespace, ai.Provider)
	case a.Spec.ProviderRef != nil:
		return &ProviderChoice{Ref: refer(a.Namespace, a.Spec.ProviderRef)}
	case a.Spec.Model != nil && a.Spec.Model.Provider != "":
		return only(a.Namespace, a.Spec.Model.Provider)
	default:
		return nil
	}
}

// systemPromptOf returns the task's system prompt, if it has one, or else the Agent's. A prompt of spaces alone
// also replaces the Agent's.
func systemPromptOf(ai *v1alpha1.TaskAI, a *v1alpha1.Agent) Text {
	s := a.Spec.SystemPrompt
	switch {
	case ai.SystemPrompt != "":
		return Text{Inline: ai.SystemPrompt}
	case s == nil:
		return Text{}
	case s.ConfigMapRef != nil:
		return Text{ConfigMap: types.NamespacedName{Namespace: a.Namespace, Name: s.ConfigMapRef.Name}, Key: s.ConfigMapRef.Key}
	default:
		return Text{Inline: s.Inline}
	}
}

func (u *Uses) addSkills(namespace string, refs []v1alpha1.SkillReference) {
	for _, r := range refs {
		use := SkillUse{NamespacedName: types.NamespacedName{Namespace: namespace, Name: r.Name}}
		if r.ConfigMapRef != nil {
			use.Name, use.ConfigMap, use.Key = r.ConfigMapRef.Name, true, r.ConfigMapRef.Key
		}
		u.Skills = append(u.Skills, use)
	}
}

// switchedOff reports whether the agent lists a tool as not enabled.
func switchedOff(a *v1alpha1.Agent, name string) bool {
	return slices.ContainsFunc(a.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == name && t.Enabled != nil && !*t.Enabled })
}

func (u *Uses) addTool(namespace, name string) {
	if !slices.ContainsFunc(u.Tools, func(k types.NamespacedName) bool { return k.Name == name }) {
		u.Tools = append(u.Tools, types.NamespacedName{Namespace: namespace, Name: name})
	}
}
