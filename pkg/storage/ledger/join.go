// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// The index of joins leads to tasks. A row is written with the first state that has the join, and stays for all later
// ones: a reader reads the task as of its time and decides by that. The index of IDs leads to observations.

// indexPage is how many records of an older store are indexed in one commit.
const indexPage = 500

// indexedKey has the time of the newest change whose rows are in the index, and indexVersion. The time differs from the newest change
// if a version without an index made it, after a downgrade. The version is absent in a store of a version
// without the index of IDs, and 1 in one without the rows of links that are not merged.
var indexedKey = []byte("uv")

// indexVersion says which rows the index has.
const indexVersion = 2

// indexedAt is the value of indexedKey after a change at a time.
func indexedAt(newest []byte) []byte { return append(bytes.Clone(newest), indexVersion) }

// joinPrefix is the start of the rows of a join.
func joinPrefix(namespace string, j usage.Join) []byte {
	sum := sha256.Sum256([]byte(j))
	return append(named('j', namespace), sum[:idLen]...)
}

// joinKey is the row of a join that leads to a task, given the task's key.
func joinKey(namespace string, j usage.Join, task []byte) []byte {
	return append(joinPrefix(namespace, j), bytes.TrimPrefix(task, named('t', namespace))...)
}

// byIDKey is the row that leads to an observation: its value is the key of the observation.
func byIDKey(id string) []byte { return append([]byte("ui"), idBytes(id)...) }

// ofLinkKey is where the links of a task are found.
func ofLinkKey(l *usage.Link) []byte { return append(named('k', l.TaskUID), l.ID...) }

// indexTask writes the rows of a state of a task.
func indexTask(b engine.Batch, t *usage.Task) error {
	var err error
	for _, k := range keysOfTask(t) {
		err = errors.Join(err, b.Set(k, nil))
	}
	return err
}

func keysOfTask(t *usage.Task) (keys [][]byte) {
	for _, j := range t.Joins() {
		keys = append(keys, joinKey(t.Namespace, j, taskKey(t.Namespace, t.CreatedAt, t.UID)))
	}
	return keys
}

// indexLink writes the rows of a state of a link. It leads to the link's task, which is recorded before its links.
func indexLink(e engine.Reader, b engine.Batch, link *usage.Link) error {
	keys, err := keysOfLink(e, link)
	for _, k := range keys {
		err = errors.Join(err, b.Set(k, []byte(link.Namespace)))
	}
	return err
}

func keysOfLink(e engine.Reader, link *usage.Link) ([][]byte, error) {
	keys := [][]byte{ofLinkKey(link)}
	task, ok, err := e.Get(taskOfKey(link.TaskUID))
	if err != nil || !ok {
		return keys, err
	}
	for _, j := range link.Joins() {
		keys = append(keys, joinKey(link.Namespace, j, task))
	}
	return keys, nil
}

// Indexer makes the index of a store of a version without one.
type Indexer struct{ *Ledger }

// Index makes the index, unless it is complete. Until then readers read all tasks.
func (l Indexer) Index(ctx context.Context) error {
	if l.indexed.Load() {
		return nil
	}
	err := l.indexAll(ctx, 'o', func(key, _ []byte) (string, [][]byte, error) {
		record := key[:max(0, len(key)-timeLen)]
		if len(record) < idLen {
			return "", nil, fmt.Errorf("corrupt key of the ledger %q", key)
		}
		return string(record), [][]byte{byIDKey(idText(record[len(record)-idLen:]))}, nil
	})
	if err == nil {
		err = l.indexAll(ctx, 't', func(key, value []byte) (string, [][]byte, error) {
			t, err := decodeTask(key, value)
			if err != nil {
				return "", nil, err
			}
			return "", keysOfTask(t), nil
		})
	}
	if err == nil {
		last := ""
		err = l.indexAll(ctx, 'l', func(key, value []byte) (string, [][]byte, error) {
			link, err := decodeLink(key, value)
			if err != nil {
				return "", nil, err
			}
			keys, err := keysOfLink(l.engine, link)
			if record := string(linkKey(link.Namespace, link.ID)); record != last { // the newest state comes first
				if last = record; link.State != usage.PRMerged {
					keys = append(keys, dueKey(link))
				}
			}
			return link.Namespace, keys, err
		})
	}
	if err == nil {
		err = l.commit(engine.Upkeep, func(b engine.Batch) error {
			l.indexed.Store(true)
			_, err := l.now(b)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("index the use of models: %w", err)
	}
	return nil
}

// indexAll writes the rows of all states of a kind, those of many states in one commit.
func (l Indexer) indexAll(ctx context.Context, kind byte, rowsOf func(key, value []byte) (string, [][]byte, error)) (err error) {
	it, err := l.engine.NewIter([]byte{'u', kind}, []byte{'u', kind + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; {
		rows := map[string]string{}
		for n := 0; ok && n < indexPage; n++ {
			value, keys, err := rowsOf(it.Key(), it.Value())
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			for _, k := range keys {
				rows[string(k)] = value
			}
			ok = it.Next()
		}
		err := l.commit(engine.Upkeep, func(b engine.Batch) error {
			var err error
			for k, v := range rows {
				err = errors.Join(err, b.Set([]byte(k), []byte(v)))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return it.Error()
}

// isIndexed reports whether the index has the rows of all changes, which is so as well if there are none yet.
func isIndexed(e engine.Reader) (bool, error) {
	newest, some, err := e.Get(timeKey)
	if err != nil || !some {
		return err == nil, err
	}
	v, ok, err := e.Get(indexedKey)
	return ok && bytes.Equal(v, indexedAt(newest)), err
}

// Indexed reports whether Joined finds all tasks.
func (v *view) Indexed() bool { return v.ledger.indexed.Load() }

// Joined yields the tasks that have a Join, or have had it.
func (v *view) Joined(j usage.Join) iter.Seq2[*usage.Task, error] {
	return func(yield func(*usage.Task, error) bool) {
		prefix := joinPrefix(v.namespace, j)
		rows, err := v.rows(prefix)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, row := range rows {
			key := append(named('t', v.namespace), row...)
			for t, err := range each(v, key, after(key), decodeTask, func(*usage.Task) bool { return true }) {
				if !yield(t, err) || err != nil {
					return
				}
			}
		}
	}
}

// linksOf yields the links of one task.
func (v *view) linksOf(uid string) iter.Seq2[*usage.Link, error] {
	return func(yield func(*usage.Link, error) bool) {
		ids, err := v.rows(named('k', uid))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, id := range ids {
			key := linkKey(v.namespace, string(id))
			for l, err := range each(v, key, after(key), decodeLink, func(l *usage.Link) bool { return l.TaskUID == uid }) {
				if !yield(l, err) || err != nil {
					return
				}
			}
		}
	}
}

// rows returns what follows a prefix in the keys that have it.
func (v *view) rows(prefix []byte) (all [][]byte, err error) {
	it, err := v.ledger.engine.NewIter(prefix, after(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, bytes.Clone(it.Key()[len(prefix):]))
	}
	return all, it.Error()
}
