// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// State holds the approvals derived from the events applied so far. The zero value is empty. Events of a
// stream must be applied in sequence order. The approvals that it returns are shared and must not be
// changed.
type State struct {
	approvals map[key]*entry
	last      int // place of the newest request
}

type key struct{ namespace, id string }

type entry struct {
	*v1alpha1.Approval
	place int
	asked string // resourceVersion of the event that requested it
}

// Fold returns the approvals derived from events, in the order in which they were requested. Events of one
// stream must be in sequence order.
func Fold(events []*v1alpha1.ExecutionEvent) []v1alpha1.Approval {
	var s State
	for _, e := range events {
		s.Apply(e)
	}
	return s.All()
}

// All returns the approvals in the order in which they were requested.
func (s *State) All() []v1alpha1.Approval {
	list := make([]v1alpha1.Approval, 0, len(s.approvals))
	s.Each(func(a *v1alpha1.Approval, _ string) { list = append(list, *a) })
	return list
}

// Each calls f with every approval, in the order in which they were requested, and with the resourceVersion
// of the event that requested it.
func (s *State) Each(f func(a *v1alpha1.Approval, asked string)) {
	entries := make([]*entry, 0, len(s.approvals))
	for _, e := range s.approvals {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.place, b.place) })
	for _, e := range entries {
		f(e.Approval, e.asked)
	}
}

// Get returns one approval, or nil.
func (s *State) Get(namespace, id string) *v1alpha1.Approval {
	if e := s.approvals[key{namespace, id}]; e != nil {
		return e.Approval
	}
	return nil
}

// Apply applies one event and returns its approval before and after it. Both are nil for an event that does
// not concern an approval. An event changes nothing if it names the UID of another task, repeats a request,
// or decides an approval that was not requested or is already decided. The outcome of an approved call only
// moves forward: from not_started to running, and from either to a final outcome.
func (s *State) Apply(e *v1alpha1.ExecutionEvent) (before, after *v1alpha1.Approval) {
	p, ok := parse(e)
	if !ok {
		return nil, nil
	}
	k := key{e.Namespace, p.ApprovalID}
	at := s.approvals[k]
	if at == nil {
		if e.Type != v1alpha1.EventApprovalRequested {
			return nil, nil
		}
		if s.approvals == nil {
			s.approvals = map[key]*entry{}
		}
		s.last++
		s.approvals[k] = &entry{requested(e, &p), s.last, e.ResourceVersion}
		return nil, s.approvals[k].Approval
	}
	before = at.Approval
	state := StateOf(e.Type)
	switch {
	case state != "" && before.Status.State == v1alpha1.ApprovalPending:
		at.Approval = decided(before, e, &p, state)
	case e.Type == v1alpha1.EventApprovalExecutionUpdated && before.Status.State == v1alpha1.ApprovalApproved && rank(p.Outcome) > rank(before.Status.ExecutionOutcome):
		a := before.DeepCopy()
		a.ResourceVersion = e.ResourceVersion
		a.Status.ExecutionOutcome, a.Status.ExecutionReason = p.Outcome, p.Reason
		at.Approval = a
	}
	return before, at.Approval
}

// Remove takes back an event that was removed from the log. The approval is removed with the event that
// requested it, which is the first of its events.
func (s *State) Remove(e *v1alpha1.ExecutionEvent) (before, after *v1alpha1.Approval) {
	p, ok := parse(e)
	if !ok {
		return nil, nil
	}
	k := key{e.Namespace, p.ApprovalID}
	at := s.approvals[k]
	if at == nil {
		return nil, nil
	}
	before = at.Approval
	if e.Type != v1alpha1.EventApprovalRequested || e.Seq != before.Status.RequestedSeq {
		return before, before
	}
	delete(s.approvals, k)
	return before, nil
}
