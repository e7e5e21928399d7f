// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blob stores what tasks produce besides events: a result, a log, files, the calls of tools that they made, and what calls were
// answered. It stores bytes by the UID of their owner and does not decide who may read and write them.
//
// Keys, with numbers big-endian so that keys sort by them:
//
//	b uid 0 f name 0            -> size(8) created(8, Unix microseconds) content type
//	b uid 0 g name 0 piece(4)   -> up to 256 KiB of the file
//	b uid 0 l offset(8)         -> up to 256 KiB of the log
//	b uid 0 c id                -> a call of a tool
//	b uid 0 d                   -> bytes(8) of the calls that are kept
//	b uid 0 a id                -> what a call of a tool was answered
//	b uid 0 e                   -> bytes(8) of the answers that are kept
//	b uid 0 n                   -> held(8) namespace: bytes of the owner that count in the total of the namespace
//	n namespace                 -> held(8): bytes held by all owners of a namespace; absent for 0
//
// A file is written and replaced in one synced batch, so the store holds all of it or none of it. All keys
// of an owner are one range, so that they can be removed together. Blobs take no revision because they are
// not watched.
package blob

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

const (
	space           owned.Space = 'b'
	spaceHeld                   = 'n'
	kindFile                    = 'f'
	kindPiece                   = 'g'
	kindLog                     = 'l'
	kindCall                    = 'c'
	kindCallBytes               = 'd'
	kindAnswer                  = 'a'
	kindAnswerBytes             = 'e'
	kindHeld                    = 'n'
	pieceSize                   = 256 << 10
	readSize                    = 1 << 20
	headerSize                  = 16
)

// ErrName refuses an owner or a file name that cannot be part of a key: an
// empty one, or one with a zero byte.
var ErrName = errors.New("invalid file name")

// CorruptError reports a record that this package did not write, or that is incomplete.
type CorruptError struct {
	Key []byte
}

// Error includes the key.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt record %q of a file of a task", e.Key)
}

// File describes one file.
type File struct {
	Name string
	// ContentType is the media type.
	ContentType string
	// Size is the length in bytes.
	Size int64
	// CreatedAt is when the file was last written, to the microsecond.
	CreatedAt time.Time
}

// Store stores blobs in an engine. The files, the log, the calls and the answers of an owner share one lock and one total.
type Store struct {
	engine engine.Engine
	limits Limits
	clock  clock.PassiveClock
	rates  *quota.Rates
	mu     sync.Mutex // guards owners; never held while an owner's lock is taken
	owners map[types.UID]*owner

	order  sync.Mutex // orders batches with their totals; taken after an owner's lock and not held during a sync
	totals *quota.Totals
}

// owner serializes the writes of one owner. A writer holds its lock until the write is durable, so a reader
// never sees data that a crash could still remove.
type owner struct {
	sync.RWMutex
	users int // guarded by Store.mu
}

// New returns the blob store in e. The clock is used for rates.
func New(e engine.Engine, l Limits, c clock.PassiveClock) *Store {
	return &Store{
		engine: e, limits: l, clock: c, rates: quota.NewRates(rateNames), owners: map[types.UID]*owner{},
		totals: quota.NewTotals(e, func(ns string) []byte { return append([]byte{spaceHeld}, ns...) }),
	}
}

// hold locks an owner. done unlocks it.
func (s *Store) hold(uid types.UID) (o *owner, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = s.owners[uid]
	if o == nil {
		o = &owner{}
		s.owners[uid] = o
	}
	o.users++
	return o, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if o.users--; o.users == 0 {
			delete(s.owners, uid)
		}
	}
}

func fileKey(uid types.UID, kind byte, name string) []byte {
	return append(append(space.Key(uid, kind), name...), 0)
}

// PutFile stores a file of an owner in a namespace, replacing a file of the same name. It ignores f.Size.
// It returns when the file is durable. A *quota.LimitError means that there is no room for the file, and a
// *quota.RateError states when to retry.
func (s *Store) PutFile(ctx context.Context, ns string, uid types.UID, f File, data []byte) error {
	if owned.Bad(string(uid)) || owned.Bad(f.Name) {
		return fmt.Errorf("put file: %w", ErrName)
	}
	o, done := s.hold(uid)
	defer done()
	o.Lock()
	defer o.Unlock()
	replaced, err := s.checkLimits(uid, f.Name, int64(len(data)))
	if err == nil {
		err = s.checkFileRate(ns, uid, len(data))
	}
	if err != nil {
		return fmt.Errorf("put file: %w", err)
	}
	c := change{need: engine.Grow, ns: ns, uid: uid, bytes: int64(len(data)) - replaced}
	err = s.write(ctx, c, func(b engine.Batch) error {
		header := binary.BigEndian.AppendUint64(make([]byte, 0, headerSize+len(f.ContentType)), uint64(len(data)))
		header = binary.BigEndian.AppendUint64(header, uint64(f.CreatedAt.UnixMicro()))
		if err := b.Set(fileKey(uid, kindFile, f.Name), append(header, f.ContentType...)); err != nil {
			return err
		}
		pieces := fileKey(uid, kindPiece, f.Name)
		if err := b.DeleteRange(pieces, owned.After(pieces)); err != nil {
			return err
		}
		for i, rest := uint32(0), data; len(rest) > 0; i++ {
			n := min(len(rest), pieceSize)
			if err := b.Set(binary.BigEndian.AppendUint32(bytes.Clone(pieces), i), rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put file: %w", err)
	}
	return nil
}

// File reads a file; ok is false when there is none.
func (s *Store) File(_ context.Context, uid types.UID, name string) (f File, data []byte, ok bool, err error) {
	if owned.Bad(string(uid)) || owned.Bad(name) {
		return File{}, nil, false, nil
	}
	o, done := s.hold(uid)
	defer done()
	o.RLock()
	defer o.RUnlock()
	key := fileKey(uid, kindFile, name)
	header, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return File{}, nil, false, err
	}
	f, err = decode(key, name, header)
	if err != nil {
		return File{}, nil, false, err
	}
	data, err = s.pieces(fileKey(uid, kindPiece, name), f.Size)
	if err == nil && int64(len(data)) != f.Size {
		err = &CorruptError{key}
	}
	return f, data, err == nil, err
}

func (s *Store) pieces(prefix []byte, size int64) (data []byte, err error) {
	it, err := s.engine.NewIter(prefix, owned.After(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	data = make([]byte, 0, size)
	for ok := it.First(); ok; ok = it.Next() {
		data = append(data, it.Value()...)
	}
	return data, nil
}

func decode(key []byte, name string, header []byte) (File, error) {
	if len(header) < headerSize {
		return File{}, &CorruptError{bytes.Clone(key)}
	}
	size := binary.BigEndian.Uint64(header)
	if size > math.MaxInt32 {
		return File{}, &CorruptError{bytes.Clone(key)}
	}
	return File{
		Name:        name,
		ContentType: string(header[headerSize:]),
		Size:        int64(size),
		CreatedAt:   time.UnixMicro(int64(binary.BigEndian.Uint64(header[8:]))).UTC(),
	}, nil
}

// Files returns the descriptions of all files of an owner, by name.
func (s *Store) Files(_ context.Context, uid types.UID) (files []File, err error) {
	if owned.Bad(string(uid)) {
		return nil, nil
	}
	o, done := s.hold(uid)
	defer done()
	o.RLock()
	defer o.RUnlock()
	return s.files(uid)
}

func (s *Store) files(uid types.UID) (files []File, err error) {
	prefix := space.Key(uid, kindFile)
	it, err := s.engine.NewIter(prefix, owned.After(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		name, found := bytes.CutSuffix(it.Key()[len(prefix):], []byte{0})
		if !found {
			return nil, &CorruptError{bytes.Clone(it.Key())}
		}
		f, err := decode(it.Key(), string(name), it.Value())
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Delete removes everything of an owner. It is not an error if there is nothing to remove.
func (s *Store) Delete(ctx context.Context, uid types.UID) error {
	if owned.Bad(string(uid)) {
		return fmt.Errorf("delete: %w", ErrName)
	}
	o, done := s.hold(uid)
	defer done()
	o.Lock()
	defer o.Unlock()
	err := s.write(ctx, change{need: engine.Free, uid: uid, all: true}, func(b engine.Batch) error { return space.Clear(b, uid) })
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	prefix := space.Key(uid)
	s.engine.Reclaim(ctx, prefix, owned.After(prefix))
	return nil
}

// Owners calls f with each owner that has a blob; see owned.Space.
func (s *Store) Owners(ctx context.Context, f func(types.UID) error) error {
	return space.Owners(ctx, s.engine, f)
}
