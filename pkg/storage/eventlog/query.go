// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Query selects events, for List and Watch. Empty fields select all.
type Query struct {
	Namespace string
	Task      string
	Session   string
	// Root selects the events of a task and of all tasks below it. It needs a Namespace.
	Root     string
	Types    []v1alpha1.EventType     // any of them
	Severity []v1alpha1.EventSeverity // any of them
	// Name is the object name of one event.
	Name string
	// Match is called last, for conditions that no index covers. It must not keep or change the event. It
	// is not part of a continue token, so every page of a list must pass the same Match.
	Match func(*v1alpha1.ExecutionEvent) bool

	// The fields below are for List.

	// Revision is 0 for the newest state, or the state to read.
	Revision uint64
	// NotOlderThan makes Revision a lower bound, and the newest state is read.
	NotOlderThan bool
	// From is where the list begins, unless Continue is set.
	From Position
	// Limit bounds the items of a page; 0 is no bound. A page may be short and still have a Continue.
	Limit int
	// Bytes bounds the size of a page, which has at least one event; 0 is no bound. See EventBytes.
	Bytes    int64
	Continue string
}

// Position is a place in a list: at or after a revision of a namespace. The namespace is empty in a list of one.
type Position struct {
	Namespace string
	Revision  uint64
}

// filter is a query in the terms of the store.
type filter struct {
	ns, task, session, root string

	uid               types.UID // if set, only the events of this stream
	seq               int64     // if set, only the event with this seq
	types, severities codeSet
	match             func(*v1alpha1.ExecutionEvent) bool
	text              *needle // of pages; nil for no search
	none              bool    // nothing can match
}

func newFilter(q *Query) (*filter, error) {
	f := &filter{ns: q.Namespace, task: q.Task, session: q.Session, root: q.Root, match: q.Match}
	if q.Name != "" {
		task, seq, err := event.ParseName(q.Name)
		f.none = err != nil || f.task != "" && f.task != task
		f.task, f.seq = task, seq
	}
	if !validName(f.ns) || !validName(f.task) || !validName(f.session) || !validName(f.root) {
		f.none = true
	}
	for _, t := range q.Types {
		code, ok := typeCodes[t]
		if !ok {
			return nil, &event.FieldError{Field: "type", Value: string(t), Rule: "is not an event type"}
		}
		f.types |= 1 << code
	}
	for _, s := range q.Severity {
		code, ok := severityCode(s)
		if !ok {
			return nil, &event.FieldError{Field: "severity", Value: string(s), Rule: "is not a severity"}
		}
		f.severities |= 1 << code
	}
	return f, nil
}

// takes reports whether the filter selects an event, ignoring match.
func (f *filter) takes(p *posting, id *identity, session string) bool {
	return f.takesCodes(p) && f.takesStream(id) && (f.session == "" || f.session == session)
}

func (f *filter) takesCodes(p *posting) bool {
	return f.types.has(p.typ) && f.severities.has(p.sev) && (f.seq == 0 || f.seq == p.seq)
}

func (f *filter) takesStream(id *identity) bool {
	return (f.uid == "" || f.uid == id.uid) && (f.task == "" || f.task == id.task) && (f.ns == "" || f.ns == id.ns) && (f.root == "" || f.root == id.rootTask())
}

// takesDeletion reports whether removed events may have matched the filter.
func (f *filter) takesDeletion(d *deletion) bool {
	return f.takesStream(&d.identity) && (f.session == "" || d.mixed || f.session == d.session) && (f.seq == 0 || d.has(f.seq))
}

// takesEvent reports whether match selects the whole event. It is checked last.
func (f *filter) takesEvent(e *v1alpha1.ExecutionEvent) bool {
	return (f.session == "" || f.session == e.SessionName) && (f.match == nil || f.match(e)) && f.text.in(e)
}

// topics returns the narrowest topics that cover this filter.
func (f *filter) topics() []topic {
	switch {
	case f.none:
		return nil
	case f.ns == "":
		return []topic{{kind: topicAll}}
	case f.task != "":
		return []topic{{topicTask, f.ns, f.task}}
	case f.root != "":
		return []topic{{topicTree, f.ns, f.root}}
	case f.session != "":
		return []topic{{topicSession, f.ns, f.session}, {topicSessions, f.ns, ""}}
	}
	return []topic{{topicNamespace, f.ns, ""}}
}

// maxFacets is how many index ranges are merged. A query of more types walks all events of its scope
// instead.
const maxFacets = 8

// facets returns the indexes to merge for this filter. The index of all events is one of them.
func (f *filter) facets() []facet {
	if codes := f.types.codes(); len(codes) > 0 && len(codes) <= maxFacets {
		return codes
	}
	codes := f.severities.codes()
	if len(codes) == 0 || len(codes) == len(severityNames) {
		return []facet{facetAll}
	}
	for i := range codes {
		codes[i] += facetSeverity
	}
	return codes
}

// hash identifies the query in continue tokens.
func (f *filter) hash() uint32 {
	h := fnv.New32a()
	if f.root != "" { // tokens of other queries stay as they were
		fmt.Fprintf(h, "%q ", f.root) //nolint:errcheck // a hash never fails
	}
	fmt.Fprintf(h, "%q %q %q %d %x %x", f.ns, f.task, f.session, f.seq, uint64(f.types), uint64(f.severities)) //nolint:errcheck // a hash never fails
	return h.Sum32()
}
