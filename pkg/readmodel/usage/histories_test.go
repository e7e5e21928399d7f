// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/pkg/usage/usagetest"
	"github.com/platform-ai/platform/test/kit"
)

// generate makes a history of one namespace: tasks of issues and pull requests, delegation, forks, retries, reviews that
// several issues share, calls that never ended, counters that grow, decrease and lack a baseline, and links to pull
// requests. Every change is a state of its own.
func generate(r *rand.Rand) *usagetest.Ledger {
	l := &usagetest.Ledger{}
	now := time.Date(2026, 4, 20, 0, 0, 0, 0, time.UTC)
	tick := func() time.Time {
		now = now.Add(time.Duration(1 + r.Int64N(int64(36*time.Hour))))
		return now
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	count := func() *int64 {
		if r.IntN(8) == 0 {
			return nil
		}
		return new(r.Int64N(5) * r.Int64N(100))
	}
	for i := range 1 + r.IntN(7) {
		t := records.Task{
			Namespace: "team", NamespaceUID: pick("", "u", "u", "u", "earlier"), UID: fmt.Sprintf("t%d", i), Name: fmt.Sprintf("n%d", i), Type: pick("ai", "container"),
			Agent: pick("", "a", "b"), Phase: "Running", GatewayOwner: pick("", "", "", "", "", "", "open", "shut"), CreatedAt: tick(), ObservedAt: now,
		}
		if i > 0 && r.IntN(3) == 0 {
			t.ParentTaskUID = fmt.Sprintf("t%d", r.IntN(i))
		}
		if i > 0 && r.IntN(5) == 0 {
			t.ForkSourceUID = fmt.Sprintf("t%d", r.IntN(i))
		}
		switch r.IntN(4) {
		case 0:
			t.Work = records.Work{Kind: records.KindIssue, Repository: pick("o/r", "o/s"), Number: 1 + r.Int64N(3), MonitorName: pick("", "m")}
		case 1:
			t.Work = records.Work{Kind: records.KindPullRequest, Repository: "o/r", Number: 7 + r.Int64N(3)}
		case 2:
			t.Repository, t.PRNumber = pick("o/r", "o/s"), r.Int64N(2)*(7+r.Int64N(3))
		}
		l.Tasks = append(l.Tasks, t)
		for range r.IntN(3) {
			k := records.Link{
				ID: fmt.Sprintf("l%d", len(l.Links)), Namespace: "team", TaskUID: t.UID, Repository: "o/r", Number: 7 + r.Int64N(3), State: records.PROpen,
				Origin: records.Origin(pick("created", "assisted", "review_only")), Ready: r.IntN(2) == 0, ObservedAt: tick(), RecordedAt: now,
			}
			l.Links = append(l.Links, k)
			if r.IntN(2) == 0 {
				k.State, k.Ready, k.ObservedAt, k.RecordedAt = records.PRState(pick("merged", "closed")), false, tick(), now
				l.Links = append(l.Links, k)
			}
		}
		for range r.IntN(4) {
			o := records.Observation{
				ID: fmt.Sprintf("o%d", len(l.Observations)), Namespace: "team", NamespaceUID: t.NamespaceUID, TaskUID: pick(t.UID, t.UID, t.UID, "", "gone"),
				SessionName: pick("", "s"), AttemptID: pick("1", "2"), Scope: records.Scope(pick("call", "call", "attempt", "session")),
				Source: records.Source(pick("provider", "provider", "agent", "estimate")), Provider: pick("p", "q"), Model: pick("m", "n"),
				Status: records.StatusStarted, StartedAt: tick(), ObservedAt: now,
			}
			l.Observations = append(l.Observations, o)
			switch r.IntN(5) {
			case 0: // the process was killed
				o.Gap, o.ObservedAt = records.GapFinalUsage, tick()
				l.Observations = append(l.Observations, o)
			case 1: // a counter without a baseline
				o.Status, o.Gap, o.Counts, o.ObservedAt = records.StatusUnattributed, records.GapBaseline, records.Counts{InputTokens: count(), OutputTokens: count()}, tick()
				l.Observations = append(l.Observations, o)
			default: // it grows, and may decrease, which keeps the highest total
				for range 1 + r.IntN(2) {
					o.Counts = records.Counts{InputTokens: count(), OutputTokens: count(), CachedInputTokens: count(), CacheWriteInputTokens: count()}
					o.Status, o.Complete, o.ObservedAt = records.Status(pick("completed", "failed", "cancelled")), o.Reported(), tick()
					if o.Gap = pick("", "", records.GapDecreased); o.Gap != "" {
						o.Complete = false
					}
					l.Observations = append(l.Observations, o)
				}
			}
		}
		if r.IntN(2) == 0 {
			t.Phase, t.EndedAt, t.ObservedAt = pick("Succeeded", "Failed", "Cancelled"), tick(), now
			l.Tasks = append(l.Tasks, t)
		}
	}
	return l
}

// Every report equals one that is made in the most obvious way from all states.
func TestHistories(t *testing.T) {
	t.Parallel()
	histories := uint64(2000)
	if kit.Offered(kit.Minutes) {
		histories = 20_000
	}
	shared, unfinished, gaps, pages := 0, 0, 0, 0
	for seed := range histories {
		r := rand.New(rand.NewPCG(seed, 12))
		l := generate(r)
		spec := v1alpha1.UsageReportSpec{From: "2026-04-01", By: []v1alpha1.UsageBreakdownBy{"", "day", "model", "agent"}[r.IntN(4)]}
		now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		if r.IntN(3) == 0 {
			spec.AsOf = []string{"2026-05-01", "2026-04-27", "2026-05-20"}[r.IntN(3)]
		}
		switch r.IntN(6) {
		case 0:
			spec.Model = "m"
		case 1:
			spec.Repository = "O/R"
		case 2:
			spec.Kind = []string{"issue", "pull_request"}[r.IntN(2)]
		case 3:
			spec.From, spec.Until = "2026-04-22", "2026-04-26"
		}
		want := recompute(l, spec, now)
		got := ask(t, l, spec, now)
		if d := cmp.Diff(want.summary, flat(got)); d != "" {
			t.Fatalf("history %d, %+v (-recomputed +reported):\n%s", seed, spec, d)
		}
		asOf := got.Selection.AsOf
		for i := range got.Works {
			one := spec
			one.Mode, one.WorkID, one.AsOf, one.By = v1alpha1.UsageOfWork, got.Works[i].ID, asOf, ""
			w := ask(t, l, one, now).Work
			var names []string
			for _, task := range w.Tasks {
				names = append(names, task.TaskName)
				if task.Shared {
					shared++
				}
				for _, m := range task.Measurements {
					if m.Gap == records.GapFinalUsage {
						gaps++
					}
				}
			}
			if d := cmp.Diff(want.tasks[fmt.Sprint(w.Kind, w.Repository, w.Number)], names); d != "" {
				t.Fatalf("history %d: tasks of %s (-recomputed +reported):\n%s", seed, w.ID, d)
			}
			if d := cmp.Diff(got.Works[i].Summary, w.Summary); d != "" {
				t.Fatalf("history %d: the detail differs from its row:\n%s", seed, d)
			}
		}
		unfinished += int(got.Summary.UnfinishedWork)
		// What is recorded later changes no page of the same asOf.
		if len(got.Works) > 1 {
			pages++
			second := spec
			second.AsOf, second.Limit, second.Offset = asOf, new(int32(1)), 1
			before := ask(t, l, second, now)
			later := generate(rand.New(rand.NewPCG(seed, 13)))
			for i := range later.Tasks {
				later.Tasks[i].UID, later.Tasks[i].ObservedAt = "later"+later.Tasks[i].UID, now.Add(time.Hour)
			}
			l.Tasks = append(l.Tasks, later.Tasks...)
			for _, o := range l.Observations {
				o.ObservedAt, o.InputTokens = now.Add(time.Hour), new(int64(1_000_000))
				l.Observations = append(l.Observations, o)
			}
			if d := cmp.Diff(before, ask(t, l, second, now)); d != "" {
				t.Fatalf("history %d: a later page changed:\n%s", seed, d)
			}
			if before.Works[0].ID != got.Works[1].ID || *before.Page != (v1alpha1.UsagePage{Limit: 1, Offset: 1, Total: got.Page.Total}) {
				t.Fatalf("history %d: the second page is %+v", seed, before.Page)
			}
			if d := cmp.Diff(before.Summary, got.Summary); d != "" {
				t.Fatalf("history %d: a page changes totals:\n%s", seed, d)
			}
		}
	}
	if least := int(histories) / 100; shared < least || unfinished < least || gaps < least || pages < least {
		t.Errorf("the histories show too little: %d shared tasks, %d unfinished requests, %d gaps, %d with several pages", shared, unfinished, gaps, pages)
	}
}

func prices() records.Prices {
	p := records.Prices{}
	p.Set("p", []v1alpha1.ProviderPrice{{Model: "m", EffectiveFrom: "2026-04-25", Currency: "USD", Input: "1", Output: "2"}})
	return p
}

func ask(t *testing.T, l *usagetest.Ledger, spec v1alpha1.UsageReportSpec, now time.Time) *v1alpha1.UsageReportStatus {
	t.Helper()
	q, err := Parse(&spec, "team", now)
	if err != nil {
		t.Fatal(err)
	}
	v, err := l.At(t.Context(), "team", q.AsOf())
	if err != nil {
		t.Fatal(err)
	}
	if spec.Mode == v1alpha1.UsageOfWork {
		v = indexed{v, t, spec.WorkID}
	}
	out, err := q.Report(Source{View: v, NamespaceUID: "u", Prices: prices(), Gateway: func(name string) (bool, error) { return name == "open", nil }})
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return out
}

// indexed is a view for the report on one work request. It must be read by its index if a task that names the request was
// recorded together with the identity of the namespace.
type indexed struct {
	records.View

	t       *testing.T
	request string
}

func (v indexed) Tasks(p records.Period) iter.Seq2[*records.Task, error] {
	for found, err := range v.Joined(records.JoinWork(v.request)) {
		if err != nil {
			v.t.Fatal(err)
		}
		v.t.Fatalf("the report on %s reads all tasks, although %s leads to it", v.request, found.UID)
	}
	return v.View.Tasks(p)
}

func (v indexed) Observations(records.Period) iter.Seq2[*records.Observation, error] {
	v.t.Fatalf("the report on %s reads all observations", v.request)
	return nil
}

// flat is what the recomputation and the report have in common: figures by what they are about.
func flat(r *v1alpha1.UsageReportStatus) map[string]string {
	out := map[string]string{"delivery": figures(&r.Summary.UsageTotals) + prs(r.Summary) + fmt.Sprintf(" requests=%d unfinished=%d", r.Summary.WorkRequests, r.Summary.UnfinishedWork)}
	for i := range r.Works {
		w := &r.Works[i]
		out[fmt.Sprint(w.Kind, w.Repository, w.Number)] = w.StartedAt + figures(&w.Summary.UsageTotals) + prs(&w.Summary) + strings.Join(w.Models, ",")
	}
	for i := range r.OtherWork {
		out[string(r.OtherWork[i].Category)] = figures(&r.OtherWork[i].Usage)
	}
	for i := range r.Breakdown {
		out["by "+r.Breakdown[i].Name] = figures(&r.Breakdown[i].Usage)
	}
	return out
}

func text(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

func figures(u *v1alpha1.UsageTotals) string {
	money := "none"
	for _, a := range u.Cost.Amounts {
		money = a.Currency + a.Amount
	}
	return fmt.Sprintf(" in=%s out=%s cached=%s written=%s all=%s est=%d of %d: %d/%d/%d calls=%d attempts=%d %s %s/%d", text(u.InputTokens), text(u.OutputTokens),
		text(u.CachedInputTokens), text(u.CacheWriteInputTokens), text(u.TotalTokens), u.EstimatedTokens, u.Measurements, u.ReportedMeasurements,
		u.PartialMeasurements, u.MissingMeasurements, u.Calls, u.Attempts, u.Completeness, money, u.Cost.UnpricedMeasurements)
}

func prs(s *v1alpha1.UsageSummaryOf) string {
	return fmt.Sprintf(" prs=%s/%s/%s/%s/%s ", text(s.PRsOpened), text(s.PRsReady), text(s.PRsMerged), text(s.PRsClosed), text(s.PRsAssisted))
}

// Null is never 0: neither in JSON nor where there are no measurements.
func TestNull(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	l := &usagetest.Ledger{Tasks: []records.Task{
		{Namespace: "team", UID: "a", CreatedAt: at, ObservedAt: at, Work: records.Work{Kind: records.KindIssue, Repository: "o/r", Number: 1}},
	}}
	figure := func() string {
		r := ask(t, l, v1alpha1.UsageReportSpec{From: "2026-01-01"}, at.Add(time.Hour))
		data, err := json.Marshal(r.Summary)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"inputTokens", "cachedInputTokens", "prsOpened", "tokensPerPRMerged"} {
			if _, has := m[name]; !has {
				t.Errorf("%s is left out", name)
			}
		}
		return fmt.Sprint(m["inputTokens"], " ", m["measurements"], " ", m["completeness"], " ", m["prsOpened"])
	}
	if got := figure(); got != "<nil> 0 complete <nil>" {
		t.Errorf("no model calls: %s", got)
	}
	o := records.Observation{ID: "o", Namespace: "team", TaskUID: "a", Scope: records.ScopeCall, Status: records.StatusStarted, Gap: records.GapFinalUsage, StartedAt: at, ObservedAt: at}
	l.Observations = append(l.Observations, o)
	if got := figure(); got != "<nil> 1 unavailable <nil>" {
		t.Errorf("a request whose end is missing: %s", got)
	}
	o.Counts, o.Complete, o.Gap = records.Counts{InputTokens: new(int64(0)), OutputTokens: new(int64(0))}, true, ""
	l.Observations = append(l.Observations, o)
	if got := figure(); got != "0 1 complete <nil>" {
		t.Errorf("nothing used: %s", got)
	}
}

// The ID of a work request never changes, and differs between namespaces of the same name.
func TestID(t *testing.T) {
	t.Parallel()
	s := subject{Kind: records.KindIssue, Repository: "o/r", Number: 1}
	if got := s.ID("u"); got != "work-2e94afb7001ded71d32a060201d3eea8" || got == s.ID("v") {
		t.Errorf("id %s", got)
	}
}
