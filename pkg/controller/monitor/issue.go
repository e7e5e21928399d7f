// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/visible"
)

const (
	// maxTriage, maxResearch and maxPlan are how much of what agents say is kept, in bytes.
	maxTriage, maxResearch, maxPlan = 8192, 16384, 32768
	// maxPRTitle is how long the title of a pull request may be, in bytes.
	maxPRTitle = 256
	// busyCheck is how often an implementation that waits for others looks again.
	busyCheck = 15 * time.Second
)

// nextOfIssue returns the work that an issue needs by itself.
func nextOfIssue(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) *v1alpha1.MonitorWorkAction {
	s, of := &m.Spec.IssueWorkflow, i.Status.Issue
	if of == nil {
		return nil
	}
	if of.Phase == v1alpha1.MonitorIssueApproved || of.Phase == v1alpha1.MonitorIssueImplementationQueued {
		if mayWorkOnIssue(m, i, v1alpha1.MonitorImplement) != nil {
			return nil
		}
		return newWork(m, i, v1alpha1.MonitorImplement, "", of.Attempts+1)
	}
	reached := false
	for _, stage := range []struct {
		after   v1alpha1.MonitorIssuePhase
		enabled bool
		agent   *v1alpha1.LocalReference
		work    v1alpha1.MonitorIntent
	}{
		{v1alpha1.MonitorIssueDiscovered, s.Triage.Enabled, m.Spec.Agents.Triager, v1alpha1.MonitorTriage},
		{v1alpha1.MonitorIssueTriaged, s.Research.Enabled, m.Spec.Agents.Researcher, v1alpha1.MonitorResearch},
		{v1alpha1.MonitorIssueResearched, s.Planning.Enabled, m.Spec.Agents.Planner, v1alpha1.MonitorPlan},
	} {
		// Work that was queued and has not begun is looked for again by its name.
		reached = reached || of.Phase == stage.after || of.Phase == stageOf(stage.work).queued
		if reached && stage.enabled && stage.agent != nil {
			return newWork(m, i, stage.work, "", 1)
		}
	}
	return nil
}

// mayWorkOnIssue returns what keeps something from being done about an issue.
func mayWorkOnIssue(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem, what v1alpha1.MonitorIntent) *block {
	a, of := &m.Spec.Agents, i.Status.Issue
	agents := map[v1alpha1.MonitorIntent]*v1alpha1.LocalReference{
		v1alpha1.MonitorTriage: a.Triager, v1alpha1.MonitorResearch: a.Researcher, v1alpha1.MonitorPlan: a.Planner, v1alpha1.MonitorDecompose: a.Planner, v1alpha1.MonitorImplement: a.Implementer,
	}
	if who, ok := agents[what]; ok && who == nil {
		return blocked(v1alpha1.ReasonMonitorNotEnabled, "the monitor has no agent for %s (spec.agents)", what)
	}
	impl := &m.Spec.IssueWorkflow.Implementation
	switch what {
	case v1alpha1.MonitorApprovePlan:
		if of == nil || of.Plan == "" {
			return blocked(v1alpha1.ReasonMonitorPlanNotApproved, "there is no plan to approve of")
		}
	case v1alpha1.MonitorImplement:
		switch {
		case !impl.Enabled:
			return blocked(v1alpha1.ReasonMonitorNotEnabled, "implementations are not enabled (spec.issueWorkflow.implementation.enabled)")
		case impl.RequireApprovedPlan && (of == nil || of.PlanApprovedBy == ""):
			return blocked(v1alpha1.ReasonMonitorPlanNotApproved, "nobody has approved of a plan (spec.issueWorkflow.implementation.requireApprovedPlan)")
		case of != nil && of.Attempts >= limit(impl.MaxAttemptsPerIssue, defaultAttempts):
			return blocked(v1alpha1.ReasonMonitorLimit, "the issue was tried %d times (spec.issueWorkflow.implementation.maxAttemptsPerIssue)", of.Attempts)
		}
		return protected(m, i)
	}
	return nil
}

const (
	// defaultAttempts is how often an issue is tried, and defaultActive how many implementations run at a time.
	defaultAttempts, defaultActive = 2, 2
	defaultChangedFiles            = 12
)

// approvePlan writes down that a person approves of a plan.
func (w *world) approvePlan(ctx context.Context, m *v1alpha1.RepositoryMonitor, c *v1alpha1.MonitorCommand, i *v1alpha1.MonitorItem, is *operation.ItemState, who string) error {
	if why := outdated(i, is); why != nil {
		return w.answer(c, v1alpha1.MonitorCommandBlocked, why.reason, why.message)
	}
	i, err := w.updateItem(ctx, i.Namespace, i.Name, func(i *v1alpha1.MonitorItem) {
		i.Status.Issue.PlanApprovedBy = who
		switch i.Status.Issue.Phase {
		case v1alpha1.MonitorIssueApprovalRequired, v1alpha1.MonitorIssuePlanReady, v1alpha1.MonitorIssueBlocked:
			i.Status.Issue.Phase = v1alpha1.MonitorIssueApproved
		}
	})
	if err != nil {
		return err
	}
	if _, err := w.next(ctx, m, i, ""); err != nil {
		return err
	}
	return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
}

// annotationText has the SHA-256 of the title and the text of the issue that a task is about.
const annotationText = v1alpha1.LabelPrefix + "monitor-text-sha256"

// textDigest returns what is in annotationText.
func textDigest(is *operation.ItemState) string {
	sum := sha256.Sum256([]byte(is.Title + "\x00" + is.Body))
	return hex.EncodeToString(sum[:])
}

// outdated returns what keeps a plan from being carried out if the issue was changed after it was made: whoever wrote the issue would
// otherwise have something implemented that nobody approved of.
func outdated(i *v1alpha1.MonitorItem, is *operation.ItemState) *block {
	if of := i.Status.Issue; of != nil && of.PlanFor != "" && of.PlanFor != textDigest(is) {
		return blocked(v1alpha1.ReasonMonitorPlanNotApproved, "the issue was changed after the plan was made; the command plan makes another one")
	}
	return nil
}

// stage are the phases of an issue while something waits to be done about it, while it is done, and afterwards.
type stage struct{ queued, during, after v1alpha1.MonitorIssuePhase }

func stageOf(what v1alpha1.MonitorIntent) stage {
	switch what {
	case v1alpha1.MonitorTriage:
		return stage{v1alpha1.MonitorIssueTriageQueued, v1alpha1.MonitorIssueTriaging, v1alpha1.MonitorIssueTriaged}
	case v1alpha1.MonitorResearch:
		return stage{v1alpha1.MonitorIssueResearchQueued, v1alpha1.MonitorIssueResearching, v1alpha1.MonitorIssueResearched}
	case v1alpha1.MonitorImplement:
		return stage{v1alpha1.MonitorIssueImplementationQueued, v1alpha1.MonitorIssueImplementing, v1alpha1.MonitorIssuePROpened}
	}
	return stage{v1alpha1.MonitorIssuePlanQueued, v1alpha1.MonitorIssuePlanning, v1alpha1.MonitorIssuePlanReady}
}

// onIssue has an agent say something about an issue.
func onIssue() action {
	return action{
		may:  func(_ *world, j *job) *block { return mayWorkOnIssue(j.m, j.item, j.a.Spec.DesiredAction) },
		task: issueTask,
		begun: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction) {
			of := issueOf(i)
			of.TaskName = a.Status.TaskName
			if a.Spec.DesiredAction != v1alpha1.MonitorDecompose {
				of.Phase = stageOf(a.Spec.DesiredAction).during
			}
		},
		finish: finishIssue,
		ended:  blockIssue,
	}
}

func issueOf(i *v1alpha1.MonitorItem) *v1alpha1.MonitorItemIssue {
	if i.Status.Issue == nil {
		i.Status.Issue = &v1alpha1.MonitorItemIssue{Phase: v1alpha1.MonitorIssueDiscovered}
	}
	return i.Status.Issue
}

// blockIssue writes down that work on an issue failed. A person has to give a command again.
func blockIssue(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction, e ending) {
	if of := issueOf(i); of.TaskName == a.Status.TaskName && i.Status.State == v1alpha1.MonitorItemOpen {
		of.Phase = v1alpha1.MonitorIssueBlocked
		i.Status.Message = clip.Marked(visible.Line(e.message), maxMessage)
	}
}

func issueTask(ctx context.Context, w *world, j *job) (*v1alpha1.Task, error) {
	is, err := w.state(ctx, j.m, v1alpha1.MonitorIssue, j.a.Spec.Number)
	if err != nil {
		return nil, err
	}
	a := &j.m.Spec.Agents
	var do string
	var who *v1alpha1.LocalReference
	switch j.a.Spec.DesiredAction {
	case v1alpha1.MonitorTriage:
		who, do = a.Triager, "Look at the issue for the first time: is it clear, is it a defect or a wish, does it exist already, what is missing to begin? Answer in at most 200 words."
	case v1alpha1.MonitorResearch:
		who, do = a.Researcher, "Find out what the issue is about: which parts of the code, why it happens, what was tried, which ways there are. Name files and functions. Answer in at most 500 words."
	case v1alpha1.MonitorDecompose:
		who, do = a.Planner, "Divide the issue into smaller ones that can be done one after the other. Write each with a title, what is to be done, and how one sees that it is done."
	default:
		who, do = a.Planner, `Plan how the issue is implemented: which files, in which order, which tests. Your last words must be one JSON object and nothing after it:
{"risk": "low" | "medium" | "high", "plan": "the plan, as Markdown"}`
	}
	of := issueOf(j.item)
	prompt := fmt.Sprintf("%s\nIt is issue %d of %s. The repository is in your working directory. Change nothing.\n%s\n", do, j.a.Spec.Number, repositoryOf(j.m), advisory(j))
	t, err := w.newTask(ctx, j, who, prompt+known(of)+dataNote+quoted("title", is.Title, maxTitle)+quoted("text", is.Body, maxDiff))
	if err != nil {
		return nil, err
	}
	t.Annotations[annotationText] = textDigest(is)
	return reads(t, j, j.m.Spec.Branch, ""), nil
}

// known tells an agent what others said before.
func known(of *v1alpha1.MonitorItemIssue) string {
	var b strings.Builder
	for _, k := range []struct{ tag, text string }{{"triage", of.Triage}, {"research", of.Research}, {"plan", of.Plan}} {
		if k.text != "" {
			_, _ = b.WriteString(quoted(k.tag, k.text, maxPlan))
		}
	}
	return b.String()
}

func finishIssue(ctx context.Context, w *world, j *job, t *v1alpha1.Task, said string) (ending, error) {
	said = strings.TrimSpace(visible.Plain(said))
	e := ending{state: v1alpha1.MonitorWorkSucceeded}
	what := j.a.Spec.DesiredAction
	plan, readable := planOf(said)
	if said == "" || what == v1alpha1.MonitorPlan && !readable {
		e = ending{state: v1alpha1.MonitorWorkFailed, reason: v1alpha1.ReasonMonitorNoAnswer, message: "the agent gave no answer that can be read"}
		_, err := w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) { blockIssue(i, j.a, e) })
		return e, err
	}
	if what == v1alpha1.MonitorPlan || what == v1alpha1.MonitorDecompose {
		if err := w.comment(ctx, j, what, said, plan); err != nil {
			return ending{}, err
		}
	}
	_, err := w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) {
		of := issueOf(i)
		i.Status.Message = ""
		switch what {
		case v1alpha1.MonitorTriage:
			of.Triage = clip.Marked(said, maxTriage)
		case v1alpha1.MonitorResearch:
			of.Research = clip.Marked(said, maxResearch)
		case v1alpha1.MonitorDecompose:
			return
		default:
			of.Plan, of.Risk, of.PlanFor, of.PlanApprovedBy = plan.Plan, plan.Risk, t.Annotations[annotationText], ""
		}
		of.Phase = stageOf(what).after
		if what == v1alpha1.MonitorPlan {
			of.Phase = v1alpha1.MonitorIssueApproved
			if needsApproval(j.m, plan.Risk) {
				of.Phase = v1alpha1.MonitorIssueApprovalRequired
			}
		}
	})
	return e, err
}

// needsApproval reports whether a person has to approve of a plan.
func needsApproval(m *v1alpha1.RepositoryMonitor, risk v1alpha1.MonitorRisk) bool {
	risks := m.Spec.IssueWorkflow.Planning.RequireHumanApprovalFor
	return len(risks) == 0 || m.Spec.IssueWorkflow.Implementation.RequireApprovedPlan || slices.Contains(risks, risk)
}

// comment writes a plan on the issue, for people to read. A monitor without the credential for that does not.
func (w *world) comment(ctx context.Context, j *job, what v1alpha1.MonitorIntent, said string, plan saidPlan) error {
	if j.m.Spec.ForgeCredentialRef == nil {
		return nil
	}
	body := "**Smaller issues**\n\n" + said
	if what == v1alpha1.MonitorPlan {
		body = fmt.Sprintf("**Plan** (risk: %s)\n\n%s", plan.Risk, plan.Plan)
		if label := j.m.Spec.Triggers.GitHub.Labels.Issues.ApprovePlan; needsApproval(j.m, plan.Risk) && j.m.Spec.Triggers.GitHub.Labels.Enabled && label != "" {
			body += fmt.Sprintf("\n\nA person approves of it with the label `%s`.", label)
		}
	}
	_, err := w.mutate(ctx, j.m, mutation{
		operation: v1alpha1.MonitorPostComment, kind: v1alpha1.MonitorIssue, number: j.a.Spec.Number, work: j.a.Name,
		do: func(ctx context.Context, id string) (wrote, error) {
			var done struct {
				URL string `json:"html_url"`
			}
			err := w.do(ctx, j.m, call{operation: "comment_on_issue", id: id, arguments: map[string]any{"issue_number": j.a.Spec.Number, "body": body}}, &done)
			return wrote{url: done.URL}, err
		},
	})
	return err
}

// implementing has an agent implement an issue, and opens a pull request of it.
func implementing() action {
	return action{
		may:  func(_ *world, j *job) *block { return mayWorkOnIssue(j.m, j.item, v1alpha1.MonitorImplement) },
		task: implementTask,
		begun: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction) {
			of := issueOf(i)
			if of.TaskName != a.Status.TaskName {
				of.Attempts++
			}
			of.TaskName, of.Phase, of.Branch = a.Status.TaskName, stageOf(v1alpha1.MonitorImplement).during, ""
		},
		finish: finishImplementation,
		ended:  blockIssue,
	}
}

func implementTask(ctx context.Context, w *world, j *job) (*v1alpha1.Task, error) {
	works, err := w.works(ctx, j.m)
	if err != nil {
		return nil, err
	}
	var running int32
	for k := range works {
		add(&running, works[k].Spec.DesiredAction == v1alpha1.MonitorImplement && works[k].Status.StartedAt != nil && active(&works[k]))
	}
	impl := &j.m.Spec.IssueWorkflow.Implementation
	if running >= limit(impl.MaxActive, defaultActive) {
		return nil, step.Wait{After: busyCheck, Reason: "other implementations of the monitor run (spec.issueWorkflow.implementation.maxActive)"}
	}
	is, err := w.state(ctx, j.m, v1alpha1.MonitorIssue, j.a.Spec.Number)
	if err != nil {
		return nil, err
	}
	if why := outdated(j.item, is); why != nil {
		if _, err := w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) {
			of := issueOf(i)
			of.Phase, of.PlanApprovedBy, i.Status.Message = v1alpha1.MonitorIssueBlocked, "", why.message
		}); err != nil {
			return nil, err
		}
		return nil, why
	}
	number := strconv.FormatInt(j.a.Spec.Number, 10)
	of := issueOf(j.item)
	prompt := fmt.Sprintf("Implement issue %s of %s. The repository is in your working directory. What you change is published as a branch when you are done, with a pull request. Change at most %d files, with the tests that belong to it.\n%s",
		number, repositoryOf(j.m), limit(impl.MaxChangedFiles, defaultChangedFiles), advisory(j))
	if commands := j.m.Spec.Validation.Commands; len(commands) > 0 && j.m.Spec.Validation.Mode != v1alpha1.MonitorValidationOff {
		prompt += fmt.Sprintf("Check what you did with: %s\n", strings.Join(commands, "; "))
	}
	t, err := w.newTask(ctx, j, j.m.Spec.Agents.Implementer, prompt+"\n"+known(of)+dataNote+quoted("title", is.Title, maxTitle)+quoted("text", is.Body, maxDiff))
	if err != nil {
		return nil, err
	}
	branch := fmt.Sprintf("%s-%s", impl.BranchPrefix, number)
	if impl.BranchPrefix == "" {
		branch = "platform/issue-" + number
	}
	if of.Attempts > 0 {
		branch += "-" + strconv.Itoa(int(of.Attempts)+1)
	}
	base, err := w.base(ctx, j)
	if err != nil {
		return nil, err
	}
	writes(t, j, base, branch)
	ws := t.Spec.Workspace
	ws.ForgeCredentialRef, ws.CreatePR, ws.PRBaseBranch = j.m.Spec.ForgeCredentialRef, true, base
	ws.PRTitle = clip.Text(visible.Line(is.Title), maxPRTitle)
	ws.PRBody = fmt.Sprintf("Closes #%s.\n\nImplemented for the monitor %s/%s.", number, j.m.Namespace, j.m.Name)
	files := limit(impl.MaxChangedFiles, defaultChangedFiles)
	ws.MaxChangedFiles, ws.AllowedPaths = &files, impl.AllowedPaths
	return t, nil
}

// base returns the branch that an implementation begins with and goes to.
func (w *world) base(ctx context.Context, j *job) (string, error) {
	if j.m.Spec.Branch != "" {
		return j.m.Spec.Branch, nil
	}
	var of operation.RepositoryState
	err := w.read(ctx, j.m, operation.Repository, operation.NoArguments{}, &of)
	return of.DefaultBranch, err
}

// finishImplementation looks at the pull request that was opened.
func finishImplementation(ctx context.Context, w *world, j *job, t *v1alpha1.Task, _ string) (ending, error) {
	d := t.Status.Delivery
	e := ending{state: v1alpha1.MonitorWorkFailed, reason: v1alpha1.ReasonMonitorNothingPublished, message: "the agent published no change"}
	if d != nil && d.PRReceipt != nil && d.PRReceipt.Number > 0 {
		e = ending{state: v1alpha1.MonitorWorkSucceeded, message: "the pull request was opened", pullRequest: d.PRReceipt.Number}
	}
	_, err := w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) {
		if e.pullRequest == 0 {
			blockIssue(i, j.a, e)
			return
		}
		of := issueOf(i)
		of.Phase, of.Branch, of.PullRequest = stageOf(v1alpha1.MonitorImplement).after, d.Branch, e.pullRequest
		i.Status.Message = ""
	})
	return e, err
}
