// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repositorymonitor

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func valid() *v1alpha1.RepositoryMonitor {
	m := &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "1"}, Spec: v1alpha1.RepositoryMonitorSpec{
		RepoURL: "https://github.com/ada/shop", Agents: v1alpha1.MonitorAgents{Reviewer: &v1alpha1.LocalReference{Name: "reviewer"}},
		ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"},
	}}
	v1alpha1.SetObjectDefaults_RepositoryMonitor(m)
	return m
}

// TestValidate: the rules across the fields of a monitor.
func TestValidate(t *testing.T) {
	if errs := validate(t.Context(), valid()); len(errs) > 0 {
		t.Fatal(errs)
	}
	forge := &v1alpha1.WorkspaceCredentialReference{Name: "writer"}
	push := &v1alpha1.WorkspaceCredentialReference{Name: "pusher"}
	for want, change := range map[string]func(s *v1alpha1.RepositoryMonitorSpec){
		"spec.repoURL: Invalid value":                        func(s *v1alpha1.RepositoryMonitorSpec) { s.RepoURL = "https://x:y@github.com/ada/shop" },
		"spec.schedule: Invalid value":                       func(s *v1alpha1.RepositoryMonitorSpec) { s.Schedule = "sometimes" },
		"spec.timeZone: Invalid value":                       func(s *v1alpha1.RepositoryMonitorSpec) { s.TimeZone = "Mars" },
		"spec.targets: Required value":                       func(s *v1alpha1.RepositoryMonitorSpec) { s.Targets.PullRequests.Enabled = new(false) },
		"spec.targets.commits.enabled: Forbidden":            func(s *v1alpha1.RepositoryMonitorSpec) { s.Targets.Commits = &v1alpha1.MonitorCommits{Enabled: true} },
		"spec.agents.reviewer: Required value":               func(s *v1alpha1.RepositoryMonitorSpec) { s.Agents.Reviewer = nil },
		"spec.agents.repairer: Required value":               func(s *v1alpha1.RepositoryMonitorSpec) { s.Repair.Enabled = true },
		"spec.agents.triager: Required value":                func(s *v1alpha1.RepositoryMonitorSpec) { s.IssueWorkflow.Triage.Enabled = true },
		"spec.agents.planner: Required value":                func(s *v1alpha1.RepositoryMonitorSpec) { s.IssueWorkflow.Implementation.RequireApprovedPlan = true },
		"spec.agents.implementer: Required value":            func(s *v1alpha1.RepositoryMonitorSpec) { s.IssueWorkflow.Implementation.Enabled = true },
		"spec.forgeCredentialRef: Required value":            func(s *v1alpha1.RepositoryMonitorSpec) { s.Triggers.GitHub.Labels.Enabled = true },
		"reviews, repairs, implementations and merges":       func(s *v1alpha1.RepositoryMonitorSpec) { s.Review.Publish.Enabled = true },
		"spec.publicationCredentialRef: Required value":      func(s *v1alpha1.RepositoryMonitorSpec) { s.Repair.Enabled, s.ForgeCredentialRef = true, forge },
		"another Secret than that of spec.readCredentialRef": func(s *v1alpha1.RepositoryMonitorSpec) { s.ForgeCredentialRef = s.ReadCredentialRef },
		"another Secret than that of spec.forge":             func(s *v1alpha1.RepositoryMonitorSpec) { s.ForgeCredentialRef, s.PublicationCredentialRef = push, push },
		"is the label of": func(s *v1alpha1.RepositoryMonitorSpec) {
			s.Triggers.GitHub.Labels.Issues.Plan = "PLATFORM:triage"
		},
		"spec.policy.pauseLabels":              func(s *v1alpha1.RepositoryMonitorSpec) { s.Policy.PauseLabels = []string{"platform:review"} },
		"spec.validation.image: Invalid value": func(s *v1alpha1.RepositoryMonitorSpec) { s.Validation.Image = "a:latest" },
		"implementation.allowedPaths[0]: Invalid": func(s *v1alpha1.RepositoryMonitorSpec) {
			s.IssueWorkflow.Implementation.AllowedPaths = []string{"../x"}
		},
		"staleReviewTTL: Invalid value": func(s *v1alpha1.RepositoryMonitorSpec) { s.Review.StaleReviewTTL = new(v1alpha1.Duration("-1h")) },
	} {
		m := valid()
		change(&m.Spec)
		if errs := validate(t.Context(), m); !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("%s: %v", want, errs)
		}
	}
	if errs := validateName(strings.Repeat("a", 64), false); len(errs) == 0 {
		t.Error("a name of 64 bytes is accepted")
	}
}

// TestAsked: what may be asked of a monitor.
func TestAsked(t *testing.T) {
	m := valid()
	sha := strings.Repeat("a", 40)
	for want, a := range map[string]v1alpha1.MonitorRunRequest{
		"":                                  {},
		"targetKind: is needed":             {TargetNumber: 1},
		"targetKind: the monitor looks":     {TargetKind: v1alpha1.MonitorIssue, TargetNumber: 1},
		"targetSHA: is for one":             {TargetKind: v1alpha1.MonitorPullRequest, TargetSHA: sha},
		"targetSHA: must be the full":       {TargetKind: v1alpha1.MonitorPullRequest, TargetNumber: 1, TargetSHA: "abc"},
		"targetNumber: must not be negativ": {TargetKind: v1alpha1.MonitorPullRequest, TargetNumber: -1},
	} {
		if err := checkRun(m, &a); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	m.Spec.Suspend = true
	if checkRun(m, &v1alpha1.MonitorRunRequest{}) == nil {
		t.Error("a suspended monitor is asked for a run")
	}
	for want, a := range map[string]v1alpha1.MonitorCommandRequest{
		"":                            {TargetKind: v1alpha1.MonitorPullRequest, Number: 1, Intent: v1alpha1.MonitorStop},
		"targetSHA: the command":      {TargetKind: v1alpha1.MonitorPullRequest, Number: 1, Intent: v1alpha1.MonitorFix},
		"intent: of pull_request":     {TargetKind: v1alpha1.MonitorPullRequest, Number: 1, Intent: v1alpha1.MonitorPlan, TargetSHA: sha},
		"targetKind: the monitor":     {TargetKind: v1alpha1.MonitorIssue, Number: 1, Intent: v1alpha1.MonitorPlan},
		"targetSHA: must be the full": {TargetKind: v1alpha1.MonitorPullRequest, Number: 1, Intent: v1alpha1.MonitorFix, TargetSHA: strings.ToUpper(sha)},
	} {
		if err := checkCommand(m, &a); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}
