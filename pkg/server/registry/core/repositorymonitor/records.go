// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Records returns the resources of what monitors keep. People read them; a controller writes them.
func Records(stored Stored, c clock.PassiveClock) []resource.Resource {
	return []resource.Resource{runs(stored.Runs, c), items(stored.Items), commands(stored.Commands, c), works(stored.Works, c), mutations(stored.Mutations, c)}
}

// record completes the definition of a record.
func record[T resource.Object](d *resource.Definition[T], resourceName, kind, singular string, monitor func(T) string) resource.Resource {
	d.Resource, d.Kind, d.Singular = v1alpha1.SchemeGroupVersion.WithResource(resourceName), kind, singular
	d.Roles, d.Scopes, d.Categories = resource.Roles{Readers: resource.Users()}, &external.Scopes{Read: "monitors:read"}, []string{"platform-monitors"}
	d.Fields = append(d.Fields, resource.Field[T]{Path: fieldMonitor, Value: monitor, Indexed: true})
	return d
}

// Fields of records.
const (
	fieldMonitor = "spec.monitorName"
	fieldState   = "status.state"
)

// due returns a time of an entry's next attempt.
func due(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// now returns the time as it is stored, in seconds: what is due is found by the stored time.
func now(c clock.PassiveClock) *metav1.Time {
	t := metav1.NewTime(c.Now()).Rfc3339Copy()
	return &t
}

func about(kind v1alpha1.MonitorTargetKind, number int64) string {
	switch {
	case kind == "":
		return "all"
	case number == 0:
		return string(kind)
	}
	return string(kind) + " " + strconv.FormatInt(number, 10)
}

func runs(stored *resource.Stored[*v1alpha1.MonitorRun], c clock.PassiveClock) resource.Resource {
	return record(&resource.Definition[*v1alpha1.MonitorRun]{
		Stored: stored,
		Fields: []resource.Field[*v1alpha1.MonitorRun]{
			{Path: fieldState, Indexed: true, Value: func(r *v1alpha1.MonitorRun) string { return string(r.Status.State) }},
		},
		Columns: []resource.Column[*v1alpha1.MonitorRun]{
			{Name: "Monitor", Description: "The monitor.", Value: func(r *v1alpha1.MonitorRun) any { return r.Spec.MonitorName }},
			{Name: "About", Description: "What is looked at.", Value: func(r *v1alpha1.MonitorRun) any { return about(r.Spec.TargetKind, r.Spec.TargetNumber) }},
			{Name: "Trigger", Description: "Why the run was made.", Value: func(r *v1alpha1.MonitorRun) any { return string(r.Spec.Trigger) }},
			{Name: "State", Description: "Where the run is.", Value: func(r *v1alpha1.MonitorRun) any { return string(r.Status.State) }},
			{Name: "Work", Type: "integer", Description: "How much work was begun.", Value: func(r *v1alpha1.MonitorRun) any { return int64(r.Status.WorkActions) }},
			{Name: "Message", Wide: true, Description: "How it ended.", Value: func(r *v1alpha1.MonitorRun) any { return r.Status.Message }},
		},
		Shape: resource.StateLedger[*v1alpha1.MonitorRun]{
			Kept: resource.Kept[*v1alpha1.MonitorRun]{PrepareForCreate: func(_ context.Context, r *v1alpha1.MonitorRun) {
				r.Status = v1alpha1.MonitorRunStatus{State: v1alpha1.MonitorRunQueued, NextAttemptAt: now(c)}
			}},
			States: resource.States{
				Initial: []string{"queued"}, Ended: []string{"succeeded", "failed"},
				Table: []resource.Transition{
					{From: "queued", To: "running"},
					{From: "queued", To: "failed"},
					{From: "running", To: "succeeded"},
					{From: "running", To: "failed"},
				},
			},
			Entry: func(r *v1alpha1.MonitorRun) resource.Entry {
				return resource.Entry{State: string(r.Status.State), Next: due(r.Status.NextAttemptAt)}
			},
			Retention: recordRetention,
		},
	}, "monitorruns", "MonitorRun", "monitorrun", func(r *v1alpha1.MonitorRun) string { return r.Spec.MonitorName })
}

func items(stored *resource.Stored[*v1alpha1.MonitorItem]) resource.Resource {
	return record(&resource.Definition[*v1alpha1.MonitorItem]{
		Stored:     stored,
		ShortNames: []string{"mitem"},
		Fields: []resource.Field[*v1alpha1.MonitorItem]{
			{Path: "spec.targetKind", Value: func(i *v1alpha1.MonitorItem) string { return string(i.Spec.TargetKind) }},
			{Path: "spec.number", Value: func(i *v1alpha1.MonitorItem) string { return strconv.FormatInt(i.Spec.Number, 10) }},
			{Path: fieldState, Value: func(i *v1alpha1.MonitorItem) string { return string(i.Status.State) }},
			{Path: "status.review.verdict", Value: verdict},
			{Path: "status.repair.phase", Value: repairPhase},
			{Path: "status.automerge.state", Value: automergeState},
		},
		Columns: []resource.Column[*v1alpha1.MonitorItem]{
			{Name: "Monitor", Description: "The monitor.", Value: func(i *v1alpha1.MonitorItem) any { return i.Spec.MonitorName }},
			{Name: "About", Description: "What it is.", Value: func(i *v1alpha1.MonitorItem) any { return about(i.Spec.TargetKind, i.Spec.Number) }},
			{Name: "State", Description: "Its state at the code host.", Value: func(i *v1alpha1.MonitorItem) any { return string(i.Status.State) }},
			{Name: "Stage", Description: "What came of the review, or where the work on the issue is.", Value: func(i *v1alpha1.MonitorItem) any {
				if i.Status.Issue != nil {
					return string(i.Status.Issue.Phase)
				}
				return verdict(i)
			}},
			{Name: "Merge", Description: "Whether it is merged.", Value: func(i *v1alpha1.MonitorItem) any { return automergeState(i) }},
			{Name: "Blocked", Description: "What keeps it from going on.", Value: func(i *v1alpha1.MonitorItem) any { return i.Status.BlockedReason }},
			{Name: "Title", Wide: true, Description: "Its title.", Value: func(i *v1alpha1.MonitorItem) any { return i.Status.Title }},
		},
		Shape: resource.Kept[*v1alpha1.MonitorItem]{
			Frozen: []resource.Frozen[*v1alpha1.MonitorItem]{{Path: specPath, Value: func(i *v1alpha1.MonitorItem) any { return i.Spec }}},
		},
	}, "monitoritems", "MonitorItem", "monitoritem", func(i *v1alpha1.MonitorItem) string { return i.Spec.MonitorName })
}

func verdict(i *v1alpha1.MonitorItem) string {
	if i.Status.Review == nil {
		return ""
	}
	return string(i.Status.Review.Verdict)
}

func repairPhase(i *v1alpha1.MonitorItem) string {
	if i.Status.Repair == nil {
		return ""
	}
	return string(i.Status.Repair.Phase)
}

func automergeState(i *v1alpha1.MonitorItem) string {
	if i.Status.Automerge == nil {
		return ""
	}
	return string(i.Status.Automerge.State)
}

func commands(stored *resource.Stored[*v1alpha1.MonitorCommand], c clock.PassiveClock) resource.Resource {
	return record(&resource.Definition[*v1alpha1.MonitorCommand]{
		Stored: stored,
		Fields: []resource.Field[*v1alpha1.MonitorCommand]{
			{Path: fieldState, Indexed: true, Value: func(m *v1alpha1.MonitorCommand) string { return string(m.Status.State) }},
			{Path: "spec.targetKind", Value: func(m *v1alpha1.MonitorCommand) string { return string(m.Spec.TargetKind) }},
			{Path: "spec.number", Value: func(m *v1alpha1.MonitorCommand) string { return strconv.FormatInt(m.Spec.Number, 10) }},
			{Path: "spec.intent", Value: func(m *v1alpha1.MonitorCommand) string { return string(m.Spec.Intent) }},
		},
		Columns: []resource.Column[*v1alpha1.MonitorCommand]{
			{Name: "Monitor", Description: "The monitor.", Value: func(m *v1alpha1.MonitorCommand) any { return m.Spec.MonitorName }},
			{Name: "About", Description: "What it is about.", Value: func(m *v1alpha1.MonitorCommand) any { return about(m.Spec.TargetKind, m.Spec.Number) }},
			{Name: "Intent", Description: "What was asked for.", Value: func(m *v1alpha1.MonitorCommand) any { return string(m.Spec.Intent) }},
			{Name: "From", Description: "Who asked.", Value: func(m *v1alpha1.MonitorCommand) any { return m.Spec.Sender }},
			{Name: "State", Description: "What became of it.", Value: func(m *v1alpha1.MonitorCommand) any { return string(m.Status.State) }},
			{Name: "Message", Wide: true, Description: "Why.", Value: func(m *v1alpha1.MonitorCommand) any { return m.Status.Message }},
		},
		Shape: resource.StateLedger[*v1alpha1.MonitorCommand]{
			Kept: resource.Kept[*v1alpha1.MonitorCommand]{PrepareForCreate: func(_ context.Context, m *v1alpha1.MonitorCommand) {
				m.Status = v1alpha1.MonitorCommandStatus{State: v1alpha1.MonitorCommandAccepted, NextAttemptAt: now(c)}
			}},
			States: resource.States{
				Initial: []string{"accepted"}, Ended: []string{"rejected", "blocked", "completed"},
				Table: []resource.Transition{
					{From: "accepted", To: "rejected"},
					{From: "accepted", To: "blocked"},
					{From: "accepted", To: "processed"},
					{From: "accepted", To: "completed"},
					{From: "processed", To: "completed"},
					{From: "processed", To: "blocked"},
				},
			},
			Entry: func(m *v1alpha1.MonitorCommand) resource.Entry {
				return resource.Entry{State: string(m.Status.State), Next: due(m.Status.NextAttemptAt)}
			},
			Retention: recordRetention,
		},
	}, "monitorcommands", "MonitorCommand", "monitorcommand", func(m *v1alpha1.MonitorCommand) string { return m.Spec.MonitorName })
}

func works(stored *resource.Stored[*v1alpha1.MonitorWorkAction], c clock.PassiveClock) resource.Resource {
	return record(&resource.Definition[*v1alpha1.MonitorWorkAction]{
		Stored: stored,
		Fields: []resource.Field[*v1alpha1.MonitorWorkAction]{
			{Path: fieldState, Indexed: true, Value: func(w *v1alpha1.MonitorWorkAction) string { return string(w.Status.State) }},
			{Path: "spec.targetKind", Value: func(w *v1alpha1.MonitorWorkAction) string { return string(w.Spec.TargetKind) }},
			{Path: "spec.number", Value: func(w *v1alpha1.MonitorWorkAction) string { return strconv.FormatInt(w.Spec.Number, 10) }},
			{Path: "spec.desiredAction", Value: func(w *v1alpha1.MonitorWorkAction) string { return string(w.Spec.DesiredAction) }},
		},
		Columns: []resource.Column[*v1alpha1.MonitorWorkAction]{
			{Name: "Monitor", Description: "The monitor.", Value: func(w *v1alpha1.MonitorWorkAction) any { return w.Spec.MonitorName }},
			{Name: "About", Description: "What it is about.", Value: func(w *v1alpha1.MonitorWorkAction) any { return about(w.Spec.TargetKind, w.Spec.Number) }},
			{Name: "Action", Description: "What is to be done.", Value: func(w *v1alpha1.MonitorWorkAction) any { return string(w.Spec.DesiredAction) }},
			{Name: "State", Description: "How far it is.", Value: func(w *v1alpha1.MonitorWorkAction) any { return string(w.Status.State) }},
			{Name: "Task", Description: "The task of the agent.", Value: func(w *v1alpha1.MonitorWorkAction) any { return w.Status.TaskName }},
			{Name: "Message", Wide: true, Description: "How it ended.", Value: func(w *v1alpha1.MonitorWorkAction) any { return w.Status.Message }},
		},
		Shape: resource.StateLedger[*v1alpha1.MonitorWorkAction]{
			Kept: resource.Kept[*v1alpha1.MonitorWorkAction]{PrepareForCreate: func(_ context.Context, w *v1alpha1.MonitorWorkAction) {
				w.Status = v1alpha1.MonitorWorkActionStatus{State: v1alpha1.MonitorWorkQueued, NextAttemptAt: now(c)}
			}},
			States: resource.States{
				Initial: []string{"queued"}, Ended: []string{"succeeded", "failed", "blocked", "cancelled"},
				Table: []resource.Transition{
					{From: "queued", To: "running"},
					{From: "queued", To: "blocked"},
					{From: "queued", To: "cancelled"},
					{From: "queued", To: "failed"},
					{From: "running", To: "succeeded"},
					{From: "running", To: "failed"},
					{From: "running", To: "blocked"},
					{From: "running", To: "cancelled"},
					{From: "running", To: "retry_pending"},
					{From: "retry_pending", To: "running"},
					{From: "retry_pending", To: "cancelled"},
					{From: "retry_pending", To: "blocked"},
					{From: "retry_pending", To: "failed"},
				},
			},
			Entry: func(w *v1alpha1.MonitorWorkAction) resource.Entry {
				return resource.Entry{State: string(w.Status.State), Next: due(w.Status.NextAttemptAt)}
			},
			Retention: recordRetention,
		},
	}, "monitorworkactions", "MonitorWorkAction", "monitorworkaction", func(w *v1alpha1.MonitorWorkAction) string { return w.Spec.MonitorName })
}

func mutations(stored *resource.Stored[*v1alpha1.MonitorMutation], c clock.PassiveClock) resource.Resource {
	return record(&resource.Definition[*v1alpha1.MonitorMutation]{
		Stored: stored,
		Fields: []resource.Field[*v1alpha1.MonitorMutation]{
			{Path: fieldState, Indexed: true, Value: func(m *v1alpha1.MonitorMutation) string { return string(m.Status.State) }},
			{Path: "spec.targetKind", Value: func(m *v1alpha1.MonitorMutation) string { return string(m.Spec.TargetKind) }},
			{Path: "spec.number", Value: func(m *v1alpha1.MonitorMutation) string { return strconv.FormatInt(m.Spec.Number, 10) }},
			{Path: "spec.operation", Value: func(m *v1alpha1.MonitorMutation) string { return string(m.Spec.Operation) }},
		},
		Columns: []resource.Column[*v1alpha1.MonitorMutation]{
			{Name: "Monitor", Description: "The monitor.", Value: func(m *v1alpha1.MonitorMutation) any { return m.Spec.MonitorName }},
			{Name: "About", Description: "What it is about.", Value: func(m *v1alpha1.MonitorMutation) any { return about(m.Spec.TargetKind, m.Spec.Number) }},
			{Name: "Operation", Description: "What is written.", Value: func(m *v1alpha1.MonitorMutation) any { return string(m.Spec.Operation) }},
			{Name: "State", Description: "What became of it.", Value: func(m *v1alpha1.MonitorMutation) any { return string(m.Status.State) }},
			{Name: "Message", Wide: true, Description: "Why.", Value: func(m *v1alpha1.MonitorMutation) any { return m.Status.Message }},
		},
		Shape: resource.StateLedger[*v1alpha1.MonitorMutation]{
			Kept: resource.Kept[*v1alpha1.MonitorMutation]{PrepareForCreate: func(_ context.Context, m *v1alpha1.MonitorMutation) {
				m.Status = v1alpha1.MonitorMutationStatus{State: v1alpha1.MonitorPublishStarted, NextAttemptAt: now(c)}
			}},
			States: resource.States{
				Initial: []string{"started"}, Ended: []string{"succeeded", "skipped", "failed"},
				Table: []resource.Transition{{From: "started", To: "succeeded"}, {From: "started", To: "skipped"}, {From: "started", To: "failed"}},
			},
			Entry: func(m *v1alpha1.MonitorMutation) resource.Entry {
				return resource.Entry{State: string(m.Status.State), Next: due(m.Status.NextAttemptAt)}
			},
			Retention: recordRetention,
		},
	}, "monitormutations", "MonitorMutation", "monitormutation", func(m *v1alpha1.MonitorMutation) string { return m.Spec.MonitorName })
}
