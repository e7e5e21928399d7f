// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/delegation"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/prior"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
)

// started reports whether work has begun with the current spec. From then on
// the spec is the record of what was requested.
func started(s *v1alpha1.TaskStatus) bool {
	return s.AgentExecutionBinding != nil || s.Attempts > 0 || s.StartTime != nil || s.Phase.Terminal()
}

// prepareForUpdate keeps what the server set when the task was created and an update leaves out, and records since when a
// schedule applies.
func (r *Resource) prepareForUpdate(_ context.Context, t, old *v1alpha1.Task) {
	requester.Keep(t, old)
	keepCompleted(t, old)
	changed := t.Spec.Schedule != old.Spec.Schedule || t.Spec.TimeZone != old.Spec.TimeZone || old.Spec.Suspend && !t.Spec.Suspend
	if t.Spec.Schedule != "" && changed {
		t.Status.ScheduleSince = &metav1.Time{Time: r.clock.Now()}
	}
}

// validateUpdate refuses changes of immutable fields, except type, requestedBy
// and transaction, which tags of the type protect.
func validateUpdate(_ context.Context, t, old *v1alpha1.Task) field.ErrorList {
	path := field.NewPath("spec")
	errs := slices.Concat(requester.Validate(t, old), delegation.ValidateMarkers(t, old), prior.ValidateUpdate(t, old), validateTexts(&t.Spec, &old.Spec))
	if started(&old.Status) {
		return append(errs, validateStarted(&t.Spec, &old.Spec, path)...)
	}
	if intent := effectiveIntent(&t.Spec); intent != effectiveIntent(&old.Spec) {
		errs = append(errs, immutable(path.Child("workspace", "intent"), intent))
	}
	if old.Spec.Type != v1alpha1.TaskTypeAgent {
		return errs
	}
	for _, f := range []struct {
		name     string
		new, old any
	}{
		{"prompt", t.Spec.Prompt, old.Spec.Prompt},
		{"agentRef", t.Spec.AgentRef, old.Spec.AgentRef},
		{"agentRuntime", t.Spec.AgentRuntime, old.Spec.AgentRuntime},
		{"sessionRef", t.Spec.SessionRef, old.Spec.SessionRef},
		{"workspace", t.Spec.Workspace, old.Spec.Workspace},
		{"timeout", t.Spec.Timeout.Value(), old.Spec.Timeout.Value()},
	} {
		if !equality.Semantic.DeepEqual(f.new, f.old) {
			errs = append(errs, immutable(path.Child(f.name), field.OmitValueType{}))
		}
	}
	return errs
}

// validateStarted allows only suspend to change, which stops the next iteration
// of a running task.
func validateStarted(spec, old *v1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	was := old.DeepCopy()
	was.Suspend = spec.Suspend
	// Changes of these are reported by their tags.
	was.Type, was.RequestedBy, was.Transaction = spec.Type, spec.RequestedBy, spec.Transaction
	// A manifest may write a duration differently from an older server, which stored 10m as 10m0s.
	if spec.Timeout.Value() == was.Timeout.Value() {
		was.Timeout = spec.Timeout
	}
	if now, then := spec.RetryPolicy, was.RetryPolicy; now != nil && then != nil && now.InitialDelay.Value() == then.InitialDelay.Value() {
		then.InitialDelay = now.InitialDelay
	}
	if equality.Semantic.DeepEqual(spec, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "the task has started: only suspend can be changed")}
}

func immutable(path *field.Path, value any) *field.Error {
	return field.Invalid(path, value, apivalidation.FieldImmutableErrorMsg).WithOrigin("immutable")
}

// validateStatus refuses to leave a terminal phase, because everything that
// follows the end of a task relies on it. It also records that a controller has
// picked up a task.
func (r *Resource) validateStatus(_ context.Context, t, old *v1alpha1.Task) field.ErrorList {
	if old.Status.Phase == "" && t.Status.Phase != "" {
		r.attendance.Began(t.Namespace)
	}
	path := field.NewPath("status", "phase")
	if old.Status.Phase.Terminal() && t.Status.Phase != old.Status.Phase {
		return field.ErrorList{field.Invalid(path, t.Status.Phase, "the task has ended: its phase stays "+string(old.Status.Phase))}
	}
	return nil
}
