// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// group sequences changes one after the other before any of them is in the store, as the engine does with a group.
type group struct {
	changes []*change
	refused []error // of each change
}

func (g *group) Sequence(b engine.Batch) error {
	for _, c := range g.changes {
		err := c.Check()
		if err == nil {
			if err := c.Write(b); err != nil {
				return err
			}
		}
		g.refused = append(g.refused, err)
	}
	return nil
}

func (g *group) Publish() {
	for i, c := range g.changes {
		if g.refused[i] == nil {
			c.Publish()
		}
	}
}

// commitGroup returns which changes of a group were refused, and why.
func commitGroup(t *testing.T, s *Store, changes ...*change) []error {
	t.Helper()
	g := &group{changes: changes}
	if err := s.engine.Commit(g); err != nil {
		t.Fatal(err)
	}
	if len(s.staged) != 0 {
		t.Errorf("%d rows are still being committed", len(s.staged))
	}
	return g.refused
}

func saving(t *testing.T, s *Store, uid types.UID, version int64, data string) *change {
	t.Helper()
	c, err := s.saving(uid, version, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOneGroup: changes are decided against those before them in the same group.
func TestOneGroup(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	refused := commitGroup(t, s,
		saving(t, s, "a", 0, "one"), saving(t, s, "a", 0, "lost"), saving(t, s, "a", 1, "two"), saving(t, s, "a", 1, "lost"),
		saving(t, s, "b", 0, "of b"), s.burying("b"), saving(t, s, "b", 1, "late"),
		s.forgetting("b"), saving(t, s, "b", 0, "new"), s.forgetting("b"))
	wantConflict(t, refused[1], 0, 1)
	wantConflict(t, refused[3], 1, 2)
	for i, want := range map[int]error{6: ErrGone, 9: ErrNotBuried} {
		if !errors.Is(refused[i], want) {
			t.Errorf("change %d: %v; want %v", i, refused[i], want)
		}
	}
	for _, i := range []int{0, 2, 4, 5, 7, 8} {
		if refused[i] != nil {
			t.Errorf("change %d: %v", i, refused[i])
		}
	}
	wantRow(t, s, "a", Row{Version: 2, Data: []byte("two")})
	wantRow(t, s, "b", Row{Version: 1, Data: []byte("new")})
}

// overtaken is a group during whose sequencing the group before it is published.
type overtaken struct {
	before        *change
	first, second *change
	refused       error // of second
}

func (o *overtaken) Sequence(b engine.Batch) error {
	if err := errors.Join(o.first.Check(), o.first.Write(b)); err != nil {
		return err
	}
	o.before.Publish()
	o.refused = o.second.Check()
	return nil
}

func (o *overtaken) Publish() { o.first.Publish() }

// TestPublishedMeanwhile: the publishing of a group does not hide the changes of the next one.
func TestPublishedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	before := saving(t, s, "a", 0, "one")
	if err := s.commit(engine.Grow, before); err != nil {
		t.Fatal(err)
	}
	o := &overtaken{before: before, first: saving(t, s, "a", 1, "two"), second: saving(t, s, "a", 1, "lost")}
	if err := s.engine.Commit(o); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, o.refused, 1, 2)
	wantRow(t, s, "a", Row{Version: 2, Data: []byte("two")})
}

// observed is an engine that reports the first wait for earlier writes.
type observed struct {
	engine.Engine

	waits chan struct{}
}

func (o *observed) Commit(t engine.Txn) error {
	if n, ok := t.(engine.Needer); ok && n.Need() == engine.Nothing {
		close(o.waits)
	}
	return o.Engine.Commit(t)
}

// visible is a Txn with a func that runs while its writes are visible and not yet durable.
type visible struct {
	engine.Txn

	while func()
}

func (v *visible) Overlap() { v.while() }

// TestLoadWaits: a reader gets no row that a crash could take away again.
func TestLoadWaits(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	o := &observed{s.engine, make(chan struct{})}
	s.engine = o
	type answer struct {
		row    Row
		staged int
		err    error
	}
	answered := make(chan answer, 1)
	txn := &visible{engine.Join(engine.Grow, saving(t, s, "a", 0, "one")), func() {
		stored(t, s, "a")
		early := make(chan struct{})
		go func() {
			row, err := s.Load("a")
			s.mu.Lock()
			defer s.mu.Unlock()
			answered <- answer{row, len(s.staged), err}
			close(early)
		}()
		select {
		case <-o.waits:
		case <-early:
			t.Error("a row was returned before it was durable")
		}
	}}
	if err := s.engine.Commit(txn); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.err != nil || a.row.Version != 1 || string(a.row.Data) != "one" || a.staged != 0 {
		t.Errorf("%+v", a)
	}
}

// TestRewrapLosesNothing: a row that is another one by the time it is rewrapped stays as it is.
func TestRewrapLosesNothing(t *testing.T) {
	t.Parallel()
	older, newer := newKey(), newKey()
	e := openEngine(t, t.TempDir())
	s := New(e, keysOf(t, older))
	for _, uid := range []types.UID{"rewrapped", "saved", "buried", "begun anew", "forgotten"} {
		save(t, s, uid, 0, "old")
	}
	s = New(e, keysOf(t, newer, older))
	pending := map[types.UID]*change{}
	for uid := range owners(t, s) {
		c, err := s.rewrapped(uid, stored(t, s, uid))
		if err != nil || c == nil {
			t.Fatalf("%s: %v, %v", uid, c, err)
		}
		pending[uid] = c
	}
	save(t, s, "saved", 1, "new")
	for _, uid := range []types.UID{"buried", "begun anew", "forgotten"} {
		if err := s.Bury(t.Context(), uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Forget(t.Context(), "begun anew"), s.Forget(t.Context(), "forgotten")); err != nil {
		t.Fatal(err)
	}
	save(t, s, "begun anew", 0, "new")
	for uid, c := range pending {
		if err := s.commit(engine.Upkeep, c); err != nil || c.changes != (uid == "rewrapped") {
			t.Errorf("%s: written %v, %v", uid, c.changes, err)
		}
	}
	s = New(e, keysOf(t, newer))
	for uid, want := range map[types.UID]Row{
		"rewrapped": {Version: 1, Data: []byte("old")}, "saved": {Version: 2, Data: []byte("new")}, "buried": {Gone: true},
		"begun anew": {Version: 1, Data: []byte("new")}, "forgotten": {},
	} {
		wantRow(t, s, uid, want)
	}

	// In one group, too.
	s = New(e, keysOf(t, older, newer))
	c, err := s.rewrapped("saved", stored(t, s, "saved"))
	if err != nil {
		t.Fatal(err)
	}
	if refused := errors.Join(commitGroup(t, s, saving(t, s, "saved", 2, "newest"), c)...); refused != nil {
		t.Error(refused)
	}
	wantRow(t, s, "saved", Row{Version: 3, Data: []byte("newest")})
	if c, err = s.rewrapped("rewrapped", stored(t, s, "rewrapped")); err != nil {
		t.Fatal(err)
	}
	if refused := errors.Join(commitGroup(t, s, c, saving(t, s, "rewrapped", 1, "newest"))...); refused != nil {
		t.Error(refused)
	}
	wantRow(t, s, "rewrapped", Row{Version: 2, Data: []byte("newest")})
}
