// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// shownWork is how many of the newest pieces of work a status has.
const shownWork = 5

// itemStatus returns a command that shows what is known of a pull request or issue.
func itemStatus(api *server, term *terminal, kind v1alpha1.MonitorTargetKind, short string) *cobra.Command {
	var f *format
	cmd := ofTarget(api, "status", short, kind, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace string, t target) error {
		i, err := t.get(ctx, c, namespace)
		if err != nil {
			return err
		}
		if *f != "text" {
			return printNamed(ctx, api, term, "monitoritems", []string{i.Name}, *f)
		}
		return term.describeItem(ctx, c, i, t)
	})
	f = addOutput(cmd, "text", asJSON, asYAML)
	return cmd
}

// facts prints a line for each value that is not empty. The values may have colours, so what others wrote is cleaned before.
func (term *terminal) facts(lines [][2]string) error {
	const width = 14
	for _, line := range lines {
		if line[1] == "" {
			continue
		}
		if err := term.say("%s %s", pad(line[0]+":", width), line[1]); err != nil {
			return err
		}
	}
	return nil
}

func (term *terminal) describeItem(ctx context.Context, c typed.CoreV1alpha1Interface, i *v1alpha1.MonitorItem, t target) error {
	s := &i.Status
	state := string(s.State)
	if s.Draft {
		state += ", draft"
	}
	if s.Stopped {
		state += ", stopped"
	}
	blocked := ""
	if s.BlockedReason != "" {
		blocked = term.paint(yellow, s.BlockedReason) + ": " + clean(s.Message)
	}
	lines := [][2]string{
		{"Title", clean(s.Title)}, {"State", state}, {"Blocked", blocked}, {"Author", clean(s.Author)}, {"Labels", clean(strings.Join(s.Labels, ", "))}, {"Page", clean(s.URL)},
	}
	lines = append(append(append(lines, pullRequestFacts(s)...), issueFacts(s.Issue)...), [2]string{"Seen", term.ago(s.ObservedAt)})
	if err := term.facts(lines); err != nil {
		return err
	}
	if r := s.Review; r != nil {
		if err := section(term, "Findings", r.Findings, func(f *v1alpha1.MonitorFinding) string {
			return fmt.Sprintf("%s  %s  %s", f.Priority, placeOf(f), f.Title)
		}); err != nil {
			return err
		}
	}
	if n := s.Issue; n != nil {
		for _, said := range [][2]string{{"Triage", n.Triage}, {"Research", n.Research}, {"Plan", n.Plan}} {
			if err := section(term, said[0], linesOf(said[1]), func(line *string) string { return *line }); err != nil {
				return err
			}
		}
	}
	work, err := c.MonitorWorkActions(i.Namespace).List(ctx, metav1.ListOptions{FieldSelector: t.selector()})
	if err != nil {
		return err
	}
	newestFirst(work.Items, func(w *v1alpha1.MonitorWorkAction) metav1.ObjectMeta { return w.ObjectMeta })
	heading, items := "Work", work.Items
	if len(items) > shownWork {
		heading, items = fmt.Sprintf("Work (the newest %d of %d)", shownWork, len(items)), items[:shownWork]
	}
	return section(term, heading, items, func(w *v1alpha1.MonitorWorkAction) string {
		return fmt.Sprintf("%s  %s  %s  %s", pad(string(w.Spec.DesiredAction), 13), pad(string(w.Status.State), 13), pad(w.Status.TaskName, nameColumns), w.Status.Message)
	})
}

// pullRequestFacts returns what is known of a pull request alone.
func pullRequestFacts(s *v1alpha1.MonitorItemStatus) [][2]string {
	branches, review, repair, merge := "", "", "", ""
	if s.HeadBranch != "" || s.BaseBranch != "" {
		branches = s.HeadBranch + " of " + s.HeadRepository + " to " + s.BaseBranch
	}
	of := func(sha string) string {
		if sha == "" || sha == s.HeadSHA {
			return ""
		}
		return " (of the earlier head " + sha + ")"
	}
	if r := s.Review; r != nil {
		review = cmp.Or(string(r.Verdict), "going on") + of(r.HeadSHA)
		if r.PublishPhase != "" {
			review += ", publication " + strings.TrimSuffix(string(r.PublishPhase)+": "+r.PublishReason, ": ")
		}
		review = join(review, r.Summary)
	}
	if r := s.Repair; r != nil {
		repair = join(fmt.Sprintf("%s, attempt %d%s", r.Phase, r.Attempts, of(r.HeadSHA)), r.Message)
	}
	if m := s.Automerge; m != nil {
		merge = join(string(m.State)+of(m.HeadSHA), m.Reason)
	}
	return cleaned([][2]string{{"Head", s.HeadSHA}, {"Branches", branches}, {"Checks", s.Checks}, {"Review", review}, {"Repair", repair}, {"Merge", merge}})
}

// issueFacts returns what is known of an issue alone.
func issueFacts(n *v1alpha1.MonitorItemIssue) [][2]string {
	if n == nil {
		return nil
	}
	pull, attempts := "", ""
	if n.PullRequest != 0 {
		pull = strconv.FormatInt(n.PullRequest, 10)
	}
	if n.Attempts != 0 {
		attempts = strconv.Itoa(int(n.Attempts))
	}
	return cleaned([][2]string{
		{"Phase", string(n.Phase)}, {"Risk", string(n.Risk)}, {"Approved by", n.PlanApprovedBy}, {"Attempts", attempts}, {"Task", n.TaskName}, {"Branch", n.Branch}, {"Pull request", pull},
	})
}

func cleaned(lines [][2]string) [][2]string {
	for i := range lines {
		lines[i][1] = clean(lines[i][1])
	}
	return lines
}

func join(text, more string) string { return strings.TrimSuffix(text+": "+more, ": ") }

func placeOf(f *v1alpha1.MonitorFinding) string {
	if f.Line == 0 {
		return f.Path
	}
	return f.Path + ":" + strconv.Itoa(int(f.Line))
}

func linesOf(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// newestFirst sorts objects.
func newestFirst[T any](items []T, meta func(*T) metav1.ObjectMeta) {
	slices.SortStableFunc(items, func(a, b T) int {
		x, y := meta(&a), meta(&b)
		return cmp.Or(y.CreationTimestamp.Compare(x.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
}
