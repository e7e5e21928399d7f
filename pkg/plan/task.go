// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/support"
)

// Prompt returns the task's prompt: the first of spec.prompt and spec.ai.prompt that is not blank, or an empty
// string.
func Prompt(s *v1alpha1.TaskSpec) string {
	if strings.TrimSpace(s.Prompt) != "" {
		return s.Prompt
	}
	if s.AI != nil && strings.TrimSpace(s.AI.Prompt) != "" {
		return s.AI.Prompt
	}
	return ""
}

// PromptInSession reports whether the prompt is the last message of the task's session.
func PromptInSession(s *v1alpha1.TaskSpec) bool {
	return s.SessionRef != nil && s.SessionRef.PromptIncluded
}

// defaultHistory is the default of maxMessages, of a task's sessionRef and of an agent's session.
const defaultHistory = 50

// History returns how many of the newest messages of its session a task reads: as many as its sessionRef says, or if that is the
// default, as many as the session of its agent says; a may be nil.
func History(s *v1alpha1.TaskSpec, a *v1alpha1.Agent) int {
	if ref := s.SessionRef; ref != nil && ref.MaxMessages != nil && *ref.MaxMessages != defaultHistory {
		return int(*ref.MaxMessages)
	}
	if a != nil && a.Spec.Session != nil && a.Spec.Session.MaxMessages != nil {
		return int(*a.Spec.Session.MaxMessages)
	}
	return defaultHistory
}

// OfTask returns why the task cannot run anywhere, judged by the task alone. Admission rejects a task that breaks one
// of these rules. A task that was stored before the rule existed is refused when it is about to start.
func OfTask(t *v1alpha1.Task) []*refusal.Error {
	var list []*refusal.Error
	for _, g := range support.Refused(support.Task(t)) {
		list = append(list, &refusal.Error{Reason: v1alpha1.ReasonNotSupported, Message: g.String(), Field: g.Path})
	}
	for _, of := range []func(*v1alpha1.Task) *refusal.Error{ofWorkspace, ofPrior} {
		if r := of(t); r != nil {
			list = append(list, r)
		}
	}
	asks := t.Spec.Type == v1alpha1.TaskTypeAI || t.Spec.Type == v1alpha1.TaskTypeAgent
	if asks && Prompt(&t.Spec) == "" && !PromptInSession(&t.Spec) {
		list = append(list, &refusal.Error{
			Reason: v1alpha1.ReasonNoPrompt, Field: "spec.prompt",
			Message: "the task has no prompt: spec.prompt and spec.ai.prompt are blank, and spec.sessionRef.promptIncluded is not set",
		})
	}
	return list
}

// OfAgent returns which of its Agent's settings the task cannot use because this version does not implement them.
// Admission rejects such a task if the Agent exists when the task is written.
func OfAgent(t *v1alpha1.Task, a *v1alpha1.Agent) []*refusal.Error {
	var list []*refusal.Error
	for _, g := range support.AgentOf(t, &a.Spec) {
		list = append(list, &refusal.Error{Reason: v1alpha1.ReasonNotSupported, Message: fmt.Sprintf("agent %q: %s", a.Name, g), Field: "spec.agentRef"})
	}
	return list
}
