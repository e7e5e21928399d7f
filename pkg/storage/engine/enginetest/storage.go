// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Damaged data is never returned. All other data is read, and writes go on.
func testDamage(t *testing.T, p Place) {
	d, ok := p.(Damager)
	if !ok {
		t.Skip("engine.ErrDamaged is not tested, because the Place is not a Damager")
	}
	e := open(t, p)
	random := rand.NewChaCha8([32]byte{}) // so that no engine stores the values in less
	values := map[string][]byte{}
	for i := range 256 {
		key, value := fmt.Sprintf("u%03d", i), make([]byte, 4096)
		_, _ = random.Read(value) // it never fails
		b, err := e.NewBatch()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Set([]byte(key), value), e.Apply(b, engine.Sync)); err != nil {
			t.Fatal(err)
		}
		values[key] = value
	}
	shut(t, e)
	if err := d.Damage(); err != nil {
		t.Fatal(err)
	}
	e = open(t, p)
	damaged := 0
	for key, want := range values {
		v, ok, err := e.Get([]byte(key))
		switch {
		case errors.Is(err, engine.ErrDamaged):
			damaged++
		case err != nil || !ok || !bytes.Equal(v, want):
			t.Errorf("%s was changed or is gone: %d bytes, %v", key, len(v), err)
		default:
			intact(t, e, key, want)
		}
	}
	if damaged == 0 || damaged == len(values) {
		t.Errorf("%d of %d values are damaged", damaged, len(values))
	}
	it, err := e.NewIter([]byte("u"), []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v := it.Value()
		if v == nil && errors.Is(it.Error(), engine.ErrDamaged) {
			continue
		}
		if !bytes.Equal(v, values[string(it.Key())]) {
			t.Errorf("an iterator returns other bytes for %q: %v", it.Key(), it.Error())
		}
	}
	if err := it.Error(); !errors.Is(err, engine.ErrDamaged) {
		t.Errorf("an iterator that met damage: %v", err)
	}
	if err := it.Close(); !errors.Is(err, engine.ErrDamaged) {
		t.Errorf("close of an iterator that met damage: %v", err)
	}
	rev := commit(t, e, &put{key: "new"})
	if have := rows(t, e); have["new"] != rev {
		t.Errorf("a write beside damage: %v", have)
	}
	if e.Healthy() != nil || e.Ready() != nil {
		t.Errorf("health %v, ready %v", e.Healthy(), e.Ready())
	}
}

// intact checks that an iterator reads a value that Get has read.
func intact(t *testing.T, e engine.Reader, key string, want []byte) {
	t.Helper()
	it, err := e.NewIter([]byte(key), []byte(key+"\x00"))
	if err != nil {
		t.Fatal(err)
	}
	if !it.First() || string(it.Key()) != key || !bytes.Equal(it.Value(), want) {
		t.Errorf("an iterator does not read %s: %v", key, it.Error())
	}
	if err := it.Close(); err != nil {
		t.Errorf("an iterator of %s: %v", key, err)
	}
}

// A store whose storage does not answer is not ready, whether or not something is written. It stays healthy, and is ready
// again when the storage answers. The tests of Failure, Room, Damage and Close call Ready in those states.
func testReady(t *testing.T, p Place) {
	h, ok := p.(Hanger)
	if !ok {
		t.Skip("Ready of an engine whose storage does not answer is not tested, because the Place is not a Hanger")
	}
	e := open(t, p)
	for _, writing := range []bool{true, false} {
		if err := e.Ready(); err != nil {
			t.Errorf("writing %v: before: %v", writing, err)
		}
		resume := sync.OnceFunc(h.Hang())
		t.Cleanup(resume) // so that the store can be closed
		written := make(chan error, 1)
		if writing {
			go func() { written <- e.Commit(&put{key: "k"}) }()
		}
		await(t, "the store is still ready", func() bool {
			h.Pass(time.Second)
			return e.Ready() != nil
		})
		if err := e.Healthy(); err != nil {
			t.Errorf("writing %v: %v", writing, err)
		}
		resume()
		if writing {
			if err := <-written; err != nil {
				t.Errorf("the write that waited: %v", err)
			}
		}
		await(t, "the store is not ready again", func() bool { return e.Ready() == nil })
	}
}
