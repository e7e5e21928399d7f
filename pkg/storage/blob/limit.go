// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"encoding/binary"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Limits bound what is stored; 0 means no limit. MaxLogBytes bounds the log of each owner in addition.
type Limits struct {
	// Files is how many files an owner may have, and Bytes is their maximum total size.
	Files, Bytes int64
	// LogRate and FileRate are how many bytes of log and of files an owner may write per second, and NamespaceRate how many
	// of both all owners of a namespace may write together. A burst may use 16 seconds' worth at once.
	LogRate, FileRate, NamespaceRate int64
	// NamespaceBytes bounds all files and logs of a namespace together. Content stored before it was counted does not count.
	NamespaceBytes int64
}

const (
	// rateNames is how many rates are remembered.
	rateNames = 16384
	// fileCost is what a file counts towards a rate besides its bytes, so that empty ones count as well.
	fileCost = 400
)

// checkLimits refuses a file for which its owner has no room, and returns the size of the file that it
// replaces. It counts the owner's files each time, because there are few.
func (s *Store) checkLimits(uid types.UID, name string, size int64) (replaced int64, err error) {
	files, err := s.files(uid)
	if err != nil {
		return 0, err
	}
	var count, held int64
	for _, f := range files {
		if f.Name == name {
			replaced = f.Size
			continue
		}
		count, held = count+1, held+f.Size
	}
	switch l := s.limits; {
	case l.Files > 0 && count+1 > l.Files:
		return 0, &quota.LimitError{Limit: "number of artifacts", Of: quota.OfTask, Used: count, Asked: 1, Most: l.Files}
	case l.Bytes > 0 && held+size > l.Bytes:
		return 0, &quota.LimitError{Limit: "bytes of result and artifacts", Of: quota.OfTask, Used: held, Asked: size, Most: l.Bytes}
	}
	return replaced, nil
}

// change describes how a batch changes the bytes of an owner.
type change struct {
	need  engine.Need
	ns    string // the namespace in which the owner counts, if it is not counted yet
	uid   types.UID
	bytes int64 // the increase in bytes
	all   bool  // everything of the owner is removed
}

// write applies one synced batch with the change of the total. The caller holds the owner's lock.
func (s *Store) write(ctx context.Context, c change, fill func(engine.Batch) error) error {
	held, ns, err := s.held(c.uid)
	if err != nil {
		return err
	}
	if ns == "" {
		ns = c.ns
	}
	next := max(0, held+c.bytes) // the replaced file may not have been counted
	if c.all {
		next = 0
	}
	b, err := owned.NewBatch(ctx, s.engine, c.need, fill)
	if err != nil {
		return err
	}
	if !c.all && next != held {
		row := binary.BigEndian.AppendUint64(nil, uint64(next))
		if err := b.Set(space.Key(c.uid, kindHeld), append(row, ns...)); err != nil {
			b.Discard()
			return err
		}
	}
	wait, err := s.apply(b, ns, next-held)
	if err != nil {
		return err
	}
	return wait()
}

// apply adds n bytes to the total of a namespace and makes the batch visible, or refuses if there is no room.
func (s *Store) apply(b engine.Batch, ns string, n int64) (wait func() error, err error) {
	s.order.Lock()
	defer s.order.Unlock()
	if n == 0 {
		return s.engine.ApplyInOrder(b)
	}
	held, err := s.totals.Held(ns)
	if most := s.limits.NamespaceBytes; err == nil && n > 0 && most > 0 && held+n > most {
		err = &quota.LimitError{Limit: "bytes of results, artifacts and logs", Of: quota.OfNamespace(ns), Used: held, Asked: n, Most: most}
	}
	if err == nil {
		err = s.totals.Add(b, ns, n)
	}
	if err != nil {
		b.Discard()
		return nil, err
	}
	return s.engine.ApplyInOrder(b)
}

// held returns the owner's bytes in the total of its namespace. ns is empty if nothing of the owner was counted.
func (s *Store) held(uid types.UID) (held int64, ns string, err error) {
	key := space.Key(uid, kindHeld)
	row, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return 0, "", err
	}
	if len(row) < 8 {
		return 0, "", &CorruptError{bytes.Clone(key)}
	}
	return int64(binary.BigEndian.Uint64(row)), string(row[8:]), nil
}

// checkLogRate refuses log data that exceeds the rate of its owner or namespace.
func (s *Store) checkLogRate(ns string, uid types.UID, n int) error {
	if err := s.rates.Check("l"+string(uid), n, s.limits.LogRate, s.clock.Now(), "log lines", "task"); err != nil {
		return err
	}
	return s.checkNamespaceRate(ns, n)
}

// checkFileRate refuses a file that exceeds the rate of its owner or namespace.
func (s *Store) checkFileRate(ns string, uid types.UID, n int) error {
	n += fileCost
	if err := s.rates.Check("f"+string(uid), n, s.limits.FileRate, s.clock.Now(), "artifacts", "task"); err != nil {
		return err
	}
	return s.checkNamespaceRate(ns, n)
}

func (s *Store) checkNamespaceRate(ns string, n int) error {
	return s.rates.Check("n"+ns, n, s.limits.NamespaceRate, s.clock.Now(), "artifacts, results and log lines", "namespace")
}
