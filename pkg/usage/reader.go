// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"iter"
	"time"
)

// Reader reads the ledger. The caller has authorized the request.
type Reader interface {
	// At returns the records of a namespace as of a time. Whatever is recorded after the call is later than asOf, even
	// if asOf is slightly in the future, so each View of one asOf shows the same, until retention removes records between
	// two Views. The caller closes it.
	At(ctx context.Context, namespace string, asOf time.Time) (View, error)
}

// View shows the records of one namespace as of one time: each record in its newest state that was recorded at that
// time or before, and none that was first recorded later. It is for one goroutine. An iteration stops after its first
// error. Retention removes nothing while the view is open, so the caller closes it soon. Records are those of every
// namespace that ever had the name; the caller leaves out those with another NamespaceUID, where it is set.
type View interface {
	// Tasks yields the tasks that were created in the period, by creation and UID.
	Tasks(p Period) iter.Seq2[*Task, error]
	// Task returns one task; nil if it is not known.
	Task(uid string) (*Task, error)
	// Observations yields the observations that started in the period, those without a task included, by start and ID.
	// An observation of a task may start after the period in which the task was created.
	Observations(p Period) iter.Seq2[*Observation, error]
	// Observation returns one observation by its ID; nil if it is not known.
	Observation(id string) (*Observation, error)
	// OfTask yields the observations of one task, by start and ID.
	OfTask(uid string) iter.Seq2[*Observation, error]
	// Joined yields the tasks that have a Join, or have had it, or whose links do, in no particular order. It may be called only
	// if Indexed reports true.
	Joined(j Join) iter.Seq2[*Task, error]
	// Indexed reports whether Joined finds all tasks. Otherwise the index of an older store is being made.
	Indexed() bool
	// Links yields the links of pull requests with a task, or with all tasks if uid is empty.
	Links(uid string) iter.Seq2[*Link, error]
	// Link returns one link by its ID; nil if it is not known.
	Link(id string) (*Link, error)
	// Unmerged yields the links with pull requests of a repository, OWNER/REPOSITORY, that are not known to be merged: those that were
	// observed the longest time ago come first.
	Unmerged(repository string) iter.Seq2[*Link, error]
	// RetainedSince is the time from which records are complete: older ones have been removed or were never made. It is
	// zero if nothing was removed.
	RetainedSince() time.Time
	// Close releases the view.
	Close()
}

// Period is a time from From until before Until. A zero From or Until is open.
type Period struct{ From, Until time.Time }

// Has reports whether a time is in the period.
func (p Period) Has(t time.Time) bool {
	return !t.Before(p.From) && (p.Until.IsZero() || t.Before(p.Until))
}
