// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunOfSchedule returns a run of a scheduled task, without a name and an owner.
func (t *Task) RunOfSchedule() *Task {
	return &Task{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   t.Namespace,
			Labels:      map[string]string{LabelParentTask: LabelValue(t.Name), LabelScheduledRun: "true"},
			Annotations: map[string]string{AnnotationParentTaskName: t.Name},
		},
		Spec: *t.once(),
	}
}

// Again returns a task that is to do the same once more, without a name and an owner, and with the labels that people gave. It belongs to
// no tree and to no schedule. The console makes the same one.
func (t *Task) Again() *Task {
	run := &Task{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Labels: maps.Clone(t.Labels)}, Spec: *t.once()}
	maps.DeleteFunc(run.Labels, func(key, _ string) bool {
		return strings.HasPrefix(key, LabelPrefix) || strings.HasPrefix(key, GatewayPrefix)
	})
	if ref := run.Spec.SessionRef; ref != nil {
		ref.PromptIncluded = false // the session has gone on since
	}
	return run
}

// once returns a copy of the spec without the schedule and without what only the server may set.
func (t *Task) once() *TaskSpec {
	spec := t.Spec.DeepCopy()
	spec.Schedule, spec.TimeZone, spec.ConcurrencyPolicy = "", "", ""
	spec.StartingDeadlineSeconds, spec.SuccessfulRunsHistoryLimit, spec.FailedRunsHistoryLimit = nil, nil, nil
	spec.Suspend = false
	spec.RequestedBy, spec.Transaction = nil, nil
	return spec
}
