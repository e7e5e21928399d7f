// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/support"
)

// Prompt returns what the task asks: the first of spec.prompt and spec.ai.prompt that is not blank, or nothing.
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

// OfTask returns why the task cannot run wherever it is, as far as the task alone says. A task that breaks one of these
// rules is not accepted when it is written; one that was stored before the rule existed is refused when it is to start.
func OfTask(t *v1alpha1.Task) []*RefusedError {
	var list []*RefusedError
	for _, g := range support.Refused(support.Task(t)) {
		list = append(list, &RefusedError{Reason: v1alpha1.ReasonNotSupported, Message: g.String(), Field: g.Path})
	}
	asks := t.Spec.Type == v1alpha1.TaskTypeAI || t.Spec.Type == v1alpha1.TaskTypeAgent
	if asks && Prompt(&t.Spec) == "" && !PromptInSession(&t.Spec) {
		list = append(list, &RefusedError{
			Reason: v1alpha1.ReasonNoPrompt, Field: "spec.prompt",
			Message: "the task has no prompt: spec.prompt and spec.ai.prompt are blank, and spec.sessionRef.promptIncluded is not set",
		})
	}
	return list
}

// OfAgent returns what the task cannot have of its Agent, because this version lacks it. A task is not accepted either if
// its Agent is there when it is written.
func OfAgent(t *v1alpha1.Task, a *v1alpha1.Agent) []*RefusedError {
	var list []*RefusedError
	for _, g := range support.AgentOf(t, &a.Spec) {
		list = append(list, &RefusedError{Reason: v1alpha1.ReasonNotSupported, Message: fmt.Sprintf("agent %q: %s", a.Name, g), Field: "spec.agentRef"})
	}
	return list
}
