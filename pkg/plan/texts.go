// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// text returns a part of the system text. It is built only when it is asked for, and controllers never ask.
type text func() string

// System returns the system text of the conversation: the skills, then the system prompt.
func (p *Plan) System() string {
	var parts []string
	for _, t := range p.texts {
		parts = append(parts, t())
	}
	return JoinTexts(parts)
}

// JoinTexts joins the parts that are not blank, with an empty line between them.
func JoinTexts(parts []string) string {
	parts = slices.Clone(parts)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n")
}

// autonomousText is what the agent of an autonomous task is told about its iteration, which counts from 0. most is the
// limit of iterations, 0 for none.
func autonomousText(iteration, most int32) text {
	return func() string {
		limit := ""
		if most > 0 {
			limit = fmt.Sprintf(" There are at most %d.", most)
		}
		return fmt.Sprintf(`You work on your task in iterations, without a person who answers you. This is iteration %d.%s
Each iteration begins with an empty conversation: all you know of earlier ones is the plan that you stored. Therefore:
- Do one useful step of the plan in this iteration, and then end it with a short report as your answer.
- Before you end it, store with update_plan what is done, what you found, and what is to be done next.
- When the goal of the task is reached, call update_plan with goal_complete set to true. Set it only after you have checked the result. No further iteration begins then.
- If you cannot continue, write the reason into the plan.`, iteration+1, limit)
	}
}

// system finds skills and system prompt.
func (m *maker) system(ctx context.Context, uses *Uses) error {
	for _, s := range uses.Skills {
		if err := m.skill(ctx, s); err != nil {
			return err
		}
	}
	prompt := uses.SystemPrompt.Inline
	if uses.SystemPrompt.ConfigMap.Name != "" {
		var err error
		if prompt, err = m.configMap(ctx, uses.SystemPrompt.ConfigMap, uses.SystemPrompt.Key); err != nil {
			return err
		}
	}
	m.plan.texts = append(m.plan.texts, func() string { return prompt })
	return nil
}

func (m *maker) skill(ctx context.Context, use SkillUse) error {
	if use.ConfigMap {
		s, err := m.configMap(ctx, use.NamespacedName, use.Key)
		m.plan.texts = append(m.plan.texts, func() string { return s })
		return err
	}
	s, err := m.reader.Skill(ctx, use.NamespacedName)
	if err := lookedFor(err, "Skill", use.NamespacedName); err != nil {
		return err
	}
	m.skills = append(m.skills, s)
	if !slices.ContainsFunc(m.plan.Skills, func(have *v1alpha1.Skill) bool {
		return have.UID == s.UID && have.Name == s.Name && have.Namespace == s.Namespace
	}) {
		m.plan.Skills = append(m.plan.Skills, s)
	}
	m.plan.texts = append(m.plan.texts, func() string { return skillText(s) })
	return nil
}

// skillText is the text of a skill: its own, then its files by path.
func skillText(s *v1alpha1.Skill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Skill: %s\n\n%s", s.Name, s.Spec.Content.Inline)
	for _, path := range slices.Sorted(maps.Keys(s.Spec.Content.Files)) {
		fmt.Fprintf(&b, "\n\n## File of the skill: %s\n\n%s", path, s.Spec.Content.Files[path])
	}
	return b.String()
}

// configMap returns a text that the run needs.
func (m *maker) configMap(ctx context.Context, key types.NamespacedName, name string) (string, error) {
	use := ConfigMap{NamespacedName: key, Key: name}
	if err := m.lookUp(ctx, &use); err != nil {
		return "", err
	}
	if m.place.Pods && key.Namespace != m.namespace {
		return "", refusal.New(v1alpha1.ReasonRefused, "ConfigMap %q of namespace %q cannot be given to a pod of namespace %q", key.Name, key.Namespace, m.namespace)
	}
	m.keep(use)
	return use.Value, nil
}

// lookUp sets the value, or refuses the task if the ConfigMap or its key does not exist.
func (m *maker) lookUp(ctx context.Context, use *ConfigMap) error {
	value, ok, err := m.reader.ConfigMapKey(ctx, use.NamespacedName, use.Key)
	if err := lookedFor(err, "ConfigMap", use.NamespacedName); err != nil {
		return err
	}
	if !ok {
		return refusal.Missing(v1alpha1.ReasonConfigMapKeyNotFound, "ConfigMap %q of namespace %q has no key %q", use.Name, use.Namespace, use.Key)
	}
	use.Value = value
	return nil
}

// keep adds a key of a ConfigMap to the Plan.
func (m *maker) keep(use ConfigMap) {
	if !slices.Contains(m.plan.ConfigMaps, use) {
		m.plan.ConfigMaps = append(m.plan.ConfigMaps, use)
	}
}
