// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const asCSV format = "csv"

// What tables show where there is no number. Unavailable is not the same as 0.
const (
	unavailable  = "Unavailable"
	noModelCalls = "No model calls"
)

func usageCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "usage", Short: "What requests used of models",
		Long: "What requests used of models. \"Unavailable\" means that the usage was not reported, 0 that the report says none, " +
			"and \"No model calls\" that the work asked no model.",
	}
	cmd.AddCommand(
		usageReport(api, term, v1alpha1.UsageSummary, "summary", "Show the work requests of the namespace and all other usage", cobra.NoArgs),
		usageReport(api, term, v1alpha1.UsageOfWork, "work WORK_ID", "Show one work request with its tasks", cobra.ExactArgs(1)),
		usageReport(api, term, v1alpha1.UsageOther, "other CATEGORY", "Show other usage: review_only, other_requests or unassociated", cobra.ExactArgs(1)),
	)
	requests := listOf(api, term, "usagemeasurements", "List requests to models, of tasks, chats and the vendors' APIs")
	requests.Use, requests.Aliases = "requests", nil
	cmd.AddCommand(requests, usageShow(api, term))
	return cmd
}

// usageReport returns the command for one report.
func usageReport(api *server, term *terminal, mode v1alpha1.UsageReportMode, use, short string, args cobra.PositionalArgs) *cobra.Command {
	s := v1alpha1.UsageReportSpec{Mode: mode}
	var limit int32
	var chart string
	cmd := &cobra.Command{Use: use, Short: short, Args: args}
	flags := cmd.Flags()
	flags.StringVar(&s.From, "from", "", "only requests that started then or later: a UTC date or an RFC 3339 timestamp")
	flags.StringVar(&s.Until, "until", "", "only requests that started before")
	flags.StringVar(&s.AsOf, "as-of", "", "leave out what was observed later; pages of one report have the same value")
	flags.StringSliceVar(&s.Teams, "teams", nil, "namespace to report on instead of that of -n")
	flags.StringVar(&s.Repository, "repository", "", "only requests of OWNER/REPOSITORY")
	flags.StringVar(&s.Model, "model", "", "only requests that used the model, with all their usage")
	flags.StringVar(&s.Kind, "kind", "", "only requests about an issue or a pull_request")
	flags.StringVar(&chart, "chart", "", "also draw the usage by day, model or agent")
	if mode != v1alpha1.UsageOfWork {
		flags.Int32Var(&limit, "limit", 0, "size of the page, at most 100; 0 is 25")
		flags.Int32Var(&s.Offset, "offset", 0, "how many items precede the page")
	}
	if mode == v1alpha1.UsageOther {
		cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"review_only", "other_requests", "unassociated"}, cobra.ShellCompDirectiveNoFileComp)
	}
	f := addOutput(cmd, asTable, asJSON, asYAML, asCSV)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if chart != "" {
			if err := oneOf("--chart", chart, "day", "model", "agent"); err != nil {
				return err
			}
			s.By = v1alpha1.UsageBreakdownBy(chart)
		}
		switch mode {
		case v1alpha1.UsageOfWork:
			s.WorkID = args[0]
		case v1alpha1.UsageOther:
			s.Category = args[0]
		}
		if limit != 0 {
			s.Limit = &limit
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		if len(s.Teams) == 1 {
			namespace = s.Teams[0]
		}
		out, err := c.UsageReports(namespace).Create(cmd.Context(), &v1alpha1.UsageReport{Spec: s}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return printUsage(term, &out.Status, *f)
	}
	return cmd
}

// usageTables writes tables, each with columns of its own.
func usageTables(w *tabwriter.Writer, tables ...[][]string) {
	for i, table := range tables {
		if i > 0 && len(table) > 0 {
			_ = w.Flush()
			_, _ = fmt.Fprintln(w)
		}
		for _, row := range table {
			for i := range row {
				row[i] = clean(row[i])
			}
			_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
}

// printUsage prints a report.
func printUsage(term *terminal, r *v1alpha1.UsageReportStatus, f format) error {
	switch f {
	case asJSON, asYAML:
		return term.write(r, f)
	case asCSV:
		rows := usageRows(r, "")
		for _, row := range rows {
			for i := range row {
				row[i] = cell(row[i])
			}
		}
		return csv.NewWriter(term.Out).WriteAll(rows)
	}
	s := r.Selection
	if err := term.say("Usage of %s, requests from %s until %s, as of %s", strings.Join(s.Teams, ", "), s.From, s.Until, s.AsOf); err != nil {
		return err
	}
	w := tabwriter.NewWriter(term.Out, 0, 0, 2, ' ', 0)
	if r.Summary != nil {
		summaryLines(w, r.Summary)
	}
	if r.Work != nil {
		if err := term.say("%s of %s %s#%d", r.Work.ID, r.Work.Kind, clean(r.Work.Repository), r.Work.Number); err != nil {
			return err
		}
		summaryLines(w, &r.Work.Summary)
	}
	_, _ = fmt.Fprintln(w)
	usageTables(w, usageRows(r, unavailable), pullRequestRows(r))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if r.Breakdown != nil {
		if err := printChart(term, r.Breakdown); err != nil {
			return err
		}
	}
	p := r.Page
	if r.Other != nil {
		p = r.Other.Page
	}
	if p != nil && int(p.Offset)+int(p.Limit) < int(p.Total) {
		note(term.Err, fmt.Sprintf("%d of %d are shown; for more: --as-of %s --offset %d", p.Limit, p.Total, s.AsOf, p.Offset+p.Limit))
	}
	return nil
}

// cell makes a cell of CSV that no spreadsheet takes for a formula, and that changes no terminal: names come from whoever
// creates tasks.
func cell(s string) string {
	if s = strings.TrimSpace(clean(s)); s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// summaryLines prints the totals of requests.
func summaryLines(w io.Writer, s *v1alpha1.UsageSummaryOf) {
	per := func(n *float64, of *int64, none string) string {
		switch {
		case n != nil:
			return strconv.FormatFloat(*n, 'f', -1, 64)
		case of != nil && *of == 0:
			return none
		}
		return unavailable
	}
	count := func(n *int64) string { return tokenCount(n, unavailable, 1) }
	_, _ = fmt.Fprintf(w, "Requests\t%d\tUnfinished\t%d\n", s.WorkRequests, s.UnfinishedWork)
	_, _ = fmt.Fprintf(w, "Recorded tokens\t%s\tCompleteness\t%s\n", tokenCount(s.TotalTokens, unavailable, s.Measurements), s.Completeness)
	_, _ = fmt.Fprintf(w, "PRs opened\t%s\tTokens per opened PR\t%s\n", count(s.PRsOpened), per(s.TokensPerPROpened, s.PRsOpened, "No PRs opened yet"))
	_, _ = fmt.Fprintf(w, "PRs merged\t%s\tTokens per merged PR\t%s\n", count(s.PRsMerged), per(s.TokensPerPRMerged, s.PRsMerged, "No PRs merged yet"))
	_, _ = fmt.Fprintf(w, "PRs closed\t%s\tPRs assisted\t%s\n", count(s.PRsClosed), count(s.PRsAssisted))
	_, _ = fmt.Fprintf(w, "Ready now\t%s\n", count(s.PRsReady))
	_, _ = fmt.Fprintf(w, "Cost\t%s\n", costText(&s.UsageTotals, unavailable))
}

// usageRows returns the rows of a report with their heading. missing is written where a figure is not known.
func usageRows(r *v1alpha1.UsageReportStatus, missing string) [][]string {
	head := []string{"WHAT", "ID", "STARTED", "INPUT", "OUTPUT", "CACHED", "CACHE WRITES", "TOTAL", "CALLS", "COMPLETENESS", "COST"}
	row := func(what, id, started string, u *v1alpha1.UsageTotals) []string {
		n := u.Measurements
		return []string{
			what, id, started, tokenCount(u.InputTokens, missing, n), tokenCount(u.OutputTokens, missing, n), tokenCount(u.CachedInputTokens, missing, n),
			tokenCount(u.CacheWriteInputTokens, missing, n), tokenCount(u.TotalTokens, missing, n), strconv.FormatInt(u.Calls, 10), string(u.Completeness), costText(u, missing),
		}
	}
	rows := [][]string{head}
	for i := range r.Works {
		w := &r.Works[i]
		rows = append(rows, row(fmt.Sprintf("%s %s#%d", w.Kind, w.Repository, w.Number), w.ID, w.StartedAt, &w.Summary.UsageTotals))
	}
	for i := range r.OtherWork {
		o := &r.OtherWork[i]
		rows = append(rows, row(string(o.Category), "", "", &o.Usage))
	}
	var tasks []v1alpha1.UsageTask
	switch {
	case r.Work != nil:
		tasks = r.Work.Tasks
	case r.Other != nil:
		rows = append(rows, row(string(r.Other.Category), "", "", &r.Other.Usage))
		tasks = r.Other.Tasks
	}
	for i := range tasks {
		t := &tasks[i]
		what := "task " + t.TaskName
		if t.TaskUID == "" {
			what = "request " + t.SessionName
		}
		if t.Shared {
			what += " (shared work)"
		}
		rows = append(rows, row(strings.TrimSpace(what), string(t.TaskUID), t.StartedAt, &t.Usage))
	}
	return rows
}

// pullRequestRows returns the pull requests of a work request with their heading; none if there are none.
func pullRequestRows(r *v1alpha1.UsageReportStatus) [][]string {
	if r.Work == nil || len(r.Work.PullRequests) == 0 {
		return nil
	}
	rows := [][]string{{"PULL REQUEST", "ORIGIN", "STATE", "READY", "OBSERVED", "REASON", "URL"}}
	for i := range r.Work.PullRequests {
		p := &r.Work.PullRequests[i]
		observed := unavailable
		if p.ObservedAt != nil {
			observed = *p.ObservedAt
		}
		rows = append(rows, []string{
			fmt.Sprintf("%s#%d", p.Repository, p.Number), p.Origin, p.State, strconv.FormatBool(p.Ready), observed, p.ReadinessReason, p.URL,
		})
	}
	return rows
}

// tokenCount writes a count of so many measurements.
func tokenCount(n *int64, missing string, measurements int64) string {
	switch {
	case measurements == 0 && missing != "":
		return noModelCalls
	case n == nil:
		return missing
	}
	return strconv.FormatInt(*n, 10)
}

// costText writes what measurements cost; "at least" if some have no price.
func costText(u *v1alpha1.UsageTotals, missing string) string {
	if u.Measurements == 0 && missing != "" {
		return noModelCalls
	}
	var all []string
	for _, c := range u.Cost.Amounts {
		all = append(all, c.Currency+" "+c.Amount)
	}
	text := strings.Join(all, " + ")
	switch {
	case text == "":
		return missing
	case u.Cost.Completeness == v1alpha1.UsagePartial:
		return "at least " + text
	}
	return text
}

// Columns of a chart.
const (
	chartWidth = 40
	maxBars    = 62
)

// printChart draws a bar for each row of a breakdown.
func printChart(term *terminal, rows []v1alpha1.UsageBreakdown) error {
	var most int64
	width := 0
	rows = rows[max(0, len(rows)-maxBars):]
	for _, r := range rows {
		if n := r.Usage.TotalTokens; n != nil {
			most = max(most, *n)
		}
		width = max(width, len(clean(r.Name)), len("(none)"))
	}
	if err := term.say(""); err != nil {
		return err
	}
	for _, r := range rows {
		name := clean(r.Name)
		if name == "" {
			name = "(none)"
		}
		bar := ""
		if n := r.Usage.TotalTokens; n != nil && most > 0 {
			bar = strings.Repeat("█", int(float64(*n)/float64(most)*chartWidth))
		}
		mark := ""
		if r.Usage.Completeness == v1alpha1.UsagePartial {
			mark = " or more"
		}
		if err := term.say("%-*s  %-*s %s%s", width, name, chartWidth, bar, tokenCount(r.Usage.TotalTokens, unavailable, r.Usage.Measurements), mark); err != nil {
			return err
		}
	}
	return nil
}
