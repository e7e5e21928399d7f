// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunOfSchedule returns a run of a scheduled task, without a name and an owner: a copy without the schedule and without
// what only the server may set.
func (t *Task) RunOfSchedule() *Task {
	spec := t.Spec.DeepCopy()
	spec.Schedule, spec.TimeZone, spec.ConcurrencyPolicy = "", "", ""
	spec.StartingDeadlineSeconds, spec.SuccessfulRunsHistoryLimit, spec.FailedRunsHistoryLimit = nil, nil, nil
	spec.Suspend = false
	spec.RequestedBy, spec.Transaction = nil, nil
	return &Task{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   t.Namespace,
			Labels:      map[string]string{LabelParentTask: LabelValue(t.Name), LabelScheduledRun: "true"},
			Annotations: map[string]string{AnnotationParentTaskName: t.Name},
		},
		Spec: *spec,
	}
}
