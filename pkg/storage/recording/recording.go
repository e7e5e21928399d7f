// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording stores what runs of tasks said and did in full, beside their events and in the same commits: an event and what is
// recorded of it are both there, or neither is, however the server ends.
//
// Keys, with numbers big-endian so that keys sort by them:
//
//	r uid 0 e seq(8)           -> JSON: what the event is about, by the numbers of parts; see entry
//	r uid 0 p seq(8) index(2)  -> JSON: a part, v1alpha1.RecordedPart, that came with the event
//	r uid 0 n attempt(4) first(4) -> seq(8) n(4): the numbers first to first+n-1 of an attempt came with the event
//	r uid 0 h                  -> held(8) namespace: bytes that are kept of the task
//	s namespace                -> held(8): bytes that are kept of the namespace; absent for 0
//
// A worker numbers its parts in each attempt, and sends each once, so a conversation that grows takes the space of what was said and
// not of what was asked. Numbers are chosen by the worker, and grow: what comes with numbers that begin below one that came before is
// not found by them, so the first counts, and one that never came is shown as missing. Attempts that began before there were rows of
// numbers are looked through entry by entry.
//
// Requests of chats and of the vendors' APIs have no events. They are kept by the ID of their usage, in days; see requests.go.
//
// There is one writer, the commit leader of the event log, so the totals need no lock.
package recording

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/owned"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

const (
	space       owned.Space = 'r'
	spaceHeld               = 's'
	kindEntry               = 'e'
	kindPart                = 'p'
	kindHeld                = 'h'
	kindNumbers             = 'n'
	rowCost                 = 64      // about what the key of a row takes
	forShort                = 4       // a quarter of a limit on top is for sizes and digests
	knownHeads              = 1 << 14 // far more than a group of commits has tasks
)

// Why the content of a part is not there; see v1alpha1.RecordedPart.
const (
	DigestsOnly  = "DigestsOnly"
	TooLarge     = event.PartTooLarge
	LimitReached = "LimitReached"
	Missing      = "Missing"
)

// CorruptError reports a row that this package did not write.
type CorruptError struct{ Key []byte }

// Error includes the key.
func (e *CorruptError) Error() string { return fmt.Sprintf("corrupt record of a recording %q", e.Key) }

// Limits bound what is stored, in bytes; 0 means no limit. What exceeds them is kept as sizes and digests, for which there is a quarter
// of the limit on top. After that nothing is recorded.
type Limits struct {
	Task, Namespace int64
}

// Store stores recordings in an engine.
type Store struct {
	engine engine.Engine
	limits Limits
	// Only the commit leader uses the rest.
	totals *quota.Totals
	held   *lru.Cache    // int64 by UID, with commits in flight
	nexts  *lru.Cache    // int32 by attempt, the number after the highest that came, with commits in flight
	days   *quota.Totals // bytes that are kept of the requests of a day, by their owner
	recent *lru.Cache    // the keys of rows of requests that were written last, with commits in flight
}

var _ eventlog.Projection = (*Store)(nil)

// New returns the store of recordings in e.
func New(e engine.Engine, l Limits) *Store {
	return &Store{
		engine: e, limits: l, held: lru.New(knownHeads), nexts: lru.New(knownHeads), recent: lru.New(knownHeads),
		totals: quota.NewTotals(e, func(ns string) []byte { return append([]byte{spaceHeld}, ns...) }),
		days:   quota.NewTotals(e, func(day string) []byte { return requests.Key(types.UID(day), kindHeld) }),
	}
}

// entry is the row of an event. First and N say which numbers of parts came with it.
type entry struct {
	Type         v1alpha1.EventType           `json:"type"`
	Attempt      int32                        `json:"attempt,omitempty"`
	First        int32                        `json:"first,omitempty"`
	N            int32                        `json:"n,omitempty"`
	Conversation []v1alpha1.RecordedRange     `json:"conversation,omitempty"`
	Tools        *int32                       `json:"tools,omitempty"`
	Parameters   *v1alpha1.RecordedParameters `json:"parameters,omitempty"`
	Message      *int32                       `json:"message,omitempty"`
	ToolCallID   string                       `json:"toolCallID,omitempty"`
}

// Given is what is to be recorded beside the events of an append, by the event. It is a note of the append; see eventlog.WithNote.
type Given map[*v1alpha1.ExecutionEvent]*Prepared

// Prepared is what is to be recorded beside an event, encoded. Short are its parts as sizes and digests.
type Prepared struct {
	attempt      attempt
	first        int32
	entry        []byte
	parts, short [][]byte
}

// Prepare removes secrets from what a worker sent with an event, and encodes it.
func Prepare(e *v1alpha1.ExecutionEvent, r *v1alpha1.EventRecording, mode v1alpha1.RecordingMode) (*Prepared, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	row := entry{
		Type: e.Type, Attempt: e.Attempt, First: r.First, N: int32(len(r.Parts)), Conversation: r.Conversation, Tools: r.Tools,
		Message: r.Message, ToolCallID: r.ToolCallID,
	}
	p := &Prepared{attempt: attempt(e.Attempt), first: r.First, parts: make([][]byte, len(r.Parts)), short: make([][]byte, len(r.Parts))}
	var seen redact.Seen
	for i := range r.Parts {
		var err error
		if p.parts[i], p.short[i], err = encode(r.Parts[i].DeepCopy(), mode, &seen); err != nil {
			return nil, fmt.Errorf("recording.parts[%d]: %w", i, err)
		}
	}
	row.Parameters = cleanParameters(r.Parameters, &seen)
	if row.ToolCallID, _ = seen.Text(row.ToolCallID); len(row.ToolCallID) > event.MaxLabelBytes {
		row.ToolCallID = "" // the message has the call all the same
	}
	var err error
	p.entry, err = json.Marshal(row)
	return p, err
}

// encode removes secrets from a part, and returns its row, and the row with its size and digest alone.
func encode(part *v1alpha1.RecordedPart, mode v1alpha1.RecordingMode, seen *redact.Seen) (row, short []byte, err error) {
	left := part.Omitted == TooLarge // by the worker
	if part.Digest, part.Omitted = "", ""; !left {
		part.Bytes = 0
	}
	event.CleanPart(part, seen)
	raw, err := json.Marshal(part)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(raw)
	if !left {
		part.Digest, part.Bytes = hex.EncodeToString(sum[:]), int64(len(raw))
	}
	if short, err = json.Marshal(omit(part, LimitReached)); err != nil {
		return nil, nil, err
	}
	switch {
	case mode == v1alpha1.RecordingDigests:
		row, err = json.Marshal(omit(part, DigestsOnly))
	case left, len(raw) > event.MaxRecordedPart:
		row, err = json.Marshal(omit(part, TooLarge))
	default:
		row, err = json.Marshal(part)
	}
	return row, short, err
}

// cleanParameters removes secrets from parameters.
func cleanParameters(p *v1alpha1.RecordedParameters, seen *redact.Seen) *v1alpha1.RecordedParameters {
	if p == nil {
		return nil
	}
	clean := p.DeepCopy()
	clean.Format, _ = seen.Text(clean.Format)
	clean.Temperature, _ = seen.Text(clean.Temperature)
	return clean
}

// Bounds of what a worker may send with one event.
const (
	maxParts  = 1 << 12
	maxRanges = 1 << 12
	maxRole   = 64
)

// check refuses what a worker cannot mean.
func check(r *v1alpha1.EventRecording) error {
	switch {
	case len(r.Parts) > maxParts:
		return fmt.Errorf("recording.parts: must have at most %d items", maxParts)
	case len(r.Conversation) > maxRanges:
		return fmt.Errorf("recording.conversation: must have at most %d items", maxRanges)
	case r.First < 0 || int64(r.First)+int64(len(r.Parts)) > math.MaxInt32:
		return errors.New("recording.first: must be a number of a part, from 0")
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		switch {
		case p.Bytes < 0:
			return fmt.Errorf("recording.parts[%d].bytes: must not be negative", i)
		case p.Message != nil && len(p.Message.Role) > maxRole: // it is shown even where the content is not
			return fmt.Errorf("recording.parts[%d].message.role: must have at most %d bytes", i, maxRole)
		}
	}
	for i, c := range r.Conversation {
		if c.From < 0 || c.To < c.From {
			return fmt.Errorf("recording.conversation[%d]: must be a range of numbers, from 0", i)
		}
	}
	return nil
}

// omit returns what is kept of a part without its content.
func omit(p *v1alpha1.RecordedPart, why string) *v1alpha1.RecordedPart {
	out := &v1alpha1.RecordedPart{Digest: p.Digest, Bytes: p.Bytes, Omitted: why}
	if p.Message != nil {
		out.Message = &v1alpha1.RecordedMessage{Role: p.Message.Role, Failed: p.Message.Failed}
	}
	return out
}

func entryKey(uid types.UID, seq int64) []byte {
	return binary.BigEndian.AppendUint64(space.Key(uid, kindEntry), uint64(seq))
}

// attempt is the number of an attempt of a task.
type attempt int32

func numbersKey(uid types.UID, a attempt, first int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(space.Key(uid, kindNumbers), uint32(a)), uint32(first))
}

// numbers is the row of the numbers that came with one event.
type numbers struct {
	first, n int32
	seq      int64
}

const lenNumbers = 8 + 4

func (n numbers) val() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(n.seq)), uint32(n.n))
}

// numbersAt returns the row that an iterator is at.
func numbersAt(it engine.Iter) (numbers, error) {
	key, val := it.Key(), it.Value()
	if len(key) < 4 || len(val) != lenNumbers {
		return numbers{}, errors.Join(&CorruptError{append([]byte(nil), key...)}, it.Error())
	}
	return numbers{
		first: int32(binary.BigEndian.Uint32(key[len(key)-4:])), seq: int64(binary.BigEndian.Uint64(val)), n: int32(binary.BigEndian.Uint32(val[8:])),
	}, nil
}

// came returns the row of the numbers that come with an event; nil if none do, or they begin below one that came before.
func (s *Store) came(uid types.UID, p *Prepared, seq int64) (*numbers, error) {
	row := &numbers{p.first, int32(len(p.parts)), seq}
	next, err := s.next(uid, p.attempt)
	if err != nil || row.n == 0 || row.first < next {
		return nil, err
	}
	s.nexts.Add(nextsKey{uid, p.attempt}, row.first+row.n)
	return row, nil
}

// nextsKey is the key of an attempt in Store.nexts.
type nextsKey struct {
	uid types.UID
	attempt
}

// next returns the number after the highest that came in an attempt.
func (s *Store) next(uid types.UID, a attempt) (next int32, err error) {
	if n, ok := s.nexts.Get(nextsKey{uid, a}); ok {
		return n.(int32), nil //nolint:forcetypeassert // nothing else is added
	}
	it, err := s.engine.NewIter(numbersKey(uid, a, 0), numbersKey(uid, a+1, 0))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.Last() {
		row, err := numbersAt(it)
		if err != nil {
			return 0, err
		}
		next = row.first + row.n
	}
	s.nexts.Add(nextsKey{uid, a}, next)
	return next, it.Error()
}

func partKey(uid types.UID, seq int64, i int32) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(space.Key(uid, kindPart), uint64(seq)), uint16(i))
}

// Admit reads the totals of the task and of its namespace.
func (s *Store) Admit(c *eventlog.Change) error {
	given, ok := eventlog.NoteOf[Given](c)
	if !ok || len(given) == 0 {
		return nil
	}
	if _, err := s.totals.Held(c.Stream.Namespace); err != nil {
		return err
	}
	_, err := s.heldBy(c.Stream.UID)
	return err
}

// heldBy returns the bytes that are kept of a task.
func (s *Store) heldBy(uid types.UID) (int64, error) {
	if n, ok := s.held.Get(uid); ok {
		return n.(int64), nil //nolint:forcetypeassert // nothing else is added
	}
	n, _, err := s.row(uid)
	if err == nil {
		s.held.Add(uid, n)
	}
	return n, err
}

// row reads the row with the total of a task.
func (s *Store) row(uid types.UID) (held int64, ns string, err error) {
	key := space.Key(uid, kindHeld)
	row, ok, err := s.engine.Get(key)
	switch {
	case err != nil || !ok:
		return 0, "", err
	case len(row) < 8:
		return 0, "", &CorruptError{key}
	}
	return int64(binary.BigEndian.Uint64(row)), string(row[8:]), nil
}

// Project writes what is given for the events that are new.
func (s *Store) Project(b engine.Batch, c *eventlog.Change) error {
	given, ok := eventlog.NoteOf[Given](c)
	if !ok || len(given) == 0 {
		return nil
	}
	uid, ns := c.Stream.UID, c.Stream.Namespace
	held, err := s.heldBy(uid)
	if err != nil {
		return err
	}
	all, err := s.totals.Held(ns)
	if err != nil {
		return err
	}
	var grown int64
	// fits reports whether there is room for a row within the limits and a part of them on top.
	fits := func(row []byte, above int64) bool {
		n := grown + int64(len(row)) + rowCost
		return !over(s.limits.Task, above, held+n) && !over(s.limits.Namespace, above, all+n)
	}
	set := func(key, val []byte) {
		grown += int64(len(val)) + rowCost
		err = errors.Join(err, b.Set(key, val))
	}
	for a := range c.Appended() {
		p := given[a.Event]
		if p == nil || !fits(p.entry, forShort) {
			continue
		}
		set(entryKey(uid, a.Seq), p.entry)
		row, failed := s.came(uid, p, a.Seq)
		if failed != nil {
			return failed
		}
		if row != nil {
			set(numbersKey(uid, p.attempt, row.first), row.val())
		}
		for i, part := range p.parts {
			if !fits(part, 0) {
				part = p.short[i]
			}
			if fits(part, forShort) {
				set(partKey(uid, a.Seq, int32(i)), part)
			}
		}
	}
	if grown == 0 {
		return err
	}
	s.held.Add(uid, held+grown)
	return errors.Join(err, b.Set(space.Key(uid, kindHeld), append(binary.BigEndian.AppendUint64(nil, uint64(held+grown)), ns...)), s.totals.Add(b, ns, grown))
}

// over reports whether n bytes exceed a limit and a part of it on top: 1/above of it, or nothing for 0.
func over(most, above, n int64) bool {
	if above > 0 {
		n -= most / above
	}
	return most > 0 && n > most
}

// Has reports whether anything is kept of a task.
func (s *Store) Has(uid types.UID) (bool, error) {
	_, has, err := s.engine.Get(space.Key(uid, kindHeld))
	return has, err
}

// Delete removes what is kept of a task.
func (s *Store) Delete(uid types.UID) error {
	if owned.Bad(string(uid)) {
		return nil
	}
	if has, err := s.Has(uid); err != nil || !has {
		return err
	}
	return s.engine.Commit(&removal{s, uid})
}

// removal is the commit that removes what is kept of a task.
type removal struct {
	s   *Store
	uid types.UID
}

// Need is Free: it makes room.
func (r *removal) Need() engine.Need { return engine.Free }

// Sequence removes the rows.
func (r *removal) Sequence(b engine.Batch) error {
	_, ns, err := r.s.row(r.uid)
	if err != nil {
		return err
	}
	held, err := r.s.heldBy(r.uid)
	if err == nil {
		_, err = r.s.totals.Held(ns)
	}
	if err != nil {
		return err
	}
	r.s.held.Remove(r.uid)
	return errors.Join(space.Clear(b, r.uid), r.s.totals.Add(b, ns, -held))
}

// Publish shows nothing: nobody watches recordings.
func (r *removal) Publish() {}
