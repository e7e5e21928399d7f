// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/schedule"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// columns returns the columns of kubectl get. usage returns what a task has used; nil if nothing is known. runs knows the runs of
// schedules, whose columns are those of a CronJob.
func columns(usage func(*v1alpha1.Task) *v1alpha1.TaskUsage, runs *schedule.Runs) []resource.Column[*v1alpha1.Task] {
	return []resource.Column[*v1alpha1.Task]{
		{Name: "Phase", Description: "Where the task is in its life.", Value: func(t *v1alpha1.Task) any { return phase(t) }},
		{Name: "Agent", Description: "The agent that does the work.", Value: func(t *v1alpha1.Task) any { return agent(t) }},
		{Name: "Model", Description: "The model that is asked.", Value: func(t *v1alpha1.Task) any { return model(t) }},
		{Name: "Tokens", Description: "Input and output tokens as reported by the provider; a plus sign means that some requests were not reported.", Value: func(t *v1alpha1.Task) any { return tokens(t, usage(t)) }},
		{Name: "Type", Wide: true, Description: "What runs the task.", Value: func(t *v1alpha1.Task) any { return string(t.Spec.Type) }},
		{Name: "Attempts", Type: "integer", Wide: true, Description: "The number of attempts.", Value: func(t *v1alpha1.Task) any { return int64(t.Status.Attempts) }},
		{Name: "Session", Wide: true, Description: "The session that the task continues.", Value: func(t *v1alpha1.Task) any { return stored.Session(t) }},
		{Name: "Started", Wide: true, Description: "The time since the first attempt started.", Value: func(t *v1alpha1.Task) any { return t.Status.StartTime }},
		{Name: "Completed", Wide: true, Description: "The time since the task ended.", Value: func(t *v1alpha1.Task) any { return t.Status.CompletionTime }},
		{Name: "Schedule", Wide: true, Description: "When a schedule creates runs.", Value: func(t *v1alpha1.Task) any { return t.Spec.Schedule }},
		{Name: "Timezone", Wide: true, Description: "The time zone of a schedule.", Value: func(t *v1alpha1.Task) any { return timeZone(t) }},
		{Name: "Suspend", Wide: true, Description: "Whether a schedule, or an autonomous task between iterations, is suspended.", Value: func(t *v1alpha1.Task) any { return suspended(t) }},
		{Name: "Active", Wide: true, Description: "The number of runs of a schedule that have not ended.", Value: func(t *v1alpha1.Task) any { return active(t, runs) }},
		{Name: "Last Schedule", Wide: true, Description: "The time since a schedule was last due.", Value: func(t *v1alpha1.Task) any { return t.Status.LastScheduleTime }},
		{Name: "Next Schedule", Wide: true, Description: "When a schedule creates its next run.", Value: func(t *v1alpha1.Task) any { return next(t) }},
		{Name: "Message", Wide: true, Description: "What explains the phase.", Value: func(t *v1alpha1.Task) any { return t.Status.Message }},
	}
}

// suspended is empty for tasks that cannot be suspended, so that it does not look like a setting of theirs.
func suspended(t *v1alpha1.Task) string {
	if s := suspend(t); s != nil {
		return strconv.FormatBool(*s)
	}
	return ""
}

// timeZone is empty for tasks without a schedule, all of which have the default.
func timeZone(t *v1alpha1.Task) string {
	if t.Spec.Schedule == "" {
		return ""
	}
	return t.Spec.TimeZone
}

// active is empty for tasks that have no runs because they have no schedule.
func active(t *v1alpha1.Task, runs *schedule.Runs) string {
	if t.Spec.Schedule == "" {
		return ""
	}
	n, known := runs.Of(t.UID)
	if !known {
		return "?"
	}
	return strconv.Itoa(n)
}

// next returns a time rather than a duration, because columns show only how long ago something was.
func next(t *v1alpha1.Task) string {
	if at := t.Status.NextScheduleTime; at != nil {
		return at.UTC().Format(time.RFC3339)
	}
	return ""
}

// phase returns the phase that kubectl shows. A task that no controller has
// seen is shown as waiting for one; a task that waits to start or waits for an
// approval is shown with what it waits for.
func phase(t *v1alpha1.Task) string {
	waits := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
	switch {
	case t.DeletionTimestamp != nil && !t.Status.Phase.Terminal():
		return v1alpha1.TaskTerminating
	case waits != nil && waits.Status == metav1.ConditionTrue && (t.Status.Phase == "" || t.Status.Phase == v1alpha1.TaskRunning):
		return waits.Reason
	case t.Status.Phase == "":
		return string(v1alpha1.TaskPending)
	case t.Status.Phase == v1alpha1.TaskRunning && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionWaitingForApproval):
		return v1alpha1.ConditionWaitingForApproval
	}
	return string(t.Status.Phase)
}

func agent(t *v1alpha1.Task) string {
	switch {
	case t.Status.AgentName != "":
		return t.Status.AgentName
	case t.Spec.AgentRef != nil:
		return t.Spec.AgentRef.Name
	}
	return ""
}

func model(t *v1alpha1.Task) string {
	switch {
	case t.Status.Model != "":
		return t.Status.Model
	case t.Spec.AI != nil:
		return t.Spec.AI.Model
	}
	return ""
}

// tokens shows unknown numbers as unknown, never as zero.
func tokens(t *v1alpha1.Task, u *v1alpha1.TaskUsage) string {
	switch {
	case t.Spec.Type == v1alpha1.TaskTypeContainer && u == nil:
		return ""
	case u == nil || u.InputTokens == nil && u.OutputTokens == nil:
		return "unavailable"
	}
	s := fmt.Sprintf("%s/%s", count(u.InputTokens), count(u.OutputTokens))
	if u.UnreportedRequests > 0 {
		s += "+"
	}
	return s
}

func count(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}
