// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// version is the first byte of each value. A later version adds fields at the end, which older values lack.
const version = 1

// errShort reports a value that ends too early.
var errShort = errors.New("corrupt record of the ledger")

// coder writes or reads the fields of a value, in one order for both.
type coder struct {
	b       []byte
	reading bool
	err     error
}

func (c *coder) fail() {
	if c.err == nil {
		c.err = errShort
	}
	c.b = nil
}

func (c *coder) number(n *int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, *n)
		return
	}
	v, size := binary.Varint(c.b)
	if size <= 0 {
		c.fail()
		return
	}
	*n, c.b = v, c.b[size:]
}

func (c *coder) text(s *string) {
	n := int64(len(*s))
	c.number(&n)
	if !c.reading {
		c.b = append(c.b, *s...)
		return
	}
	if n < 0 || n > int64(len(c.b)) {
		c.fail()
		return
	}
	*s, c.b = string(c.b[:n]), c.b[n:]
}

// count is a number that may be missing.
func (c *coder) count(p **int64) {
	n := int64(-1)
	if *p != nil {
		n = **p
	}
	c.number(&n)
	if c.reading && n >= 0 && c.err == nil {
		*p = &n
	}
}

func (c *coder) flag(f *bool) {
	n := int64(0)
	if *f {
		n = 1
	}
	c.number(&n)
	if c.reading {
		*f = n == 1
	}
}

func (c *coder) time(t *time.Time) {
	n := int64(0)
	if !t.IsZero() {
		n = t.UnixNano()
	}
	c.number(&n)
	if c.reading && n != 0 {
		*t = time.Unix(0, n).UTC()
	}
}

// word is a text of a type of its own.
func word[T ~string](c *coder, v *T) {
	s := string(*v)
	c.text(&s)
	*v = T(s)
}

func encode(fields func(*coder)) []byte {
	c := &coder{b: append(make([]byte, 0, 384), version)} // room for nearly all values
	fields(c)
	return c.b
}

func decode(v []byte, fields func(*coder)) error {
	if len(v) == 0 || v[0] != version {
		return errShort
	}
	c := &coder{b: v[1:], reading: true}
	fields(c)
	return c.err
}

func (c *coder) observation(o *usage.Observation) {
	for _, s := range []*string{
		&o.ID, &o.Namespace, &o.NamespaceUID, &o.TaskUID, &o.TaskName, &o.SessionName, &o.AttemptID, &o.CounterID, &o.Provider, &o.Model, &o.Gap, &o.User,
	} {
		c.text(s)
	}
	word(c, &o.Scope)
	word(c, &o.Source)
	word(c, &o.Status)
	c.counts(&o.Counts)
	c.flag(&o.Complete)
	c.time(&o.StartedAt)
	c.time(&o.ObservedAt)
}

func (c *coder) counts(n *usage.Counts) {
	for _, p := range []**int64{&n.InputTokens, &n.OutputTokens, &n.CachedInputTokens, &n.CacheWriteInputTokens} {
		c.count(p)
	}
}

func (c *coder) task(t *usage.Task) {
	w := &t.Work
	for _, s := range []*string{
		&t.Namespace, &t.NamespaceUID, &t.UID, &t.Name, &t.SessionName, &t.ParentTaskUID, &t.RootTaskUID, &t.ForkSourceUID, &t.Type, &t.Phase,
		&t.Role, &t.Runtime, &t.Agent, &t.RequestedBy, &t.GatewayOwner, &t.Repository, &w.Kind, &w.Repository, &w.MonitorName, &w.MonitorUID,
	} {
		c.text(s)
	}
	c.number(&t.PRNumber)
	c.number(&w.Number)
	for _, at := range []*time.Time{&t.CreatedAt, &t.StartedAt, &t.EndedAt, &t.ObservedAt} {
		c.time(at)
	}
	c.flag(&t.Deleted)
	n := int64(len(t.Labels))
	c.number(&n)
	if !c.reading {
		for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
			v := t.Labels[k]
			c.text(&k)
			c.text(&v)
		}
		return
	}
	for ; n > 0 && c.err == nil; n-- {
		var k, v string
		c.text(&k)
		c.text(&v)
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[k] = v
	}
}

func (c *coder) link(l *usage.Link) {
	for _, s := range []*string{&l.ID, &l.Namespace, &l.NamespaceUID, &l.TaskUID, &l.Repository, &l.URL, &l.HeadSHA, &l.ReadinessReason, &l.EvidenceID} {
		c.text(s)
	}
	c.number(&l.Number)
	c.number(&l.GithubID)
	word(c, &l.Origin)
	word(c, &l.State)
	c.flag(&l.Ready)
	for _, at := range []*time.Time{&l.CreatedAt, &l.MergedAt, &l.ClosedAt, &l.ObservedAt, &l.RecordedAt} {
		c.time(at)
	}
}

// putObservation writes a state of an observation, and its places in the indexes of IDs and of its task.
func putObservation(b engine.Batch, o *usage.Observation) error {
	return putRow(b, o, encodeObservation(o))
}

func encodeObservation(o *usage.Observation) []byte {
	return encode(func(c *coder) { c.observation(o) })
}

// putRow is putObservation of an observation that is encoded.
func putRow(b engine.Batch, o *usage.Observation, row []byte) error {
	record := observationKey(o.Namespace, o.StartedAt, o.ID)
	err := errors.Join(b.Set(byIDKey(o.ID), record), b.Set(appendNewest(record, o.ObservedAt), row))
	if o.TaskUID != "" {
		err = errors.Join(err, b.Set(ofTaskKey(o), []byte(o.Namespace)))
	}
	return err
}

func putTask(b engine.Batch, t *usage.Task) error {
	key := taskKey(t.Namespace, t.CreatedAt, t.UID)
	return errors.Join(
		b.Set(appendNewest(key, t.ObservedAt), encode(func(c *coder) { c.task(t) })),
		b.Set(taskOfKey(t.UID), key),
		indexTask(b, t),
	)
}

func decodeObservation(key, v []byte) (*usage.Observation, error) {
	o := &usage.Observation{}
	if err := decode(v, func(c *coder) { c.observation(o) }); err != nil {
		return nil, fmt.Errorf("%w: key %q", err, key)
	}
	return o, nil
}

func decodeTask(key, v []byte) (*usage.Task, error) {
	t := &usage.Task{}
	if err := decode(v, func(c *coder) { c.task(t) }); err != nil {
		return nil, fmt.Errorf("%w: key %q", err, key)
	}
	return t, nil
}

func decodeLink(key, v []byte) (*usage.Link, error) {
	l := &usage.Link{}
	if err := decode(v, func(c *coder) { c.link(l) }); err != nil {
		return nil, fmt.Errorf("%w: key %q", err, key)
	}
	return l, nil
}

// opened returns the record of an open request.
func (*Ledger) opened(v []byte) (*usage.Observation, error) { return decodeObservation(openPrefix, v) }
