// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// Links that are not known to be merged have a row by their repository and the time of their last observation, so that whoever looks at
// them again reads those that are due, and not all. A row whose link was observed again is passed over.

// ChangeLink records what decide makes of a link: it gets the link as it was recorded last, nil if it is not known, and records, and returns
// the next state, or nil to record nothing. It runs while others wait, so it must be quick. The next state has the ID and the namespace.
func (l *Ledger) ChangeLink(ctx context.Context, namespace, id string, decide func(v usage.View, old *usage.Link) (*usage.Link, error)) error {
	lock := &l.linking[crc32.ChecksumIEEE([]byte(id))%uint32(len(l.linking))]
	lock.Lock() // a change does not see those that are not committed yet
	defer lock.Unlock()
	return l.commit(engine.Upkeep, func(b engine.Batch) error {
		v := &view{ctx: ctx, ledger: l, namespace: namespace, asOf: time.Unix(0, l.last), release: func() {}}
		old, err := v.Link(id)
		if err != nil {
			return err
		}
		link, err := decide(v, old)
		if err != nil || link == nil {
			return err
		}
		at, err := l.now(b)
		link.RecordedAt, link.NamespaceUID = at, l.namespaceUID(namespace)
		if old != nil {
			err = errors.Join(err, b.Delete(dueKey(old)))
		}
		if link.State != usage.PRMerged {
			err = errors.Join(err, b.Set(dueKey(link), nil))
		}
		key := appendNewest(linkKey(namespace, id), at)
		return errors.Join(err, b.Set(key, encode(func(c *coder) { c.link(link) })), indexLink(l.engine, b, link))
	})
}

// Link returns one link.
func (v *view) Link(id string) (found *usage.Link, err error) {
	key := linkKey(v.namespace, id)
	err = v.newest(key, after(key), func(key, value []byte) (bool, error) {
		found, err = decodeLink(key, value)
		return false, err
	})
	return found, err
}

// Unmerged yields the links of a repository that are not known to be merged.
func (v *view) Unmerged(repository string) iter.Seq2[*usage.Link, error] {
	if !v.Indexed() {
		return v.unmergedOfAll(repository)
	}
	return func(yield func(*usage.Link, error) bool) {
		prefix := duePrefix(v.namespace, repository)
		it, err := v.ledger.engine.NewIter(prefix, after(prefix))
		if err != nil {
			yield(nil, err)
			return
		}
		stopped := false
		for ok := it.First(); ok && !stopped; ok = it.Next() {
			row := it.Key()
			l, err := v.Link(string(row[min(len(row), len(prefix)+timeLen):]))
			switch {
			case err != nil:
				stopped = true
				yield(nil, err)
			case l != nil && l.State != usage.PRMerged && bytes.Equal(row, dueKey(l)):
				stopped = !yield(l, nil)
			}
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// unmergedOfAll is Unmerged while the index of an older store is being made.
func (v *view) unmergedOfAll(repository string) iter.Seq2[*usage.Link, error] {
	return func(yield func(*usage.Link, error) bool) {
		var all []*usage.Link
		for l, err := range v.Links("") {
			if err != nil {
				yield(nil, err)
				return
			}
			if l.State != usage.PRMerged && strings.EqualFold(l.Repository, repository) {
				all = append(all, l)
			}
		}
		slices.SortFunc(all, func(a, b *usage.Link) int { return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), cmp.Compare(a.ID, b.ID)) })
		for _, l := range all {
			if !yield(l, nil) {
				return
			}
		}
	}
}
