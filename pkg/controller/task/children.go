// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/taskresult"
)

const (
	// shownChildren is how many children a task's status lists.
	shownChildren = 500
	// shownResult is how much of a child's result a task's status has, in characters.
	shownResult = 500
)

// children keeps status.childTasks of the tasks at the top of a tree up to date, and of schedules, whose children are their
// runs.
type children struct {
	// shown returns the tasks that a task delegated, and runs those of a schedule.
	shown, runs func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	// result returns what the worker submitted, if anything.
	result func(context.Context, *v1alpha1.Task) (text string, ok bool, err error)
}

func (s children) do(ctx context.Context, t *v1alpha1.Task) error {
	if _, child := t.Labels[v1alpha1.LabelParentTask]; child {
		return nil
	}
	var list []v1alpha1.Task
	var err error
	switch {
	case t.Status.HasChildren:
		list, err = s.shown(ctx, t)
	case t.Spec.Schedule != "" || t.Status.LastScheduleTime != nil:
		list, err = s.runs(ctx, t)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	rows := make([]v1alpha1.ChildTask, 0, len(list))
	for i := range list[:min(len(list), shownChildren)] {
		r, err := s.row(ctx, t, &list[i])
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	t.Status.ChildTasks = rows
	return nil
}

// row describes a child. The result of one that succeeded never changes, so it is read once.
func (s children) row(ctx context.Context, t, c *v1alpha1.Task) (v1alpha1.ChildTask, error) {
	r := v1alpha1.ChildTask{Name: c.Name, Phase: c.Status.Phase}
	if r.Phase == "" {
		r.Phase = v1alpha1.TaskPending
	}
	if ref := c.Spec.AgentRef; ref != nil {
		r.Agent = ref.Name
	}
	if r.Phase != v1alpha1.TaskSucceeded {
		return r, nil
	}
	known := func(old v1alpha1.ChildTask) bool { return old.Name == r.Name && old.Phase == r.Phase }
	if at := slices.IndexFunc(t.Status.ChildTasks, known); at >= 0 {
		return t.Status.ChildTasks[at], nil
	}
	text, _, err := s.result(ctx, c)
	if err != nil {
		return r, err
	}
	if parts := taskresult.Parse(text); parts != nil && parts.Summary != "" {
		text = parts.Summary
	}
	if runes := []rune(text); len(runes) > shownResult {
		text = string(runes[:shownResult]) + "..."
	}
	r.Result = text
	return r, nil
}
