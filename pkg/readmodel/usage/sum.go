// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
)

// sum adds up observations and what they cost.
type sum struct {
	tokens  records.Totals
	prices  records.Prices
	amounts map[string]records.Amount // by currency
	priced  int64
}

// add adds an observation, unless it was added before.
func (s *sum) add(o *records.Observation) error {
	before := s.tokens.Measurements
	if err := s.tokens.Add(o); err != nil {
		return err
	}
	if s.tokens.Measurements == before {
		return nil
	}
	if c, ok := s.prices.Cost(o); ok {
		if s.amounts == nil {
			s.amounts = map[string]records.Amount{}
		}
		s.amounts[c.Currency] = s.amounts[c.Currency].Add(c.Amount)
		s.priced++
	}
	return nil
}

// totals returns the sum as reports show it.
func (s *sum) totals() v1alpha1.UsageTotals {
	t := &s.tokens
	return v1alpha1.UsageTotals{
		InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, TotalTokens: t.TotalTokens,
		CachedInputTokens: t.CachedInputTokens, CacheWriteInputTokens: t.CacheWriteInputTokens,
		CachedUsageReported: t.CachedUsageReported, CacheWriteUsageReported: t.CacheWriteUsageReported,
		EstimatedTokens: t.EstimatedTokens,
		Measurements:    t.Measurements, ReportedMeasurements: t.ReportedMeasurements,
		MissingMeasurements: t.MissingMeasurements, PartialMeasurements: t.PartialMeasurements,
		Calls: t.Calls, Attempts: t.Attempts,
		Completeness: v1alpha1.UsageCompleteness(t.Completeness()), ModelCost: v1alpha1.UsageModelCost, Cost: s.cost(),
	}
}

// cost returns what the observations cost.
func (s *sum) cost() v1alpha1.UsageCost {
	c := v1alpha1.UsageCost{Completeness: v1alpha1.UsageComplete, UnpricedMeasurements: s.tokens.Measurements - s.priced, Amounts: []v1alpha1.UsageAmount{}}
	switch {
	case c.UnpricedMeasurements == 0:
	case s.priced == 0:
		c.Completeness = v1alpha1.UsageUnavailable
	default:
		c.Completeness = v1alpha1.UsagePartial
	}
	for _, currency := range slices.Sorted(maps.Keys(s.amounts)) {
		c.Amounts = append(c.Amounts, v1alpha1.UsageAmount{Currency: currency, Amount: s.amounts[currency].String()})
	}
	return c
}

// sum adds up the usage of tasks.
func (r *report) sum(tasks []*node) (*sum, error) {
	s := &sum{prices: r.Prices}
	for _, n := range tasks {
		for _, o := range n.used {
			if err := s.add(o); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// sumUp returns the summary of work requests. What several of them share counts once.
func (r *report) sumUp(works []*work) (*v1alpha1.UsageSummaryOf, error) {
	tasks := tasksOf(works)
	s, err := r.sum(tasks)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.UsageSummaryOf{UsageTotals: s.totals(), WorkRequests: int64(len(works))}
	for _, w := range works {
		if slices.ContainsFunc(w.tasks, func(n *node) bool { return !n.Ended() }) {
			out.UnfinishedWork++
		}
	}
	r.delivered(out, tasks)
	return out, nil
}

// delivered fills in what is known about pull requests. Where nothing is, it leaves everything unknown.
func (r *report) delivered(out *v1alpha1.UsageSummaryOf, tasks []*node) {
	var opened, ready, merged, closed, assisted int64
	all := r.pullRequests(tasks)
	if len(all) == 0 {
		return
	}
	for _, p := range all {
		if p.Ready && p.Origin != string(records.OriginReviewOnly) {
			ready++
		}
		switch records.Origin(p.Origin) {
		case records.OriginCreated:
			opened++
			switch records.PRState(p.State) {
			case records.PRMerged:
				merged++
			case records.PRClosed:
				closed++
			}
		case records.OriginAssisted:
			assisted++
		}
	}
	out.PRsOpened, out.PRsReady, out.PRsMerged, out.PRsClosed, out.PRsAssisted = &opened, &ready, &merged, &closed, &assisted
	out.TokensPerPROpened, out.TokensPerPRMerged = per(out.TotalTokens, opened), per(out.TotalTokens, merged)
}

// per divides tokens by a count; nil if either is unknown or zero.
func per(tokens *int64, n int64) *float64 {
	if tokens == nil || n == 0 {
		return nil
	}
	return new(float64(*tokens) / float64(n))
}

// pullRequests returns the pull requests that are linked with tasks, each once: with the strongest claim, the newest
// state, and a merge that was ever confirmed.
func (r *report) pullRequests(tasks []*node) []v1alpha1.UsagePullRequest {
	byPull := map[subject][]*records.Link{}
	for _, n := range tasks {
		for _, l := range n.links {
			pr := r.history.identity(l)
			byPull[pr] = append(byPull[pr], l)
		}
	}
	out := make([]v1alpha1.UsagePullRequest, 0, len(byPull))
	for _, links := range byPull {
		out = append(out, r.pullRequest(links))
	}
	slices.SortFunc(out, func(a, b v1alpha1.UsagePullRequest) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Number, b.Number), cmp.Compare(a.GitHubID, b.GitHubID))
	})
	return out
}

// pullRequest merges the links of one pull request.
func (r *report) pullRequest(links []*records.Link) v1alpha1.UsagePullRequest {
	slices.SortFunc(links, func(a, b *records.Link) int {
		return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), a.RecordedAt.Compare(b.RecordedAt), cmp.Compare(a.ID, b.ID))
	})
	now := links[len(links)-1]
	claim := links[0]
	for _, l := range links {
		if l.Origin.Proves(claim.Origin) {
			claim = l
		}
	}
	p := v1alpha1.UsagePullRequest{
		Namespace: now.Namespace, Repository: now.Repository, Number: now.Number, URL: now.URL, HeadSHA: now.HeadSHA,
		State: string(now.State), Ready: now.ReadyAt(r.asOf), ReadinessReason: now.ReadinessReason, ObservedAt: stampOf(now.ObservedAt),
		Origin: string(claim.Origin), EvidenceID: claim.EvidenceID,
	}
	for _, l := range links {
		p.GitHubID = cmp.Or(p.GitHubID, l.GithubID)
		p.CreatedAt = cmp.Or(p.CreatedAt, stampOf(l.CreatedAt))
		p.ClosedAt = cmp.Or(stampOf(l.ClosedAt), p.ClosedAt)
		if l.State == records.PRMerged {
			p.State, p.Ready, p.MergedAt = string(records.PRMerged), false, cmp.Or(p.MergedAt, stampOf(l.MergedAt))
		}
	}
	return p
}

// stampOf writes a time; nil if it is not known.
func stampOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}
