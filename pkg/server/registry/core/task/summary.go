// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/readmodel/fork"
)

// Sizes of the texts of a summary, in bytes, so that a page of summaries stays small whatever the tasks are about.
const (
	maxAbout   = 160
	maxMessage = 240
)

// Summary returns what a list shows of a task, without what it has used and how long it has run.
func Summary(t *v1alpha1.Task) v1alpha1.TaskSummary {
	s := v1alpha1.TaskSummary{
		Name: t.Name, UID: t.UID, Type: t.Spec.Type, Phase: phase(t), Agent: agent(t), Model: model(t),
		Prompt: about(&t.Spec), Reason: t.Reason(), Suspend: suspend(t),
		CreationTimestamp: t.CreationTimestamp, StartTime: t.Status.StartTime, CompletionTime: t.Status.CompletionTime,
	}
	if t.Status.Phase != v1alpha1.TaskSucceeded {
		s.Message = cut(t.Status.Message, maxMessage)
	}
	if d := t.Status.Delegation; d != nil {
		s.Parent = d.Parent
	}
	return s
}

// about returns the first line of what a task is asked, or the command that it runs.
func about(spec *v1alpha1.TaskSpec) string {
	text := fork.Own(plan.Prompt(spec))
	if spec.Type == v1alpha1.TaskTypeContainer && strings.TrimSpace(text) == "" {
		text = strings.Join(append(append([]string{}, spec.Command...), spec.Args...), " ")
	}
	line, rest, _ := strings.Cut(strings.TrimLeft(clip.Text(text, 4*maxAbout), " \t\r\n"), "\n")
	if line = strings.TrimRight(line, " \t\r"); strings.TrimSpace(rest) != "" {
		line += " …"
	}
	return cut(line, maxAbout)
}

// cut shortens a text to so many bytes. One that is cut ends with an ellipsis.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.TrimSuffix(clip.Text(s, limit-len("…")), " ") + "…"
}

// suspend returns whether a task is suspended; nil if that has no effect on it.
func suspend(t *v1alpha1.Task) *bool {
	if t.Spec.Schedule == "" && !t.Spec.Suspend && meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionIterating) == nil || t.Status.Phase.Terminal() {
		return nil
	}
	return new(t.Spec.Suspend)
}
