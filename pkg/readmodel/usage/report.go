// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
)

// Source is what reports are made from.
type Source struct {
	View records.View
	// NamespaceUID is the identity of the namespace.
	NamespaceUID string
	Prices       records.Prices
	// Gateway reports whether the caller may see tasks of a Gateway.
	Gateway func(name string) (bool, error)
}

// report is one report in the making.
type report struct {
	*Query
	Source
	history *history
	// issues, pulls and others are the requests that were selected, and loose the usage without a request.
	issues, pulls, others []*work
	loose                 []*node
	records               int
	gateways              map[string]bool
}

// Report makes the report.
func (q *Query) Report(s Source) (*v1alpha1.UsageReportStatus, error) {
	q.uid = s.NamespaceUID
	r := &report{Query: q, Source: s, gateways: map[string]bool{}}
	var err error
	if r.history, err = q.readHistory(s.View); err != nil {
		return nil, err
	}
	if err := r.choose(); err != nil {
		return nil, err
	}
	out := &v1alpha1.UsageReportStatus{Selection: q.selection()}
	if since := s.View.RetainedSince(); !since.IsZero() {
		out.RetainedSince = stamp(since)
	}
	switch q.spec.Mode {
	case v1alpha1.UsageOfWork:
		err = r.work(out)
	case v1alpha1.UsageOther:
		out.Other, err = r.other(v1alpha1.UsageCategory(q.spec.Category), true)
	default:
		err = r.summary(out)
	}
	if err == nil && q.spec.By != "" {
		out.Breakdown, err = r.breakdown()
	}
	return out, err
}

// choose selects requests.
func (r *report) choose() error {
	kind := v1alpha1.UsageKind(r.spec.Kind)
	category := v1alpha1.UsageCategory(r.spec.Category)
	for _, w := range r.history.works {
		switch {
		case kind != "" && v1alpha1.UsageKind(w.Kind) != kind, r.spec.Repository != "" && w.Repository != r.spec.Repository:
		case r.spec.Mode == v1alpha1.UsageOfWork && w.ID(r.uid) != r.spec.WorkID:
		case r.spec.Mode == v1alpha1.UsageOther && (category != v1alpha1.UsageReviewOnly || w.Kind != records.KindPullRequest):
		case w.Kind == records.KindIssue:
			r.issues = append(r.issues, w)
		default:
			r.pulls = append(r.pulls, w)
		}
	}
	everything := kind == "" && r.spec.Mode != v1alpha1.UsageOfWork
	if everything && (r.spec.Mode == v1alpha1.UsageSummary || category == v1alpha1.UsageOtherRequests) {
		for _, w := range r.history.others() {
			if r.spec.Repository == "" || strings.EqualFold(w.first().Repository, r.spec.Repository) {
				r.others = append(r.others, w)
			}
		}
	}
	for _, list := range []*[]*work{&r.issues, &r.pulls, &r.others} {
		if err := r.narrow(list); err != nil {
			return err
		}
	}
	if everything && r.spec.Repository == "" && (r.spec.Mode == v1alpha1.UsageSummary || category == v1alpha1.UsageUnassociated) {
		return r.readLoose()
	}
	return nil
}

// narrow leaves out requests of other periods and other models, and those that the caller may not see, and reads the
// observations of the rest. The newest request comes first then.
func (r *report) narrow(list *[]*work) error {
	kept := (*list)[:0]
	for _, w := range *list {
		if !r.period.Has(w.first().CreatedAt) {
			continue
		}
		visible, err := r.visible(w)
		if err != nil {
			return err
		}
		if visible {
			kept = append(kept, w)
		}
	}
	for _, w := range kept {
		for _, n := range w.tasks {
			if err := r.observe(n); err != nil {
				return err
			}
		}
	}
	if r.spec.Model != "" {
		kept = slices.DeleteFunc(kept, func(w *work) bool { return !slices.Contains(w.models(), r.spec.Model) })
	}
	slices.SortFunc(kept, func(a, b *work) int {
		return cmp.Or(b.first().CreatedAt.Compare(a.first().CreatedAt), strings.Compare(a.Repository, b.Repository), cmp.Compare(a.Number, b.Number),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.first().UID, b.first().UID))
	})
	*list = kept
	return nil
}

// visible reports whether the caller may see every task of a request.
func (r *report) visible(w *work) (bool, error) {
	for _, n := range w.tasks {
		name := n.GatewayOwner
		if name == "" {
			continue
		}
		may, known := r.gateways[name]
		if !known {
			var err error
			if may, err = r.Gateway(name); err != nil {
				return false, err
			}
			r.gateways[name] = may
		}
		if !may {
			return false, nil
		}
	}
	return true, nil
}

// count counts a record that was read.
func (r *report) count(n int) error {
	if r.records += n; r.records > MaxRecords {
		return ErrTooMany
	}
	return nil
}

// observe reads the observations of a task, once.
func (r *report) observe(n *node) error {
	if n.read {
		return nil
	}
	n.read = true
	if err := r.count(1 + len(n.links)); err != nil {
		return err
	}
	for o, err := range r.View.OfTask(n.UID) {
		if err != nil {
			return err
		}
		if !r.ours(o.NamespaceUID) || o.Status == records.StatusUnattributed {
			continue
		}
		if err := r.count(1); err != nil {
			return err
		}
		n.used = append(n.used, r.Prices.Believed(o))
	}
	return nil
}

// readLoose reads the usage without a request. It has one row for each task whose counter has no baseline, for each
// session, and for each other request to a model.
func (r *report) readLoose() error {
	rows := map[[2]string]*node{}
	for o, err := range r.View.Observations(r.period) {
		if err != nil {
			return err
		}
		task := r.history.byUID[o.TaskUID]
		switch {
		case !r.ours(o.NamespaceUID), task != nil && o.Status != records.StatusUnattributed:
			continue
		case r.spec.Model != "" && o.Model != r.spec.Model:
			continue
		}
		if task != nil {
			if may, err := r.visible(&work{tasks: []*node{task}}); err != nil || !may {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := r.count(1); err != nil {
			return err
		}
		key := rowOf(o)
		n := rows[key]
		if n == nil {
			n = &node{Task: &records.Task{
				Namespace: r.namespace, NamespaceUID: o.NamespaceUID, UID: o.TaskUID, Name: o.TaskName, SessionName: o.SessionName, CreatedAt: o.StartedAt,
			}}
			if task != nil {
				n.Task = task.Task
			}
			rows[key], r.loose = n, append(r.loose, n)
		}
		n.used = append(n.used, r.Prices.Believed(o))
	}
	return nil
}

// rowOf returns the row of an observation without a request.
func rowOf(o *records.Observation) [2]string {
	switch {
	case o.TaskUID != "":
		return [2]string{"task", o.TaskUID}
	case o.SessionName != "":
		return [2]string{"session", o.SessionName}
	}
	return [2]string{"request", o.ID}
}

// summary fills in the report of mode summary.
func (r *report) summary(out *v1alpha1.UsageReportStatus) error {
	total, err := r.sumUp(r.issues)
	if err != nil {
		return err
	}
	out.Summary, out.Teams = total, []v1alpha1.UsageTeam{{Namespace: r.namespace, Summary: *total}}
	listed := slices.Concat(r.issues, r.pulls)
	slices.SortStableFunc(listed, func(a, b *work) int { return b.first().CreatedAt.Compare(a.first().CreatedAt) })
	listed, out.Page = page(r.Query, listed)
	out.Works = []v1alpha1.UsageWork{}
	for _, w := range listed {
		row, err := r.show(w)
		if err != nil {
			return err
		}
		out.Works = append(out.Works, *row)
	}
	for _, c := range categories() {
		o, err := r.other(c, false)
		if err != nil {
			return err
		}
		out.OtherWork = append(out.OtherWork, *o)
	}
	return nil
}

// work fills in the report of mode work.
func (r *report) work(out *v1alpha1.UsageReportStatus) error {
	found := slices.Concat(r.issues, r.pulls)
	if len(found) == 0 {
		return fmt.Errorf("%w: no work request %q in the selection", ErrNotFound, r.spec.WorkID)
	}
	w := found[0]
	var err error
	if out.Work, err = r.show(w); err != nil {
		return err
	}
	if r.spec.Limit == nil {
		r.limit = max(len(w.tasks), 1)
	}
	var tasks []*node
	tasks, out.Page = page(r.Query, w.tasks)
	for _, n := range tasks {
		t, err := r.task(n, out.Work.ID)
		if err != nil {
			return err
		}
		out.Work.Tasks = append(out.Work.Tasks, *t)
	}
	out.Work.PullRequests = r.pullRequests(w.tasks)
	return nil
}

// tasksOf returns the tasks of requests, each once.
func tasksOf(works []*work) []*node {
	var all []*node
	seen := map[*node]bool{}
	for _, w := range works {
		for _, n := range w.tasks {
			if !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	return all
}

// other returns a category of other usage, with a page of its tasks if these are wanted.
func (r *report) other(c v1alpha1.UsageCategory, tasks bool) (*v1alpha1.UsageOtherWork, error) {
	out := &v1alpha1.UsageOtherWork{Category: c}
	var all []*node
	switch c {
	case v1alpha1.UsageReviewOnly:
		out.Explanation = "Reviews and repairs of pull requests that no issue request created or assisted."
		all = tasksOf(r.pulls)
	case v1alpha1.UsageOtherRequests:
		out.Explanation = "Tasks that belong to no issue and no pull request, with what they delegated."
		all = tasksOf(r.others)
	default:
		out.Explanation = "Usage without a task, such as that of chats and of the vendors' APIs, and first totals of counters without a baseline."
		all = slices.Clone(r.loose)
	}
	s, err := r.sum(all)
	if err != nil {
		return nil, err
	}
	out.Usage, out.TaskCount = s.totals(), int64(len(all))
	if !tasks {
		return out, nil
	}
	slices.SortStableFunc(all, func(a, b *node) int { return b.CreatedAt.Compare(a.CreatedAt) })
	all, out.Page = page(r.Query, all)
	out.Tasks = []v1alpha1.UsageTask{}
	for _, n := range all {
		t, err := r.task(n, workID(r.uid, n))
		if err != nil {
			return nil, err
		}
		out.Tasks = append(out.Tasks, *t)
	}
	return out, nil
}

// workID returns the ID of the only work request of a task; empty if there is none.
func workID(uid string, n *node) string {
	if len(n.works) != 1 {
		return ""
	}
	return n.works[0].ID(uid)
}

// breakdown returns the usage of all that was selected, by day, model or agent.
func (r *report) breakdown() ([]v1alpha1.UsageBreakdown, error) {
	sums := map[string]*sum{}
	for _, n := range slices.Concat(tasksOf(slices.Concat(r.issues, r.pulls, r.others)), r.loose) {
		for _, o := range n.used {
			name := n.Agent
			switch r.spec.By {
			case v1alpha1.UsageByDay:
				name = o.StartedAt.UTC().Format("2006-01-02")
			case v1alpha1.UsageByModel:
				name = o.Model
			}
			if sums[name] == nil {
				sums[name] = &sum{prices: r.Prices}
			}
			if err := sums[name].add(o); err != nil {
				return nil, err
			}
		}
	}
	out := []v1alpha1.UsageBreakdown{}
	for name, s := range sums {
		out = append(out, v1alpha1.UsageBreakdown{Name: name, Usage: s.totals()})
	}
	slices.SortFunc(out, func(a, b v1alpha1.UsageBreakdown) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
