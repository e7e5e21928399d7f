// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// queryFlags sort and select tasks in ways that a list of the API does not have.
type queryFlags struct {
	by, startedAfter, startedBefore, agent, model, text string

	ascending   bool
	minDuration time.Duration
	minTokens   int64
}

// orders are the valid values of --sort-by.
var orders = []string{
	string(v1alpha1.TasksByCreated), string(v1alpha1.TasksByStarted), string(v1alpha1.TasksByDuration), string(v1alpha1.TasksByTokens), string(v1alpha1.TasksByName),
}

// queryNames are the flags of which each makes a list a query.
var queryNames = []string{"sort-by", "ascending", "started-after", "started-before", "min-duration", "min-tokens", "agent", "model", "text"}

func (q *queryFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.by, "sort-by", "", "sort by "+strings.Join(orders, ", ")+"; names ascending, the others with the largest first")
	f.BoolVar(&q.ascending, "ascending", false, "sort the smallest first")
	f.StringVar(&q.startedAfter, "started-after", "", "only tasks that started then or later: a UTC date, an RFC 3339 timestamp, or how long ago, such as 24h")
	f.StringVar(&q.startedBefore, "started-before", "", "only tasks that started before")
	f.DurationVar(&q.minDuration, "min-duration", 0, "only tasks that took, or have run, at least this long")
	f.Int64Var(&q.minTokens, "min-tokens", 0, "only tasks that used at least this many tokens")
	f.StringVar(&q.agent, "agent", "", "only tasks of this agent")
	f.StringVar(&q.model, "model", "", "only tasks of this model")
	f.StringVar(&q.text, "text", "", "only tasks with this text in their name, in that of their agent, or in the first line of their prompt")
	offer(cmd, "sort-by", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp))
}

// asked reports whether a flag makes the list a query.
func (q *queryFlags) asked(cmd *cobra.Command) bool {
	return slices.ContainsFunc(queryNames, cmd.Flags().Changed)
}

// timeAgo returns a time that may be written as how long ago it was.
func timeAgo(text string, now time.Time) string {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d).UTC().Format(time.RFC3339)
	}
	return text
}

// spec returns the query of a page.
func (q *queryFlags) spec(l *listFlags, status string, now time.Time) (v1alpha1.TaskQuerySpec, error) {
	s := v1alpha1.TaskQuerySpec{
		LabelSelector: l.selector, Agent: q.agent, Model: q.model, Text: q.text, MinTokens: q.minTokens, OrderBy: v1alpha1.TaskOrder(q.by),
		StartedAfter: timeAgo(q.startedAfter, now), StartedBefore: timeAgo(q.startedBefore, now), Limit: int32(min(l.limit, mostSummaries)), Continue: l.token,
		Descending: q.by != string(v1alpha1.TasksByName) && !q.ascending,
	}
	if s.Limit <= 0 {
		s.Limit = mostSummaries
	}
	if status != "" {
		s.Phases = []string{status}
	}
	if q.minDuration > 0 {
		s.MinDuration = v1alpha1.DurationOf(q.minDuration)
	}
	switch {
	case l.everywhere:
		return s, errors.New("--all-namespaces: cannot be combined with --sort-by or its filters, which are about one namespace")
	case l.follow:
		return s, errors.New("--watch: cannot be combined with --sort-by or its filters")
	case l.fields != "":
		return s, errors.New("--field-selector: cannot be combined with --sort-by or its filters; use --status, --agent or --text")
	case q.by != "":
		return s, oneOf("--sort-by", q.by, orders...)
	}
	return s, nil
}

// mostSummaries is how many tasks are read at a time. It is the maximum that the server returns.
const mostSummaries = 500

// queryTasks prints the tasks that the server finds.
func queryTasks(ctx context.Context, api *server, term *terminal, l *listFlags, q *queryFlags, status string, f format) error {
	spec, err := q.spec(l, status, term.clock.Now())
	if err != nil {
		return err
	}
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	all := &v1alpha1.TaskQuery{}
	for {
		page, err := c.TaskQueries(namespace).Create(ctx, &v1alpha1.TaskQuery{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		items := slices.Concat(all.Status.Items, page.Status.Items)
		all, spec.Continue = page, page.Status.Continue
		all.Status.Items = items
		if spec.Continue == "" || l.limit > 0 && int64(len(items)) >= l.limit {
			break
		}
		if l.limit > 0 {
			spec.Limit = int32(min(l.limit-int64(len(items)), mostSummaries))
		}
	}
	all.TypeMeta = metav1.TypeMeta{Kind: "TaskQuery", APIVersion: v1alpha1.SchemeGroupVersion.String()}
	return printSummaries(term, all, f)
}

// printSummaries prints what a query found.
func printSummaries(term *terminal, q *v1alpha1.TaskQuery, f format) error {
	found := &q.Status
	switch {
	case f == asName:
		for i := range found.Items {
			if err := term.say("task.%s/%s", v1alpha1.GroupName, found.Items[i].Name); err != nil {
				return err
			}
		}
		return nil
	case !f.table():
		if err := term.objectPrinter(f, false).PrintObj(q, term.Out); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		return nil
	case len(found.Items) == 0:
		note(term.Err, "nothing found")
		return nil
	}
	heading := []string{"NAME", "PHASE", "AGENT", "TOKENS", "DURATION", "STARTED", "AGE"}
	if f == asWide {
		heading = append(heading, "TYPE", "MODEL", "PARENT", "REASON", "PROMPT")
	}
	rows := [][]string{heading}
	for i := range found.Items {
		s := &found.Items[i]
		cells := []string{s.Name, s.Phase, s.Agent, tokensOf(s), "", "", term.age(s.CreationTimestamp.Time)}
		if s.DurationSeconds != nil {
			cells[4] = length(v1alpha1.Length(*s.DurationSeconds, time.Second))
		}
		if s.StartTime != nil {
			cells[5] = term.age(s.StartTime.Time)
		}
		if f == asWide {
			cells = append(cells, string(s.Type), s.Model, s.Parent, s.Reason, s.Prompt)
		}
		for i := range cells {
			cells[i] = clean(cells[i])
		}
		rows = append(rows, cells)
	}
	show := term.columns
	if f == asWide {
		show = term.wholeColumns
	}
	if err := show(rows); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if found.Continue != "" {
		note(term.Err, fmt.Sprintf("%d of %d are shown; for more: --continue %s", len(found.Items), found.Matched, found.Continue))
	}
	return nil
}

// tokensOf shows unknown numbers as unknown, never as zero.
func tokensOf(s *v1alpha1.TaskSummary) string {
	switch {
	case s.TotalTokens == nil && s.Type == v1alpha1.TaskTypeContainer:
		return ""
	case s.TotalTokens == nil:
		return unavailable
	case s.UnreportedRequests > 0:
		return strconv.FormatInt(*s.TotalTokens, 10) + "+"
	}
	return strconv.FormatInt(*s.TotalTokens, 10)
}
