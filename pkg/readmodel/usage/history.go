// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"slices"

	records "github.com/platform-ai/platform/pkg/usage"
)

// subject is the issue or pull request that a work request is about.
type subject = records.Subject

// node is a task with what belongs to it.
type node struct {
	*records.Task
	links []*records.Link
	// works are the work requests that the task is part of.
	works []*work
	// used are its observations, the oldest first; read only if the task is selected.
	used []*records.Observation
	read bool
	// top is the task that an other request began with.
	top string
}

// work is a work request, or another request if its subject is empty.
type work struct {
	subject
	tasks []*node // the oldest first
}

func (w *work) first() *node { return w.tasks[0] }

// history is all tasks of a namespace, as of a time.
type history struct {
	tasks []*node // the oldest first
	byUID map[string]*node
	works map[subject]*work
	// alias maps a pull request to the code host's identity of it.
	alias map[subject]int64
}

// ours reports whether a record is about the namespace of the query, and not about an earlier one of its name.
func (q *Query) ours(namespaceUID string) bool {
	return namespaceUID == "" || q.uid == "" || namespaceUID == q.uid
}

// identity returns what is the same for all records about a pull request, also after its repository was renamed.
func (h *history) identity(l *records.Link) subject {
	return h.identityOf(records.Pull(l.Repository, l.Number), l.GithubID)
}

func (h *history) identityOf(s subject, id int64) subject {
	if id == 0 {
		id = h.alias[s]
	}
	if id != 0 {
		return subject{Kind: records.KindPullRequest, Number: id}
	}
	return s
}

// sources returns the tasks that a task inherits its requests from.
func (h *history) sources(n *node) []*node {
	var out []*node
	for _, uid := range []string{n.ParentTaskUID, n.ForkSourceUID} {
		if from := h.byUID[uid]; from != nil && from != n {
			out = append(out, from)
		}
	}
	return out
}

// assign finds the work requests of every task. A task inherits the issues of its parent, of the task that it is a fork
// of, and of the pull request that it reviews or repairs, which has those of the tasks that created or assisted it. What
// is found for one task may add to others, so this is repeated until nothing is added.
func (h *history) assign() {
	issues := make(map[*node][]subject, len(h.tasks))
	linked := map[subject][]subject{} // issues of pull requests
	for _, n := range h.tasks {
		if s, ok := n.Issue(); ok {
			issues[n] = []subject{s}
		}
	}
	for again := true; again; {
		again = false
		for _, n := range h.tasks {
			again = h.inherit(n, issues, linked) || again
		}
	}
	for _, n := range h.tasks {
		for _, s := range issues[n] {
			h.add(s, n)
		}
	}
	pulls := map[*node]subject{}
	for again := true; again; { // tasks are in the order of their creation, so this ends after the second time
		again = false
		for _, n := range h.tasks {
			if _, has := pulls[n]; has || len(issues[n]) > 0 {
				continue
			}
			if pr, ok := h.reviewed(n, pulls); ok {
				pulls[n], again = pr, true
			}
		}
	}
	for _, n := range h.tasks {
		if pr, ok := pulls[n]; ok {
			h.add(pr, n)
		}
	}
}

// inherit adds what follows for a task and for the pull requests that are linked with it, and reports whether anything
// was added.
func (h *history) inherit(n *node, issues map[*node][]subject, linked map[subject][]subject) (added bool) {
	if _, own := n.Issue(); !own {
		for _, from := range h.sources(n) {
			added = merge(issues, n, issues[from]) || added
		}
		if pr, ok := n.Pull(); ok {
			added = merge(issues, n, linked[h.identityOf(pr, 0)]) || added
		}
	}
	for _, l := range n.links {
		if l.Origin != records.OriginReviewOnly {
			added = merge(linked, h.identity(l), issues[n]) || added
		}
	}
	return added
}

// reviewed returns the pull request that a task, or the task it comes from, reviews or repairs.
func (h *history) reviewed(n *node, pulls map[*node]subject) (pr subject, ok bool) {
	pr, ok = n.Pull()
	for _, from := range h.sources(n) {
		if !ok {
			pr, ok = pulls[from]
		}
	}
	return pr, ok
}

// merge adds what is missing in a set, and reports whether anything was.
func merge[K comparable](sets map[K][]subject, of K, more []subject) bool {
	set, before := sets[of], len(sets[of])
	for _, s := range more {
		if !slices.Contains(set, s) {
			set = append(set, s)
		}
	}
	if len(set) > before {
		sets[of] = set
	}
	return len(set) > before
}

func (h *history) add(s subject, n *node) {
	w := h.works[s]
	if w == nil {
		w = &work{subject: s}
		h.works[s] = w
	}
	w.tasks = append(w.tasks, n)
	n.works = append(n.works, w)
}

// others returns the requests that are not work requests: each is a task with what it delegated and what was forked from
// that.
func (h *history) others() []*work {
	var all []*work
	byTop := map[string]*work{}
	for _, n := range h.tasks {
		if len(n.works) > 0 {
			continue
		}
		top := h.top(n)
		w := byTop[top]
		if w == nil {
			w = &work{}
			byTop[top], all = w, append(all, w)
		}
		w.tasks = append(w.tasks, n)
	}
	return all
}

// top returns the UID of the task that a request began with. Its record need not be retained.
func (h *history) top(n *node) string {
	var path []*node
	at, uid := n, n.UID
	for at != nil && at.top == "" && len(path) < len(h.tasks) {
		path = append(path, at)
		up := at.ParentTaskUID
		if up == "" {
			up = at.ForkSourceUID
		}
		if up == "" {
			break
		}
		uid, at = up, h.byUID[up]
	}
	if at != nil && at.top != "" {
		uid = at.top
	}
	for _, p := range path {
		p.top = uid
	}
	return uid
}
