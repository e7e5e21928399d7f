// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/pkg/usage/usagetest"
)

// recomputed is a report in the form of flat, and the names of the tasks of each work request.
type recomputed struct {
	summary map[string]string
	tasks   map[string][]string
}

// recompute makes the report of mode summary from all states. It shares no code with the package but the parsing of
// the selection.
func recompute(l *usagetest.Ledger, spec v1alpha1.UsageReportSpec, now time.Time) recomputed {
	when := func(s string, otherwise time.Time) time.Time {
		if s == "" {
			return otherwise
		}
		t, err := time.Parse("2006-01-02", s)
		if err != nil {
			panic(err)
		}
		return t
	}
	asOf := when(spec.AsOf, now)
	from, until := when(spec.From, time.Time{}), when(spec.Until, asOf.Add(1))
	inPeriod := func(t time.Time) bool { return !t.Before(from) && t.Before(until) }
	repository := strings.ToLower(spec.Repository)

	tasks, links, used := map[string]records.Task{}, map[string]records.Link{}, map[string]records.Observation{}
	for _, t := range l.Tasks {
		if !t.ObservedAt.After(asOf) && t.NamespaceUID != "earlier" {
			tasks[t.UID] = t
		}
	}
	for _, k := range l.Links {
		if _, known := tasks[k.TaskUID]; known && !k.RecordedAt.After(asOf) {
			links[k.ID] = k
		}
	}
	for _, o := range l.Observations {
		if !o.ObservedAt.After(asOf) && o.NamespaceUID != "earlier" {
			used[o.ID] = o
		}
	}
	// Issues of tasks and of pull requests: whatever follows from what is known, until nothing more does.
	pullOf := func(t records.Task) string {
		if t.Work.Kind == "pull_request" {
			return fmt.Sprint("pull_request", t.Work.Repository, t.Work.Number)
		}
		if t.PRNumber != 0 {
			return fmt.Sprint("pull_request", t.Repository, t.PRNumber)
		}
		return ""
	}
	type fact struct{ of, work string } // a task or a pull request is part of a work request
	facts := map[fact]bool{}
	for before := -1; before != len(facts); {
		before = len(facts)
		for uid, t := range tasks {
			if t.Work.Kind == "issue" {
				facts[fact{uid, fmt.Sprint("issue", t.Work.Repository, t.Work.Number)}] = true
				continue
			}
			for f := range maps.Clone(facts) {
				if f.of == t.ParentTaskUID || f.of == t.ForkSourceUID || pullOf(t) != "" && f.of == pullOf(t) {
					facts[fact{uid, f.work}] = true
				}
			}
		}
		for _, k := range links {
			for f := range maps.Clone(facts) {
				if f.of == k.TaskUID && k.Origin != "review_only" {
					facts[fact{fmt.Sprint("pull_request", k.Repository, k.Number), f.work}] = true
				}
			}
		}
	}
	members := map[string][]records.Task{} // of requests
	ordered := slices.SortedFunc(maps.Values(tasks), func(a, b records.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	var requestOf func(t records.Task) string // of a task without an issue
	requestOf = func(t records.Task) string {
		if pr := pullOf(t); pr != "" {
			return pr
		}
		for _, up := range []string{t.ParentTaskUID, t.ForkSourceUID} {
			if p, known := tasks[up]; known && strings.HasPrefix(requestOf(p), "pull_request") {
				return requestOf(p)
			}
		}
		for _, up := range []string{t.ParentTaskUID, t.ForkSourceUID} {
			if p, known := tasks[up]; known {
				return requestOf(p)
			}
			if up != "" {
				return "other " + up
			}
		}
		return "other " + t.UID
	}
	for _, t := range ordered {
		var of []string
		for f := range facts {
			if f.of == t.UID {
				of = append(of, f.work)
			}
		}
		if len(of) == 0 {
			of = []string{requestOf(t)}
		}
		for _, w := range of {
			members[w] = append(members[w], t)
		}
	}
	ofTask := func(uid string) (out []records.Observation) {
		for _, o := range used {
			if o.TaskUID == uid && o.Status != "unattributed" {
				out = append(out, o)
			}
		}
		return out
	}
	out := recomputed{map[string]string{}, map[string][]string{}}
	groups := map[string][]records.Task{} // tasks of delivery and of categories
	breakdown := map[string]map[string]records.Observation{}
	note := func(o records.Observation, agent string) {
		name := map[v1alpha1.UsageBreakdownBy]string{"day": o.StartedAt.Format("2006-01-02"), "model": o.Model, "agent": agent}[spec.By]
		if breakdown[name] == nil {
			breakdown[name] = map[string]records.Observation{}
		}
		breakdown[name][o.ID] = o
	}
	requests, unfinished := 0, 0
	for w, of := range members {
		kind := ""
		models := map[string]bool{}
		var all []records.Observation
		visible, ended := true, true
		for _, t := range of {
			visible = visible && t.GatewayOwner != "shut"
			ended = ended && !t.EndedAt.IsZero()
			for _, o := range ofTask(t.UID) {
				all, models[o.Model] = append(all, o), true
			}
		}
		category := "other_requests"
		switch {
		case strings.HasPrefix(w, "issue"):
			category, kind = "delivery", "issue"
		case strings.HasPrefix(w, "pull_request"):
			category, kind = "review_only", "pull_request"
		}
		in := repository == "" || strings.HasPrefix(strings.TrimPrefix(w, kind), repository) && kind != "" || kind == "" && strings.EqualFold(of[0].Repository, repository)
		if !visible || !in || !inPeriod(of[0].CreatedAt) || spec.Kind != "" && kind != spec.Kind || spec.Model != "" && !models[spec.Model] {
			continue
		}
		groups[category] = append(groups[category], of...)
		for _, t := range of {
			for _, o := range ofTask(t.UID) {
				note(o, t.Agent)
			}
			if kind != "" {
				out.tasks[w] = append(out.tasks[w], t.Name)
			}
		}
		if category == "delivery" {
			requests++
			if !ended {
				unfinished++
			}
		}
		if kind != "" {
			out.summary[w] = of[0].CreatedAt.Format(time.RFC3339Nano) + plain(all) + plainPRs(of, links, asOf) + strings.Join(slices.Sorted(maps.Keys(models)), ",")
		}
	}
	usageOf := func(of []records.Task) (all []records.Observation) {
		for _, t := range of {
			all = append(all, ofTask(t.UID)...)
		}
		return all
	}
	out.summary["delivery"] = plain(usageOf(groups["delivery"])) + plainPRs(groups["delivery"], links, asOf) + fmt.Sprintf(" requests=%d unfinished=%d", requests, unfinished)
	out.summary["review_only"], out.summary["other_requests"] = plain(usageOf(groups["review_only"])), plain(usageOf(groups["other_requests"]))
	var loose []records.Observation
	for _, o := range used {
		t, known := tasks[o.TaskUID]
		if known && (o.Status != "unattributed" || t.GatewayOwner == "shut") || !inPeriod(o.StartedAt) || repository != "" || spec.Kind != "" || spec.Model != "" && o.Model != spec.Model {
			continue
		}
		loose = append(loose, o)
		note(o, t.Agent)
	}
	out.summary["unassociated"] = plain(loose)
	for name, all := range breakdown {
		if spec.By != "" {
			out.summary["by "+name] = plain(slices.Collect(maps.Values(all)))
		}
	}
	return out
}

// plain adds up observations, each once, in the form of figures.
func plain(all []records.Observation) string {
	once := map[string]records.Observation{}
	for _, o := range all {
		once[o.ID] = o
	}
	in, out, cached, written, estimated := int64(0), int64(0), int64(0), int64(0), int64(0)
	var anyIn, anyOut, noCached, noWritten bool
	complete, missing, calls, priced, picos := 0, 0, 0, 0, int64(0)
	attempts := map[string]bool{}
	for _, o := range once {
		if o.Scope == "call" {
			calls++
		}
		if o.TaskUID != "" {
			attempts[o.TaskUID+o.AttemptID] = true
		}
		value := func(n *int64) int64 {
			if n == nil {
				return 0
			}
			return *n
		}
		if o.InputTokens == nil && o.OutputTokens == nil {
			missing++
		} else if o.InputTokens != nil && o.OutputTokens != nil && o.Complete {
			complete++
		}
		if o.Source == "estimate" {
			estimated += value(o.InputTokens) + value(o.OutputTokens)
			continue
		}
		anyIn, anyOut = anyIn || o.InputTokens != nil, anyOut || o.OutputTokens != nil
		in, out = in+value(o.InputTokens), out+value(o.OutputTokens)
		if o.InputTokens != nil {
			cached, written = cached+value(o.CachedInputTokens), written+value(o.CacheWriteInputTokens)
			noCached = noCached || o.CachedInputTokens == nil && *o.InputTokens != 0
			noWritten = noWritten || o.CacheWriteInputTokens == nil && *o.InputTokens != 0
		}
		if o.Provider == "p" && o.Model == "m" && !o.StartedAt.Before(time.Date(2026, 4, 25, 0, 0, 0, 0, time.UTC)) && o.InputTokens != nil && o.OutputTokens != nil {
			priced++
			picos += *o.InputTokens + 2**o.OutputTokens // millionths
		}
	}
	show := func(n int64, known bool) string {
		if !known {
			return "null"
		}
		return fmt.Sprint(n)
	}
	completeness := "partial"
	switch len(once) {
	case complete:
		completeness = "complete"
	case missing:
		completeness = "unavailable"
	}
	money := "none"
	if priced > 0 {
		money = "USD" + strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", picos/1e6, picos%1e6), "0"), ".")
	}
	return fmt.Sprintf(" in=%s out=%s cached=%s written=%s all=%s est=%d of %d: %d/%d/%d calls=%d attempts=%d %s %s/%d", show(in, anyIn), show(out, anyOut),
		show(cached, anyIn && !noCached), show(written, anyIn && !noWritten), show(in+out, anyIn || anyOut), estimated, len(once), complete, len(once)-complete-missing,
		missing, calls, len(attempts), completeness, money, len(once)-priced)
}

// plainPRs counts pull requests, each once, in the form of prs.
func plainPRs(of []records.Task, links map[string]records.Link, asOf time.Time) string {
	byNumber := map[int64][]records.Link{}
	for _, k := range links {
		if slices.ContainsFunc(of, func(t records.Task) bool { return t.UID == k.TaskUID }) {
			byNumber[k.Number] = append(byNumber[k.Number], k)
		}
	}
	if len(byNumber) == 0 {
		return " prs=null/null/null/null/null "
	}
	var opened, ready, merged, closed, assisted int
	for _, all := range byNumber {
		has := func(f func(records.Link) bool) bool { return slices.ContainsFunc(all, f) }
		newest := slices.MaxFunc(all, func(a, b records.Link) int { return a.ObservedAt.Compare(b.ObservedAt) })
		created := has(func(k records.Link) bool { return k.Origin == "created" })
		assists := has(func(k records.Link) bool { return k.Origin == "assisted" })
		wasMerged := has(func(k records.Link) bool { return k.State == "merged" })
		switch {
		case created:
			opened++
			if wasMerged {
				merged++
			} else if newest.State == "closed" {
				closed++
			}
		case assists:
			assisted++
		}
		if (created || assists) && !wasMerged && newest.State == "open" && newest.Ready && asOf.Sub(newest.ObservedAt) < 10*time.Minute {
			ready++
		}
	}
	return fmt.Sprintf(" prs=%d/%d/%d/%d/%d ", opened, ready, merged, closed, assisted)
}
