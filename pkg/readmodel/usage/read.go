// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
)

// readHistory reads tasks and links, and finds out which work requests they belong to. A report about one work request
// needs only the records that are joined with it; all others need every task and link of the namespace.
func (q *Query) readHistory(v records.View) (*history, error) {
	if q.spec.Mode == v1alpha1.UsageOfWork && v.Indexed() {
		h, err := q.readWork(v)
		if err != nil || h.has(q.spec.WorkID, q.uid) {
			return h, err
		}
		// A task that was recorded while the identity of its namespace was not known is not found by the ID of its request.
	}
	h := newHistory()
	for t, err := range v.Tasks(records.Period{}) {
		if err != nil {
			return nil, err
		}
		if q.ours(t.NamespaceUID) {
			h.addTask(t)
		}
	}
	var links []*records.Link
	for l, err := range v.Links("") {
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	h.addLinks(q, links)
	h.assign()
	return h, nil
}

// readWork reads the tasks and links that are joined with the work request, directly or through others.
func (q *Query) readWork(v records.View) (*history, error) {
	w := joined{q: q, view: v, history: newHistory(), seen: map[records.Join]bool{}}
	w.follow([]records.Join{records.JoinWork(q.spec.WorkID)})
	for len(w.next) > 0 {
		j := w.next[len(w.next)-1]
		w.next = w.next[:len(w.next)-1]
		for t, err := range v.Joined(j) {
			if err == nil && q.ours(t.NamespaceUID) {
				err = w.add(t)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(w.history.tasks, func(a, b *node) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.UID, b.UID)) })
	slices.SortFunc(w.links, func(a, b *records.Link) int { return strings.Compare(a.ID, b.ID) })
	w.history.addLinks(q, w.links)
	w.history.assign()
	return w.history, nil
}

// joined are the records that a work request leads to.
type joined struct {
	q       *Query
	view    records.View
	history *history
	links   []*records.Link
	next    []records.Join // to follow
	seen    map[records.Join]bool
}

// follow adds joins that are to be followed, once each.
func (w *joined) follow(more []records.Join) {
	for _, j := range more {
		if !w.seen[j] {
			w.seen[j], w.next = true, append(w.next, j)
		}
	}
}

// add adds a task, and its links when it is new.
func (w *joined) add(t *records.Task) error {
	known := w.history.byUID[t.UID] != nil
	w.history.addTask(t)
	w.follow(t.Joins())
	if known {
		return nil
	}
	for l, err := range w.view.Links(t.UID) {
		if err != nil {
			return err
		}
		if w.q.ours(l.NamespaceUID) {
			w.links = append(w.links, l)
			w.follow(l.Joins())
		}
	}
	return nil
}

func newHistory() *history {
	return &history{byUID: map[string]*node{}, works: map[subject]*work{}, alias: map[subject]int64{}}
}

// has reports whether there is a work request with an ID.
func (h *history) has(id, uid string) bool {
	for s := range h.works {
		if s.ID(uid) == id {
			return true
		}
	}
	return false
}

// addTask adds a task. An earlier version recorded the creation of a task with its nanoseconds, and its later states
// without, so there may be two records of one task; the newer one counts.
func (h *history) addTask(t *records.Task) {
	n := h.byUID[t.UID]
	switch {
	case n == nil:
		n = &node{Task: t}
		h.tasks, h.byUID[t.UID] = append(h.tasks, n), n
	case n.ObservedAt.Before(t.ObservedAt):
		n.Task = t
	}
}

// addLinks adds the links of the tasks, in the order of their IDs.
func (h *history) addLinks(q *Query, links []*records.Link) {
	for _, l := range links {
		if n := h.byUID[l.TaskUID]; n != nil && q.ours(l.NamespaceUID) {
			n.links = append(n.links, l)
			if l.GithubID != 0 {
				h.alias[records.Pull(l.Repository, l.Number)] = l.GithubID
			}
		}
	}
}
