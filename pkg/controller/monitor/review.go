// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

const (
	// maxTitle, maxBody and maxDiff are how much of a pull request a prompt has, in bytes.
	maxTitle, maxBody, maxDiff = 1024, 16 << 10, 192 << 10
)

// reviewing reviews the head of a pull request.
func reviewing() action {
	return action{
		task: reviewTask,
		begun: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction) {
			i.Status.Review = &v1alpha1.MonitorItemReview{HeadSHA: a.Spec.HeadSHA, TaskName: a.Status.TaskName}
		},
		finish: finishReview,
		ended: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction, e ending) {
			if r := i.Status.Review; r != nil && r.TaskName == a.Status.TaskName {
				r.Verdict, r.Summary, r.ReviewedAt = v1alpha1.MonitorVerdictFailed, e.message, i.Status.ObservedAt
			}
		},
	}
}

// pullRequestRead is a pull request as review_pull_request returns it.
type pullRequestRead struct {
	Title     string `json:"pr_title"`
	Body      string `json:"pr_body"`
	Author    string `json:"pr_author"`
	Base      string `json:"base_branch"`
	HeadSHA   string `json:"head_sha"`
	Diff      string `json:"diff"`
	Shortened bool   `json:"shortened"`
}

func reviewTask(ctx context.Context, w *world, j *job) (*v1alpha1.Task, error) {
	var is pullRequestRead
	if err := w.read(ctx, j.m, "review_pull_request", map[string]any{"pr_number": j.a.Spec.Number}, &is); err != nil {
		return nil, err
	}
	if is.HeadSHA != j.a.Spec.HeadSHA {
		return nil, failure{&v1alpha1.TaskCodeHostFailure{Reason: v1alpha1.CodeHostRefused, Message: "the head has moved"}}
	}
	prompt := fmt.Sprintf(`Review pull request %d of %s at the commit %s, which is to be merged into %s. The repository is in your working directory at that commit.
Look for what is wrong: errors, what breaks existing behaviour, missing tests, and what endangers security. Change nothing.

Your last words must be one JSON object and nothing after it:
{"verdict": "passed" | "needs_changes" | "needs_human" | "security_sensitive", "summary": "what the change does and what you think of it", "findings": [{"path": "file", "line": 1, "priority": "P0" | "P1" | "P2" | "P3", "title": "in a line", "body": "why, and what to do"}]}
P0 must not be merged, P3 is a matter of taste. line is a line of the file after the change. Say needs_human if you cannot judge it, and security_sensitive if what you found should not be read by everybody.
`, j.a.Spec.Number, repositoryOf(j.m), is.HeadSHA, is.Base)
	if advice := advisory(j); advice != "" {
		prompt += "\n" + advice
	}
	validation, err := validationOf(j.m)
	if err != nil {
		return nil, err
	}
	switch commands := j.m.Spec.Validation.Commands; {
	case validation != "":
		prompt += "\nThe maintainers have checks for this repository. You may run them on this commit with run_validation, without arguments. They run: " + strings.Join(commands, "; ") + "\n"
	case len(commands) > 0 && j.m.Spec.Validation.Mode != v1alpha1.MonitorValidationOff:
		prompt += "\nIf you can run programs, check the change with: " + strings.Join(commands, "; ") + "\n"
	}
	diff := quoted("diff", is.Diff, maxDiff)
	if is.Shortened || len(is.Diff) > maxDiff {
		diff += "The diff is not complete. Read the files for the rest.\n"
	}
	prompt += "\n" + dataNote + quoted("title", is.Title, maxTitle) + quoted("description", is.Body, maxBody) + diff
	t, err := w.newTask(ctx, j, j.m.Spec.Agents.Reviewer, prompt)
	if err != nil {
		return nil, err
	}
	if validation != "" {
		t.Annotations[v1alpha1.AnnotationMonitorValidation] = validation
	}
	return reads(t, j, "", is.HeadSHA), nil
}

// validationOf returns what run_validation of a reviewer runs (v1alpha1.AnnotationMonitorValidation); empty if there is nothing to run.
func validationOf(m *v1alpha1.RepositoryMonitor) (string, error) {
	v := &m.Spec.Validation
	if v.Image == "" || v.Mode == v1alpha1.MonitorValidationOff || len(v.Commands) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(map[string]any{"image": v.Image, "commands": v.Commands})
	if err != nil {
		return "", fmt.Errorf("validation: %w", err)
	}
	return string(raw), nil
}

// advisory tells an agent of labels that advise it.
func advisory(j *job) string {
	var set []string
	for _, l := range j.m.Spec.Policy.AdvisoryLabels {
		if repomonitor.HasLabel(j.item.Status.Labels, l) {
			set = append(set, fmt.Sprintf("%q", l))
		}
	}
	if len(set) == 0 {
		return ""
	}
	return "The maintainers have set these labels on it: " + strings.Join(set, ", ") + ".\n"
}

// finishReview writes down what a reviewer said, and posts it. If the head moved during the review, the verdict is stale, and nothing is
// posted.
func finishReview(ctx context.Context, w *world, j *job, t *v1alpha1.Task, said string) (ending, error) {
	is, err := w.state(ctx, j.m, v1alpha1.MonitorPullRequest, j.a.Spec.Number)
	if err != nil {
		return ending{}, err
	}
	item, err := w.observe(ctx, j.m, v1alpha1.MonitorPullRequest, &is.Item)
	if err != nil {
		return ending{}, err
	}
	if err := w.worked(ctx, j, t, v1alpha1.UsageLinkReviewOnly, j.a.Name, is); err != nil {
		return ending{}, err
	}
	review := v1alpha1.MonitorItemReview{HeadSHA: j.a.Spec.HeadSHA, TaskName: j.a.Status.TaskName, ReviewedAt: w.time()}
	spoken, readable := reviewOf(said)
	switch {
	case !readable:
		review.Verdict, review.Summary = v1alpha1.MonitorVerdictFailed, "the reviewer gave no answer that can be read"
	case is.HeadSHA != j.a.Spec.HeadSHA:
		review.Verdict, review.Summary = v1alpha1.MonitorVerdictStale, "the head moved during the review"
	default:
		review.Verdict, review.Summary, review.Findings = spoken.Verdict, spoken.Summary, spoken.Findings
	}
	why := unposted(j.m, &review)
	if why == "" && item.Status.State != v1alpha1.MonitorItemOpen {
		why = "the pull request is not open any more"
	}
	if why != "" {
		review.PublishPhase, review.PublishReason = v1alpha1.MonitorPublishSkipped, why
	} else {
		row, err := w.mutate(ctx, j.m, mutation{
			operation: v1alpha1.MonitorPostReview, kind: v1alpha1.MonitorPullRequest, number: j.a.Spec.Number, head: j.a.Spec.HeadSHA, work: j.a.Name,
			do: func(ctx context.Context, id string) (wrote, error) { return w.post(ctx, j, &review, id) },
		})
		if err != nil {
			return ending{}, err
		}
		review.PublishPhase, review.PublishReason, review.URL = row.Status.State, row.Status.Message, row.Status.URL
	}
	_, err = w.updateItem(ctx, item.Namespace, item.Name, func(i *v1alpha1.MonitorItem) { i.Status.Review = &review })
	return ending{state: v1alpha1.MonitorWorkSucceeded, verdict: string(review.Verdict), message: review.Summary}, err
}

// unposted returns why a review is not posted; empty if it is.
func unposted(m *v1alpha1.RepositoryMonitor, r *v1alpha1.MonitorItemReview) string {
	p := &m.Spec.Review.Publish
	wanted := map[v1alpha1.MonitorVerdict]bool{
		v1alpha1.MonitorVerdictPassed: p.PostPassed, v1alpha1.MonitorVerdictNeedsChanges: repomonitor.On(p.PostNeedsChanges),
		v1alpha1.MonitorVerdictNeedsHuman: repomonitor.On(p.PostNeedsHuman), v1alpha1.MonitorVerdictSecuritySensitive: p.PostSecuritySensitive,
	}
	switch {
	case !p.Enabled:
		return "reviews are not posted (spec.review.publish.enabled)"
	case !wanted[r.Verdict]:
		return fmt.Sprintf("reviews with the verdict %s are not posted (spec.review.publish)", r.Verdict)
	}
	return ""
}

// post posts a review, unless the head has one with the marker of the platform already. One that somebody asked for is posted all the same.
func (w *world) post(ctx context.Context, j *job, r *v1alpha1.MonitorItemReview, id string) (wrote, error) {
	var posted operation.Posted
	if err := w.do(ctx, j.m, call{operation: operation.PostedReview, id: id, arguments: operation.ItemArguments{Number: j.a.Spec.Number}}, &posted); err != nil || posted.Found {
		return wrote{url: posted.URL}, err
	}
	var marker struct {
		Found  bool   `json:"found"`
		Marker string `json:"marker"`
	}
	if err := w.read(ctx, j.m, "check_pr_review_marker", map[string]any{"pr_number": j.a.Spec.Number, "head_sha": r.HeadSHA}, &marker); err != nil {
		return wrote{}, err
	}
	if marker.Found && j.a.Spec.Command == "" {
		return wrote{skipped: "the head has a review of this platform (spec.review.publish.sameHeadPolicy)"}, nil
	}
	body, comments := bodyOf(j.m, r)
	var done struct {
		URL     string `json:"html_url"`
		Status  string `json:"status"`
		HeadSHA string `json:"head_sha"`
		Message string `json:"message"`
	}
	err := w.do(ctx, j.m, call{operation: "post_review_comment", id: id, head: r.HeadSHA, arguments: map[string]any{
		"pr_number": j.a.Spec.Number, "event": "COMMENT", "body": body + "\n" + marker.Marker, "comments": comments,
	}}, &done)
	return wrote{url: done.URL}, err
}

// bodyOf returns the text of a review, and its comments on lines.
func bodyOf(m *v1alpha1.RepositoryMonitor, r *v1alpha1.MonitorItemReview) (string, []map[string]any) {
	p := &m.Spec.Review.Publish
	least := max(priorityOf(p.Inline.MinPriority), 0)
	if p.Inline.MinPriority == "" {
		least = priorityOf(v1alpha1.MonitorP2)
	}
	inline := p.Mode == v1alpha1.MonitorPublishFindings && repomonitor.On(p.Inline.Enabled)
	most := int(limit(p.Inline.MaxComments, defaultComments))
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "**Review of %.12s: %s**\n\n%s\n", r.HeadSHA, strings.ReplaceAll(string(r.Verdict), "_", " "), r.Summary)
	comments := []map[string]any{}
	var rest []v1alpha1.MonitorFinding
	for _, f := range r.Findings {
		if inline && len(comments) < most && f.Path != "" && f.Line > 0 && priorityOf(f.Priority) <= least {
			comments = append(comments, map[string]any{"path": f.Path, "line": f.Line, "body": fmt.Sprintf("**%s** %s\n\n%s", f.Priority, f.Title, f.Body)})
			continue
		}
		rest = append(rest, f)
	}
	for _, f := range rest {
		where := f.Path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.Path, f.Line)
		}
		_, _ = fmt.Fprintf(&b, "\n- **%s** %s", f.Priority, f.Title)
		if where != "" {
			_, _ = fmt.Fprintf(&b, " (`%s`)", strings.ReplaceAll(where, "`", "'"))
		}
		if f.Body != "" {
			_, _ = fmt.Fprintf(&b, "\n  %s", strings.ReplaceAll(f.Body, "\n", "\n  "))
		}
	}
	return b.String(), comments
}

// defaultComments is how many comments on lines a review has.
const defaultComments = 10
