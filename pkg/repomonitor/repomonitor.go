// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package repomonitor is what servers and controllers agree on about RepositoryMonitors: which labels are commands, and how records are
// named, so that what both ask for is there once.
package repomonitor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// CommandLabel is a label that is a command.
type CommandLabel struct {
	// Field is where the label is, below spec.triggers.github.labels.
	Field  string
	Label  string
	Intent v1alpha1.MonitorIntent
}

// CommandLabels returns the labels of a monitor that are commands about one kind of target.
func CommandLabels(s *v1alpha1.RepositoryMonitorSpec, kind v1alpha1.MonitorTargetKind) []CommandLabel {
	i, p := &s.Triggers.GitHub.Labels.Issues, &s.Triggers.GitHub.Labels.PullRequests
	if kind == v1alpha1.MonitorIssue {
		return []CommandLabel{
			{"issues.triage", i.Triage, v1alpha1.MonitorTriage},
			{"issues.research", i.Research, v1alpha1.MonitorResearch},
			{"issues.plan", i.Plan, v1alpha1.MonitorPlan},
			{"issues.approvePlan", i.ApprovePlan, v1alpha1.MonitorApprovePlan},
			{"issues.implement", i.Implement, v1alpha1.MonitorImplement},
			{"issues.decompose", i.Decompose, v1alpha1.MonitorDecompose},
			{"issues.stop", i.Stop, v1alpha1.MonitorStop},
			{"issues.resume", i.Resume, v1alpha1.MonitorResume},
		}
	}
	return []CommandLabel{
		{"pullRequests.review", p.Review, v1alpha1.MonitorReviewIntent},
		{"pullRequests.fix", p.Fix, v1alpha1.MonitorFix},
		{"pullRequests.fixCI", p.FixCI, v1alpha1.MonitorFixCI},
		{"pullRequests.updateBranch", p.UpdateBranch, v1alpha1.MonitorUpdateBranch},
		{"pullRequests.automerge", p.Automerge, v1alpha1.MonitorAutomergeIntent},
		{"pullRequests.stop", p.Stop, v1alpha1.MonitorStop},
		{"pullRequests.resume", p.Resume, v1alpha1.MonitorResume},
	}
}

// HasLabel reports whether a label is among some. Code hosts do not distinguish case in labels.
func HasLabel(labels []string, label string) bool {
	return label != "" && slices.ContainsFunc(labels, func(l string) bool { return strings.EqualFold(l, label) })
}

// HasOneOf reports whether one of several labels is among some.
func HasOneOf(labels, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(l string) bool { return HasLabel(labels, l) })
}

// Accessible reports whether the own credential of a monitor has read its repository, as its spec is now.
func Accessible(m *v1alpha1.RepositoryMonitor) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRepositoryAccessible)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
}

// On returns a setting that is on unless it is switched off.
func On(b *bool) bool { return b == nil || *b }

// OwnedBy has a record, or a task, removed with its monitor.
func OwnedBy(m *v1alpha1.RepositoryMonitor) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.SchemeGroupVersion.WithKind("RepositoryMonitor"))}
}

// Digest returns the end of a name that says what a record is about.
func Digest(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%v\x00", p) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// NewRun returns a run of a monitor whose name ends as said.
func NewRun(m *v1alpha1.RepositoryMonitor, trigger v1alpha1.MonitorRunTrigger, end string) *v1alpha1.MonitorRun {
	return &v1alpha1.MonitorRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-" + end, OwnerReferences: OwnedBy(m)},
		Spec:       v1alpha1.MonitorRunSpec{MonitorName: m.Name, MonitorUID: m.UID, Trigger: trigger},
	}
}

// NewCommand returns a command to a monitor whose name ends as said.
func NewCommand(m *v1alpha1.RepositoryMonitor, end string, kind v1alpha1.MonitorTargetKind, number int64, intent v1alpha1.MonitorIntent) *v1alpha1.MonitorCommand {
	return &v1alpha1.MonitorCommand{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-" + end, OwnerReferences: OwnedBy(m)},
		Spec:       v1alpha1.MonitorCommandSpec{MonitorName: m.Name, MonitorUID: m.UID, TargetKind: kind, Number: number, Intent: intent},
	}
}

// ItemName returns the name of the item of a pull request or issue.
func ItemName(m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, number int64) string {
	of := "pr"
	if kind == v1alpha1.MonitorIssue {
		of = "issue"
	}
	return m.Name + "." + of + "-" + strconv.FormatInt(number, 10)
}
