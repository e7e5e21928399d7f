// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/test/kit"
)

func newView(tb testing.TB) *view {
	tb.Helper()
	e, err := local.Open(tb.Context(), local.Options{Dir: localtest.Dir, FS: localtest.NewDisk().FS()})
	if err != nil {
		tb.Fatal(err)
	}
	log, err := eventlog.Open(tb.Context(), e, eventlog.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := log.Close(); err != nil {
			tb.Error(err)
		}
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &view{log: log, clock: clock.RealClock{}, places: lru.New(maxPlaces), waiting: newWaiting()}
}

// script changes a few streams at random.
type script struct {
	t    *testing.T
	v    *view
	rand *rand.Rand
	life map[eventlog.Stream]int // the number of the current task of that name; the UID is left out of the key
}

func (s *script) stream(ns, task string) eventlog.Stream {
	at := eventlog.Stream{Namespace: ns, Task: task}
	at.UID = types.UID(fmt.Sprintf("%s-%s-%d", ns, task, s.life[at]))
	return at
}

func (s *script) id(at eventlog.Stream, n int) (string, v1alpha1.ApprovalSpec) {
	digest, err := approval.Digest(fmt.Append(nil, n))
	if err != nil {
		s.t.Fatal(err)
	}
	spec := v1alpha1.ApprovalSpec{TaskName: at.Task, TaskUID: at.UID, TargetTool: "exec", TargetArgsDigest: digest}
	return approval.ID(at.Namespace, at.Task, at.UID, spec.TargetTool, digest, ""), spec
}

func (s *script) append(at eventlog.Stream, e ...*v1alpha1.ExecutionEvent) {
	s.t.Helper()
	if _, err := s.v.log.Append(s.t.Context(), at, e); err != nil && !errors.Is(err, eventlog.ErrTrimmed) {
		s.t.Fatal(err)
	}
}

func (s *script) step() {
	s.t.Helper()
	at := s.stream([]string{"a", "b"}[s.rand.IntN(2)], []string{"x", "y", "z"}[s.rand.IntN(3)])
	id, spec := s.id(at, s.rand.IntN(4))
	switch s.rand.IntN(12) {
	case 0, 1, 2, 3:
		s.append(at, approval.RequestEvent(at.Namespace, spec))
	case 4, 5, 6:
		typ := []v1alpha1.EventType{v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined, v1alpha1.EventApprovalExpired}[s.rand.IntN(3)]
		s.append(at, approval.DecisionEvent(typ, id, approval.Decision{TaskUID: at.UID, Actor: "bob"}))
	case 7, 8:
		o := []v1alpha1.ApprovalOutcome{v1alpha1.ApprovalRunning, v1alpha1.ApprovalFailed}[s.rand.IntN(2)]
		s.append(at, &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage}, approval.OutcomeEvent(id, approval.Outcome{Outcome: o, TaskUID: at.UID}))
	case 9:
		head, err := s.v.log.Head(s.t.Context(), at)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.v.log.Trim(s.t.Context(), at, head.LatestSeq/2); err != nil {
			s.t.Fatal(err)
		}
	case 10: // a new task replaces an earlier one of the same name
		s.life[eventlog.Stream{Namespace: at.Namespace, Task: at.Task}]++
		s.append(s.stream(at.Namespace, at.Task), &v1alpha1.ExecutionEvent{Type: v1alpha1.EventTaskCreated})
	case 11:
		if err := s.v.log.DeleteStream(s.t.Context(), at); err != nil {
			s.t.Fatal(err)
		}
		s.life[eventlog.Stream{Namespace: at.Namespace, Task: at.Task}]++
	}
}

// items reads the state at a revision, in pages if limit is set.
func items(t *testing.T, v *view, ctx context.Context, o internalversion.ListOptions, rev uint64, limit int64) map[string]string {
	t.Helper()
	o.ResourceVersion, o.ResourceVersionMatch, o.Limit = strconv.FormatUint(rev, 10), metav1.ResourceVersionMatchExact, limit
	out := map[string]string{}
	for {
		obj, err := v.list(ctx, &o)
		if err != nil {
			t.Fatal(err)
		}
		l := obj.(*v1alpha1.ApprovalList)
		for i := range l.Items {
			out[l.Items[i].Namespace+"/"+l.Items[i].Name] = inWords(&l.Items[i])
		}
		if o.Continue = l.Continue; o.Continue == "" {
			return out
		}
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
}

func inWords(a *v1alpha1.Approval) string {
	return fmt.Sprintf("%s %s %s", a.ResourceVersion, a.Status.State, a.Status.ExecutionOutcome)
}

// A watch from any revision, with any selection, agrees at each of its events
// with a list of that revision.
func TestWatchAgreesWithLists(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { watchAgreesWithLists(t, seed) })
	}
}

func watchAgreesWithLists(t *testing.T, seed uint64) {
	t.Helper()
	v := newView(t)
	s := &script{t, v, rand.New(rand.NewPCG(seed, 0)), map[eventlog.Stream]int{}}
	var revisions []uint64
	for range 250 {
		s.step()
		revisions = append(revisions, v.log.Revision())
	}
	ends := map[string]string{} // one approval in each task that comes last
	for _, ns := range []string{"a", "b"} {
		for _, task := range []string{"x", "y", "z"} {
			at := s.stream(ns, task)
			id, spec := s.id(at, 99)
			s.append(at, approval.RequestEvent(ns, spec))
			ends[ns+"/"+task] = id
		}
	}
	aID, aSpec := s.id(s.stream("a", "x"), 99)
	for _, tc := range []struct{ ns, fields, labels, end string }{
		{"", "", "", ends["b/z"]},
		{"a", "", "", ends["a/z"]},
		{"b", "spec.taskName=y", "", ends["b/y"]},
		{"a", "status.state=pending", "", ends["a/z"]},
		{"a", "spec.targetTool=" + aSpec.TargetTool + ",spec.targetArgsDigest=" + aSpec.TargetArgsDigest, "", ends["a/z"]},
		{"", "status.state!=declined", "platform.ai/task in (x,y)", ends["b/y"]},
		{"a", "", "platform.ai/task=x", ends["a/x"]},
		{"a", "metadata.name=" + aID, "", aID},
	} {
		o := internalversion.ListOptions{}
		var err error
		if o.FieldSelector, err = fields.ParseSelector(tc.fields); err != nil {
			t.Fatal(err)
		}
		if o.LabelSelector, err = labels.Parse(tc.labels); err != nil {
			t.Fatal(err)
		}
		ctx := request.WithNamespace(t.Context(), tc.ns)
		for _, from := range []uint64{0, revisions[0], revisions[100], revisions[200], revisions[249]} {
			t.Run(fmt.Sprintf("%s %s %s from %d", tc.ns, tc.fields, tc.labels, from), func(t *testing.T) {
				follow(t, v, ctx, o, from, tc.end)
			})
		}
	}
}

func follow(t *testing.T, v *view, ctx context.Context, o internalversion.ListOptions, from uint64, end string) {
	t.Helper()
	have := map[string]string{}
	if from > 0 {
		have = items(t, v, ctx, o, from, 0)
	}
	at := o
	at.ResourceVersion = strconv.FormatUint(from, 10)
	ctx, stop := context.WithTimeout(ctx, kit.Patience) // in case the end never arrives
	defer stop()
	w, err := v.watch(ctx, &at)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		a, ok := e.Object.(*v1alpha1.Approval)
		if !ok {
			t.Fatal(apierrors.FromObject(e.Object))
		}
		key, rev := a.Namespace+"/"+a.Name, number(a.ResourceVersion)
		_, had := have[key]
		if had == (e.Type == watch.Added) {
			t.Fatalf("%s of %s, which was there: %v", e.Type, key, had)
		}
		if have[key] = inWords(a); e.Type == watch.Deleted {
			delete(have, key)
		}
		if rev > from && from > 0 { // the initial events of a watch belong to one state
			if diff := cmp.Diff(items(t, v, ctx, o, rev, 0), have); diff != "" {
				t.Fatalf("at %d, after %s (-list +watch):\n%s", rev, e.Type, diff)
			}
		}
		if a.Name == end {
			break
		}
	}
	if diff := cmp.Diff(items(t, v, ctx, o, v.log.Revision(), 2), have); diff != "" {
		t.Errorf("at the end (-list in pages +watch):\n%s", diff)
	}
}

func TestBrief(t *testing.T) {
	long := ""
	for range 100 {
		long += "ä"
	}
	for in, want := range map[string]string{"": "", "short": "short", long: long[:2*59] + "… (41 more characters)", long[:120]: long[:120]} {
		if got := brief(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
