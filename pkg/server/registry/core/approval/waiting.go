// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

const (
	// maxWaiting is of how many namespaces the pending approvals are remembered, at about 100 bytes each.
	maxWaiting = 256
	// maxSettled is how many approvals that are no longer pending a namespace remembers, for lists that began before.
	maxSettled = 4096
)

// waiting remembers where the requests of pending approvals are, by namespace, so that a page of pending ones does not look at all
// that were ever decided. What it remembers are hints: each request and its state are read again.
type waiting struct {
	mu         sync.Mutex
	namespaces *lru.Cache // *queue by name
}

func newWaiting() *waiting { return &waiting{namespaces: lru.New(maxWaiting)} }

func (w *waiting) of(namespace string) *queue {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found, ok := w.namespaces.Get(namespace); ok {
		return found.(*queue) //nolint:forcetypeassert // nothing else is kept
	}
	q := &queue{at: map[asking]uint64{}}
	w.namespaces.Add(namespace, q)
	return q
}

// asking identifies an approval in a namespace, whose tasks may have had the same name.
type asking struct {
	stream types.UID
	id     string
}

// queue has the requests of a namespace.
type queue struct {
	mu sync.Mutex
	// upTo is the revision whose state at has, and floor that from which on settled is complete.
	upTo, floor uint64
	// at has the revisions of the requests that are pending.
	at map[asking]uint64
	// settled are those that were decided, the oldest decision first.
	settled []decision
}

// decision is a request that was decided, by the revisions of both events.
type decision struct{ asked, decided uint64 }

// catchUp reads the events of approvals since the last call.
func (w *queue) catchUp(ctx context.Context, log *eventlog.Log, q eventlog.Query) error {
	read := eventlog.Query{Namespace: q.Namespace, Revision: q.Revision, NotOlderThan: true, From: eventlog.Position{Namespace: q.Namespace, Revision: w.upTo + 1}, Limit: chunk}
	for _, t := range approval.EventTypes() {
		if approval.PendingChange(t) != 0 {
			read.Types = append(read.Types, t)
		}
	}
	for {
		page, err := log.List(ctx, read)
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			w.apply(e)
		}
		if page.Continue == "" {
			w.upTo = max(w.upTo, page.Revision)
			return nil
		}
		read.Continue = page.Continue
	}
}

func (w *queue) apply(e *v1alpha1.ExecutionEvent) {
	k := asking{streamUID(e), approval.IDOf(e)}
	asked, pending := w.at[k]
	switch rev := number(e.ResourceVersion); {
	case k.id == "" || rev <= w.upTo:
	case e.Type == v1alpha1.EventApprovalRequested && !pending:
		w.at[k] = rev
	case e.Type != v1alpha1.EventApprovalRequested && pending:
		delete(w.at, k)
		w.settled = append(w.settled, decision{asked, rev})
		if n := len(w.settled) - maxSettled; n > 0 {
			w.floor = w.settled[n-1].decided
			w.settled = slices.Delete(w.settled, 0, n)
		}
	}
}

// from returns the revisions of the requests, at or after one, that are pending in the state at rev.
func (w *queue) from(after, rev uint64) []uint64 {
	var all []uint64
	for _, asked := range w.at {
		if asked >= after && asked <= rev {
			all = append(all, asked)
		}
	}
	for _, s := range w.settled {
		if s.asked >= after && s.asked <= rev && s.decided > rev {
			all = append(all, s.asked)
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // an event that is read again after an error is settled twice
}

// forget removes a request that is gone with its task.
func (w *queue) forget(asked uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.at, func(_ asking, at uint64) bool { return at == asked })
}

// requests returns a func that reads pages of requests which a selection may take: all of them, or, of a namespace's pending ones,
// those.
func (v *view) requests(s *selection) func(context.Context, eventlog.Query) (*eventlog.Page, error) {
	if state, ok := s.fields.RequiresExactMatch(fieldState); !ok || state != string(v1alpha1.ApprovalPending) || s.namespace == "" || s.task != "" || s.name != "" {
		return v.log.List
	}
	w, all := v.waiting.of(s.namespace), false
	return func(ctx context.Context, q eventlog.Query) (*eventlog.Page, error) {
		if all {
			return v.log.List(ctx, q)
		}
		asked, rev, err := w.page(ctx, v.log, q)
		if err != nil {
			return nil, err
		}
		if rev == 0 {
			if all = true; q.Continue != "" {
				q.From, q.Continue = eventlog.Position{Namespace: q.Namespace, Revision: number(q.Continue)}, ""
			}
			return v.log.List(ctx, q)
		}
		page, most := &eventlog.Page{Revision: rev}, q.Limit-countAhead+1 // one more shows whether the page is the last one
		if len(asked) > most {
			page.Continue, asked = strconv.FormatUint(asked[most], 10), asked[:most]
		}
		for _, at := range asked {
			one, err := v.log.List(ctx, eventlog.Query{
				Namespace: q.Namespace, Types: q.Types, Revision: rev, From: eventlog.Position{Namespace: q.Namespace, Revision: at}, Limit: 1,
			})
			if err != nil {
				return nil, err
			}
			if len(one.Items) == 1 && number(one.Items[0].ResourceVersion) == at {
				page.Items = append(page.Items, one.Items[0])
			} else {
				w.forget(at)
			}
		}
		return page, nil
	}
}

// page returns where the requests that a query selects are, and the revision of their state; 0 if it is no longer known.
func (w *queue) page(ctx context.Context, log *eventlog.Log, q eventlog.Query) (asked []uint64, rev uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := q.From.Revision
	if q.Continue == "" {
		if err := w.catchUp(ctx, log, q); err != nil {
			return nil, 0, err
		}
	} else {
		from = number(q.Continue)
	}
	rev = q.Revision
	if rev == 0 || q.NotOlderThan {
		rev = w.upTo
	}
	if rev < w.floor || rev > w.upTo {
		return nil, 0, nil
	}
	return w.from(from, rev), rev, nil
}
