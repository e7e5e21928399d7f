// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/repomonitor"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
	"github.com/platform-ai/platform/pkg/support"
)

// maxName leaves room in the names of records, and lets the name be the value of a label.
const maxName = 63

var specPath = field.NewPath("spec")

func validateName(name string, prefix bool) []string {
	errs := validation.NameIsDNSSubdomain(name, prefix)
	if len(name) > maxName {
		errs = append(errs, fmt.Sprintf("must be at most %d bytes", maxName))
	}
	return errs
}

func validate(_ context.Context, m *v1alpha1.RepositoryMonitor) field.ErrorList {
	s := &m.Spec
	errs := rule.Schedule(s.Schedule, s.TimeZone, specPath)
	if _, err := codehost.ParseAddress(s.RepoURL); err != nil {
		errs = append(errs, field.Invalid(specPath.Child("repoURL"), "(not shown)", err.Error()))
	}
	errs = append(errs, validateTargets(s)...)
	errs = append(errs, validateCredentials(s)...)
	errs = append(errs, validateLabels(s)...)
	errs = append(errs, rule.Positive(s.Review.StaleReviewTTL, specPath.Child("review", "staleReviewTTL"))...)
	if image := s.Validation.Image; image != "" {
		errs = append(errs, rule.PinnedImage(image, specPath.Child("validation", "image"))...)
	}
	for i, p := range s.IssueWorkflow.Implementation.AllowedPaths {
		errs = append(errs, rule.RelativePath(p, specPath.Child("issueWorkflow", "implementation", "allowedPaths").Index(i))...)
	}
	for _, gap := range support.Refused(support.RepositoryMonitor(s)) {
		errs = append(errs, field.Forbidden(field.NewPath(gap.Path), gap.Text))
	}
	return errs
}

func validateTargets(s *v1alpha1.RepositoryMonitorSpec) field.ErrorList {
	var errs field.ErrorList
	at := specPath.Child("targets")
	pulls, issues := repomonitor.On(s.Targets.PullRequests.Enabled), s.Targets.Issues.Enabled
	if c := s.Targets.Commits; c != nil && c.Enabled {
		errs = append(errs, field.Forbidden(at.Child("commits", "enabled"), "no monitor looks after commits"))
	}
	if !pulls && !issues {
		errs = append(errs, field.Required(at, "pullRequests or issues must be enabled"))
	}
	if pulls && s.Agents.Reviewer == nil {
		errs = append(errs, field.Required(specPath.Child("agents", "reviewer"), "a monitor of pull requests needs an Agent that reviews them"))
	}
	if s.Repair.Enabled && s.Agents.Repairer == nil {
		errs = append(errs, field.Required(specPath.Child("agents", "repairer"), "spec.repair.enabled needs it"))
	}
	w := &s.IssueWorkflow
	for _, stage := range []struct {
		enabled bool
		agent   *v1alpha1.LocalReference
		name    string
	}{
		{w.Triage.Enabled, s.Agents.Triager, "triager"},
		{w.Research.Enabled, s.Agents.Researcher, "researcher"},
		{w.Planning.Enabled || w.Implementation.RequireApprovedPlan, s.Agents.Planner, "planner"},
		{w.Implementation.Enabled, s.Agents.Implementer, "implementer"},
	} {
		if stage.enabled && stage.agent == nil {
			errs = append(errs, field.Required(specPath.Child("agents", stage.name), "a stage of spec.issueWorkflow that is enabled needs it"))
		}
	}
	return errs
}

// validateCredentials requires the credentials of what is enabled, each in a Secret of its own: what reads must not be able to write.
func validateCredentials(s *v1alpha1.RepositoryMonitorSpec) field.ErrorList {
	var errs field.ErrorList
	pushes := s.Repair.Enabled || s.IssueWorkflow.Implementation.Enabled
	writes := pushes || s.Review.Publish.Enabled || s.Automerge.Enabled
	for _, need := range []struct {
		missing   bool
		name, why string
	}{
		{s.Triggers.GitHub.Labels.Enabled && s.ForgeCredentialRef == nil, "forgeCredentialRef", "spec.triggers.github.labels.enabled needs it, to look up who may give commands"},
		{writes && !s.Triggers.GitHub.Labels.Enabled && s.ForgeCredentialRef == nil, "forgeCredentialRef", "reviews, repairs, implementations and merges need it"},
		{pushes && s.PublicationCredentialRef == nil, "publicationCredentialRef", "repairs and implementations need it"},
	} {
		if need.missing {
			errs = append(errs, field.Required(specPath.Child(need.name), need.why))
		}
	}
	used := map[string]string{}
	for _, c := range []struct {
		name string
		ref  *v1alpha1.WorkspaceCredentialReference
	}{
		{"readCredentialRef", s.ReadCredentialRef},
		{"forgeCredentialRef", s.ForgeCredentialRef},
		{"publicationReadCredentialRef", s.PublicationReadCredentialRef},
		{"publicationCredentialRef", s.PublicationCredentialRef},
	} {
		if c.ref == nil {
			continue
		}
		if other := used[c.ref.Name]; other != "" {
			errs = append(errs, field.Invalid(specPath.Child(c.name, "name"), c.ref.Name, "must be another Secret than that of spec."+other))
		}
		used[c.ref.Name] = c.name
	}
	return errs
}

// validateLabels requires that no label is two commands of one kind of target, or a command and a label that has another meaning.
func validateLabels(s *v1alpha1.RepositoryMonitorSpec) field.ErrorList {
	var errs field.ErrorList
	at := specPath.Child("triggers", "github", "labels")
	for _, kind := range []v1alpha1.MonitorTargetKind{v1alpha1.MonitorIssue, v1alpha1.MonitorPullRequest} {
		used := map[string]string{}
		for _, c := range repomonitor.CommandLabels(s, kind) {
			label := strings.ToLower(c.Label)
			if other := used[label]; other != "" {
				errs = append(errs, field.Invalid(at.Child(c.Field), c.Label, "is the label of "+other+", too"))
			}
			used[label] = at.Child(c.Field).String()
		}
		for _, other := range s.Policy.PauseLabels {
			if command := used[strings.ToLower(other)]; command != "" {
				errs = append(errs, field.Invalid(specPath.Child("policy", "pauseLabels"), other, "is the label of "+command+", too"))
			}
		}
	}
	return errs
}

func warnings(_ context.Context, m, _ *v1alpha1.RepositoryMonitor) []string {
	return support.Warnings(support.RepositoryMonitor(&m.Spec))
}
