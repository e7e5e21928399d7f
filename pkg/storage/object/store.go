// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// Config configures the store of one resource.
type Config struct {
	// Codec encodes objects to their stored version and decodes all versions.
	Codec runtime.Codec
	// Transformer, if set, encrypts stored values. It may call the store.
	Transformer value.Transformer
	// NewFunc returns an empty object of the resource.
	NewFunc func() runtime.Object
	// Prefix is the prefix of all keys of the installation, for example "/registry".
	Prefix string
	// ResourcePrefix is the prefix of the resource's keys below Prefix, for example "/tasks/".
	ResourcePrefix string
	GroupResource  schema.GroupResource
	// MarkCorrupt reports every failure to transform or decode as corrupt data, so that an administrator
	// may delete the object unread.
	MarkCorrupt bool
	// Index, if set, derives further rows from the objects.
	Index Index
	// Fields are indexed, by name: a list that selects by one of them costs what it returns.
	Fields storage.IndexerFuncs
}

// versioner reads and writes resource versions, which are decimal revisions.
var versioner storage.APIObjectVersioner

// Store is the storage.Interface of one resource. Reads with and without decoded objects in memory are apart.
type Store struct {
	db             *DB
	topic          *topic
	codec          runtime.Codec
	newFunc        func() runtime.Object
	objectType     reflect.Type // the type to which the objects of newFunc point
	pathPrefix     string
	resourcePrefix string
	groupResource  schema.GroupResource
	markCorrupt    bool
	index          Index // may be nil
	fields         storage.IndexerFuncs
	transformer    atomic.Pointer[value.Transformer]
	sizes          atomic.Bool

	ctx     context.Context //nolint:containedctx // ends the store's watches
	cancel  context.CancelFunc
	watches sync.WaitGroup

	mu     sync.Mutex // guards closed: once it is set, no watch is added to watches
	closed bool
}

var _ storage.Interface = (*Store)(nil)

// NewStore opens the store of one resource and reads its keys. Stores with the same prefix share one index
// and must decode in the same way.
func (db *DB) NewStore(c Config) (*Store, error) {
	if c.Transformer == nil {
		c.Transformer = identity.NewEncryptCheckTransformer()
	}
	if strings.Trim(c.ResourcePrefix, "/") == "" || !strings.HasPrefix(c.ResourcePrefix, "/") {
		return nil, fmt.Errorf("resource prefix %q must begin with / and a name", c.ResourcePrefix)
	}
	s := &Store{
		db: db, codec: c.Codec, newFunc: c.NewFunc, objectType: reflect.TypeOf(c.NewFunc()).Elem(), resourcePrefix: c.ResourcePrefix,
		groupResource: c.GroupResource, markCorrupt: c.MarkCorrupt, index: c.Index, fields: c.Fields,
		pathPrefix: strings.TrimSuffix(path.Join("/", c.Prefix), "/") + "/",
	}
	s.transformer.Store(&c.Transformer)
	prefix, err := s.key(c.ResourcePrefix, true)
	if err != nil {
		return nil, err
	}
	if s.topic, err = db.topic(prefix, c.GroupResource.String(), s.decode); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(db.ctx)
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		s.cancel()
		return nil, ErrClosed
	}
	db.stores[s] = struct{}{}
	return s, nil
}

// Close ends the store's watches and waits for them. Other methods keep working until the DB is closed.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.watches.Wait()
	s.db.mu.Lock()
	delete(s.db.stores, s)
	s.db.mu.Unlock()
}

func (s *Store) key(key string, recursive bool) (string, error) {
	k, err := storage.PrepareKey(s.resourcePrefix, key, recursive)
	if err != nil {
		return "", err
	}
	return s.pathPrefix + strings.TrimPrefix(k, "/"), nil
}

// Versioner returns the versioner for resource versions, which are decimal revisions.
func (s *Store) Versioner() storage.Versioner { return versioner }

// ReadinessCheck returns an error if the DB is not healthy.
func (s *Store) ReadinessCheck() error { return s.db.Healthy() }

// CompactRevision returns the highest compacted revision, 0 if none.
func (s *Store) CompactRevision() int64 { return int64(s.db.CompactRevision()) }

// GetCurrentResourceVersion returns the store-wide revision.
func (s *Store) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.db.Revision(), nil
}

// RequestWatchProgress makes every watch that reports progress send it once it is idle.
func (s *Store) RequestWatchProgress(context.Context) error {
	s.topic.scopes.progress.Add(1)
	s.topic.scopes.whole.wake() // a watch cache watches the whole topic
	return nil
}

// EnableResourceSizeEstimation makes Stats report sizes. The index holds the sizes, so keys is not called.
func (s *Store) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("no function to list keys")
	}
	if !s.sizes.CompareAndSwap(false, true) {
		return errors.New("size estimation is already enabled")
	}
	return nil
}

// Stats returns exact numbers at no cost, because the index counts as it changes.
func (s *Store) Stats(context.Context) (storage.Stats, error) {
	n, bytes := s.topic.stats()
	st := storage.Stats{ObjectCount: n}
	if s.sizes.Load() && n > 0 {
		st.EstimatedAverageObjectSizeBytes = bytes / n
	}
	return st, nil
}

// Get reads the newest object at key.
func (s *Store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	k, err := s.key(key, false)
	if err != nil {
		return err
	}
	s.topic.metrics.gets.Inc()
	en, rev := s.topic.read(k)
	if err := s.minimum(opts.ResourceVersion, rev); err != nil {
		return err
	}
	if en != nil {
		if d := en.decodedObject(); d != nil && copyObject(d.obj, out) {
			return nil
		}
	}
	en, stored, err := s.load(k)
	if err != nil {
		return err
	}
	if en == nil {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(k, 0)
	}
	plain, _, err := s.untransform(ctx, k, stored)
	if err != nil {
		err = storage.NewInternalError(err)
	} else if err = s.decodeInto(plain, out, en.rev); err == nil && s.topic.cachesObjects() && reflect.TypeOf(out) == reflect.PointerTo(s.objectType) {
		s.topic.remember(en, out.DeepCopyObject())
	}
	if corrupt, ok := errors.AsType[*CorruptObjectError](err); ok && s.markCorrupt {
		return storage.NewCorruptObjError(k, corrupt)
	}
	return err
}

// copyObject sets out to a copy of obj if both have the same type, and reports whether they do.
func copyObject(obj, out runtime.Object) bool {
	to := reflect.ValueOf(out)
	if to.Kind() != reflect.Pointer || to.Type() != reflect.TypeOf(obj) {
		return false
	}
	to.Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
	return true
}

// minimum returns an error if rv requests something newer than have.
func (s *Store) minimum(rv string, have uint64) error {
	if rv == "" {
		return nil
	}
	want, err := versioner.ParseResourceVersion(rv)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if want > have {
		return storage.NewTooLargeResourceVersionError(want, have, 0)
	}
	return nil
}

// load reads the newest version of key. A nil entry means there is none.
func (s *Store) load(key string) (*entry, []byte, error) {
	for {
		en := s.topic.get(key)
		if en == nil {
			return nil, nil, nil
		}
		stored, err := s.topic.value(en)
		if errors.Is(err, ErrCompacted) && s.topic.get(key) != en {
			continue // replaced and compacted between the index and the value
		}
		return en, stored, err
	}
}

// authenticatedKey binds stored bytes to their key, so that the values of two keys cannot be swapped.
type authenticatedKey string

func (k authenticatedKey) AuthenticatedData() []byte { return []byte(k) }

func (s *Store) untransform(ctx context.Context, key string, stored []byte) ([]byte, bool, error) {
	plain, stale, err := (*s.transformer.Load()).TransformFromStorage(ctx, stored, authenticatedKey(key))
	return plain, stale, s.corrupt(err)
}

// outOfRange are how times begin that are written with an offset from UTC in a year that can be read, and that are in one in UTC that cannot.
var outOfRange = [][]byte{[]byte(`"10000-`), []byte(`"-0001-`)}

// encode encodes an object. What could not be read again is refused: one such object would make its whole kind unreadable.
func encode(codec runtime.Codec, obj runtime.Object) ([]byte, error) {
	plain, err := runtime.Encode(codec, obj)
	if err != nil || !slices.ContainsFunc(outOfRange, func(text []byte) bool { return bytes.Contains(plain, text) }) {
		return plain, err
	}
	if _, _, err := codec.Decode(plain, nil, nil); err != nil { // not only a text that looks like that
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object has a time that is not in one of the years from 0 to 9999 in UTC: %v", err))
	}
	return plain, nil
}

func (s *Store) transform(ctx context.Context, key string, plain []byte) ([]byte, error) {
	stored, err := (*s.transformer.Load()).TransformToStorage(ctx, plain, authenticatedKey(key))
	if err != nil {
		return nil, storage.NewInternalError(err)
	}
	return stored, nil
}

// decodeInto decodes plain bytes into obj and sets its revision.
func (s *Store) decodeInto(plain []byte, obj runtime.Object, rev uint64) error {
	if _, _, err := s.codec.Decode(plain, nil, obj); err != nil {
		return s.corrupt(err)
	}
	return versioner.UpdateObject(obj, rev)
}

// decode transforms and decodes stored bytes into a new object.
func (s *Store) decode(ctx context.Context, key string, stored []byte, rev uint64) (runtime.Object, error) {
	plain, _, err := s.untransform(ctx, key, stored)
	if err != nil {
		return nil, err
	}
	obj := s.newFunc()
	return obj, s.decodeInto(plain, obj, rev)
}

func (s *Store) corrupt(err error) error {
	if err == nil || !s.markCorrupt {
		return err
	}
	return &CorruptObjectError{Err: err}
}
