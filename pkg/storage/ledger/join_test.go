// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

// named is a task that names an issue, or no issue if number is 0.
func named(name, parent string, number int) *v1alpha1.Task {
	t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon),
		Labels: map[string]string{"platform.ai/github-target": "issue", "platform.ai/github-number": fmt.Sprint(number)}, Annotations: map[string]string{"platform.ai/github-repository": "o/r"},
	}}
	if parent != "" {
		t.Status.Delegation = &v1alpha1.TaskDelegation{ParentUID: types.UID("uid-" + parent), RootUID: types.UID("uid-" + parent)}
	}
	return t
}

// change stores a state of a task, as a change of its object does.
func (s *store) change(old, now runtime.Object) {
	s.t.Helper()
	if err := s.e.Commit(commit(ledger.Tasks{Ledger: s.Ledger}.Change(old, now))); err != nil {
		s.t.Fatal(err)
	}
}

type commit func(engine.Batch) error

func (c commit) Sequence(b engine.Batch) error { return c(b) }
func (commit) Publish()                        {}

// joined returns the names of the tasks that have a join.
func (s *store) joined(j usage.Join) string {
	s.t.Helper()
	var names []string
	for t, err := range s.view(s.clock.Now()).Joined(j) {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (s *store) rows(prefix string) (n int) {
	s.t.Helper()
	it, err := s.e.NewIter([]byte(prefix), append([]byte(prefix), 0xff))
	if err != nil {
		s.t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func issue(n int64) usage.Subject {
	return usage.Subject{Kind: usage.KindIssue, Repository: "o/r", Number: n}
}

// TestJoins: what belongs together is found by its index, also in a store of a version without one, and nothing of the index
// is left of what retention removed.
func TestJoins(t *testing.T) {
	s := open(t)
	parent, child, moved := named("parent", "", 1), named("child", "parent", 0), named("moved", "", 2)
	for _, task := range []*v1alpha1.Task{parent, child, moved} {
		s.change(nil, task)
	}
	later := named("moved", "", 1)
	s.change(moved, later)
	link := usage.Link{ID: "l", Namespace: "ns", TaskUID: "uid-child", Repository: "o/r", Number: 7, GithubID: 70, Origin: usage.OriginCreated}
	if err := s.putLink(link); err != nil {
		t.Fatal(err)
	}
	s.clock.Step(time.Second)
	check := func(when string) {
		t.Helper()
		if !s.view(s.clock.Now()).Indexed() {
			t.Fatalf("%s: the index is not complete", when)
		}
		for j, want := range map[usage.Join]string{
			usage.JoinSubject(issue(1)):                                               "moved parent",
			usage.JoinSubject(issue(2)):                                               "moved", // it named that issue once
			usage.JoinWork(issue(1).ID("uid-of-ns")):                                  "moved parent",
			usage.JoinWork(issue(1).ID("uid-of-another")):                             "",
			usage.JoinTask("uid-parent"):                                              "child parent",
			usage.JoinTask("uid-par"):                                                 "",
			usage.JoinSubject(usage.Pull("O/R", 7)):                                   "child",
			usage.JoinSubject(usage.Subject{Kind: usage.KindPullRequest, Number: 70}): "child",
		} {
			if got := s.joined(j); got != want {
				t.Errorf("%s: %s leads to %q, want %q", when, j, got, want)
			}
		}
		for repository, want := range map[string]int{"O/R": 1, "o/other": 0} {
			n := 0
			for l, err := range s.view(s.clock.Now()).Unmerged(repository) {
				if n++; err != nil || l.ID != "l" {
					t.Errorf("%s: link %+v, %v", when, l, err)
				}
			}
			if n != want {
				t.Errorf("%s: %d links of %s are not merged, want %d", when, n, repository, want)
			}
		}
		for uid, want := range map[string]int{"uid-child": 1, "uid-parent": 0} {
			n := 0
			for l, err := range s.view(s.clock.Now()).Links(uid) {
				if n++; err != nil || l.ID != "l" {
					t.Errorf("%s: link %+v, %v", when, l, err)
				}
			}
			if n != want {
				t.Errorf("%s: %s has %d links, want %d", when, uid, n, want)
			}
		}
	}
	s.append("moved", begin(1), end(1, 1, 1))
	var id string
	for o, err := range s.view(s.clock.Now()).Observations(usage.Period{}) {
		if id = o.ID; err != nil {
			t.Fatal(err)
		}
	}
	joins := check
	check = func(when string) {
		t.Helper()
		joins(when)
		if o, err := s.view(s.clock.Now()).Observation(id); err != nil || o == nil || o.ID != id || o.Status != usage.StatusCompleted {
			t.Errorf("%s: the observation by its ID is %+v, %v", when, o, err)
		}
	}
	check("written")
	s.restart(false)
	check("after a restart")
	old := func(write func(engine.Batch) error) { // what an earlier version does to the store
		t.Helper()
		b, err := s.e.NewBatch()
		if err == nil {
			err = errors.Join(write(b), s.e.Apply(b, engine.Sync))
		}
		if err != nil {
			t.Fatal(err)
		}
		s.restart(false)
		if s.view(s.clock.Now()).Indexed() {
			t.Error("the index counts as complete")
		}
		if err := (ledger.Indexer{Ledger: s.Ledger}).Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	old(func(b engine.Batch) error {
		return errors.Join(b.DeleteRange([]byte("ud"), []byte("ue")), b.DeleteRange([]byte("ui"), []byte("ul")), b.Delete([]byte("uv")))
	})
	check("of an older store")
	old(func(b engine.Batch) error { // which has the index of joins
		newest, _, err := s.e.Get([]byte("um"))
		return errors.Join(err, b.DeleteRange([]byte("ui"), []byte("uj")), b.Set([]byte("uv"), newest))
	})
	check("of a store without the index of IDs")
	old(func(b engine.Batch) error { // which has all other indexes
		newest, _, err := s.e.Get([]byte("um"))
		return errors.Join(err, b.DeleteRange([]byte("ud"), []byte("ue")), b.Set([]byte("uv"), append(newest, 1)))
	})
	check("of a store without the rows of links that are not merged")
	old(func(b engine.Batch) error { // after a downgrade
		return errors.Join(b.DeleteRange([]byte("ui"), []byte("ul")), b.Set([]byte("um"), binary.BigEndian.AppendUint64(nil, uint64(s.clock.Now().UnixNano()))))
	})
	s.clock.Step(time.Second)
	check("after a downgrade")
	s.restart(false)
	check("after the last restart")

	for _, task := range []*v1alpha1.Task{parent, child, later} {
		s.change(task, nil) // deleted, so it has ended
	}
	s.append("parent", begin(1), end(1, 1, 1))
	s.clock.Step(100 * 24 * time.Hour)
	if n, err := (ledger.Retention{Ledger: s.Ledger}).Expire(t.Context(), s.clock.Now().Add(-time.Hour)); err != nil || n != 1 {
		t.Fatalf("removed %d cohorts, want the one of the issue: %v", n, err)
	}
	for _, prefix := range []string{"ud", "ui", "uj", "uk", "ul", "ut", "uo", "ux", "uy"} {
		if n := s.rows(prefix); n != 0 {
			t.Errorf("%d rows are left under %s", n, prefix)
		}
	}
}

// TestRetentionWaits: records are not removed while a report reads them.
func TestRetentionWaits(t *testing.T) {
	s := open(t)
	for i := range 50 {
		s.task(fmt.Sprint("t", i), "", true)
	}
	s.clock.Step(time.Hour)
	v, err := s.At(t.Context(), "ns", s.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	removed := make(chan error, 1)
	go func() {
		_, err := ledger.Retention{Ledger: s.Ledger}.Expire(t.Context(), s.clock.Now())
		removed <- err
	}()
	tasks := 0
	for task, err := range v.Tasks(usage.Period{}) {
		if tasks++; err != nil {
			t.Fatal(err)
		}
		used := 0
		for _, err := range v.OfTask(task.UID) {
			if used++; err != nil {
				t.Fatal(err)
			}
		}
		if used != 1 {
			t.Errorf("task %s has %d observations", task.Name, used)
		}
	}
	v.Close()
	if err := <-removed; err != nil || tasks != 50 {
		t.Errorf("%d tasks, %v", tasks, err)
	}
	s.want()
}
