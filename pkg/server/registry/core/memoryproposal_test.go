// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

type decision struct {
	name string
	body func() runtime.Object
}

func decisions() []decision {
	review := func(s v1alpha1.MemoryProposalState) func() runtime.Object {
		return func() runtime.Object {
			return &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{Status: s, Reviewer: "Ann"}}
		}
	}
	return []decision{
		{"accept", review(v1alpha1.ProposalAccepted)},
		{"reject", review(v1alpha1.ProposalRejected)},
		{"apply", func() runtime.Object { return &v1alpha1.MemoryProposalApplication{} }},
		{"archive", func() runtime.Object { return &v1alpha1.MemoryChange{} }},
	}
}

func decisionPath(decision string) string {
	if decision == "accept" || decision == "reject" {
		return "memoryproposals/review"
	}
	return "memoryproposals/" + decision
}

// Every sequence of up to four actions leads to the states of this table, and every other action is refused with 409.
func TestProposalStates(t *testing.T) {
	t.Parallel()
	next := map[v1alpha1.MemoryProposalState]map[string]v1alpha1.MemoryProposalState{
		v1alpha1.ProposalPending:  {"accept": v1alpha1.ProposalAccepted, "reject": v1alpha1.ProposalRejected, "archive": v1alpha1.ProposalArchived},
		v1alpha1.ProposalAccepted: {"apply": v1alpha1.ProposalApplied, "archive": v1alpha1.ProposalArchived},
		v1alpha1.ProposalRejected: {"archive": v1alpha1.ProposalArchived},
		v1alpha1.ProposalApplied:  {"apply": v1alpha1.ProposalApplied},
		v1alpha1.ProposalArchived: {"archive": v1alpha1.ProposalArchived},
	}
	s := coretest.Start(t)
	n := 0
	var try func(path []decision)
	try = func(path []decision) {
		if len(path) == 4 {
			n++
			decide(t, s, fmt.Sprintf("p%d", n), path, next)
			return
		}
		for _, a := range decisions() {
			try(append(path, a))
		}
	}
	try(nil)
}

func decide(t *testing.T, s *coretest.Server, name string, path []decision, next map[v1alpha1.MemoryProposalState]map[string]v1alpha1.MemoryProposalState) {
	t.Helper()
	propose(t, s, name, "memory")
	state := v1alpha1.ProposalPending
	for i, a := range path {
		want, allowed := next[state][a.name]
		_, err := s.CreateNamed(s.As("decider", nil), decisionPath(a.name), name, a.body())
		if allowed != (err == nil) || err != nil && !apierrors.IsConflict(err) {
			t.Fatalf("%s, action %d, %s from %s: %v; allowed: %v", name, i, a.name, state, err, allowed)
		}
		if allowed {
			state = want
		}
		if got := proposal(t, s, name).Status.State; got != state {
			t.Fatalf("%s, after %s: %s, want %s", name, a.name, got, state)
		}
	}
}

func propose(t *testing.T, s *coretest.Server, name, kind string) {
	t.Helper()
	_, err := s.Apply("memoryproposals", fmt.Sprintf(`apiVersion: core.platform.ai/v1alpha1
kind: MemoryProposal
metadata: {name: %s}
spec: {title: t, type: %s, skillName: x, content: "the password is hunter2secret, token=ghp_0123456789abcdefghijABCDEFGHIJ012345", description: "why\nTags: a, b\nTags: c"}`, name, kind))
	if err != nil {
		t.Fatal(err)
	}
}

func proposal(t *testing.T, s *coretest.Server, name string) *v1alpha1.MemoryProposal {
	t.Helper()
	obj, err := s.Storage["memoryproposals"].(rest.Getter).Get(s.User(), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*v1alpha1.MemoryProposal)
}

func mustCreate(t *testing.T, s *coretest.Server, who, path, name string, body runtime.Object) runtime.Object {
	t.Helper()
	out, err := s.CreateNamed(s.As(who, nil), path, name, body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Of many callers who apply at the same time, all get the one memory.
func TestProposalsAreAppliedOnce(t *testing.T) {
	s := coretest.Start(t)
	propose(t, s, "p", "memory")
	mustCreate(t, s, "decider", "memoryproposals/review", "p", decisions()[0].body())
	var all sync.WaitGroup
	got := make([]*v1alpha1.Memory, 16)
	for i := range got {
		all.Go(func() {
			out, err := s.CreateNamed(s.As(fmt.Sprintf("decider%d", i), nil), "memoryproposals/apply", "p", &v1alpha1.MemoryProposalApplication{})
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = out.(*v1alpha1.Memory)
		})
	}
	all.Wait()
	for _, m := range got {
		if m == nil || m.UID != got[0].UID {
			t.Fatalf("%v, want the memory %s", m, got[0].UID)
		}
	}
	m, p := got[0], proposal(t, s, "p")
	if p.Status.MemoryName != m.Name || p.Status.MemoryUID != m.UID || m.Status.ProposalUID != p.UID || m.Status.ProposalName != "p" {
		t.Errorf("memory %+v of proposal %+v", m.Status, p.Status)
	}
	if m.Spec.Source != v1alpha1.MemorySourceProposal || strings.Join(m.Spec.Tags, " ") != "a b" || strings.Contains(m.Spec.Content, "ghp_") || strings.Contains(p.Spec.Content, "ghp_") {
		t.Errorf("spec %+v", m.Spec)
	}
	list, err := s.Storage["memories"].(rest.Lister).List(s.User(), nil)
	if err != nil || len(list.(*v1alpha1.MemoryList).Items) != 1 {
		t.Errorf("%v, %v; want one memory", list, err)
	}
	// The memory is deleted for good: applying again does not bring it back.
	s.Remove("memories", m.Name)
	if _, err := s.CreateNamed(s.As("decider", nil), "memoryproposals/apply", "p", &v1alpha1.MemoryProposalApplication{}); !apierrors.IsNotFound(err) {
		t.Errorf("apply after the memory was deleted: %v", err)
	}
}

// Other types than memory cannot be applied by anybody. Who proposed may apply what was accepted.
func TestApplyingIsRefused(t *testing.T) {
	s := coretest.Start(t)
	propose(t, s, "p", "memory")
	propose(t, s, "q", "skill")
	for _, name := range []string{"p", "q"} {
		mustCreate(t, s, "decider", "memoryproposals/review", name, decisions()[0].body())
	}
	propose(t, s, "own", "memory")
	if _, err := s.CreateNamed(s.User(), "memoryproposals/apply", "own", &v1alpha1.MemoryProposalApplication{}); !apierrors.IsConflict(err) {
		t.Errorf("apply by the proposer, before it was accepted: %v", err)
	}
	mustCreate(t, s, "decider", "memoryproposals/review", "own", decisions()[0].body())
	mustCreate(t, s, "someone", "memoryproposals/apply", "own", &v1alpha1.MemoryProposalApplication{})
	if _, err := s.CreateNamed(s.As("decider", nil), "memoryproposals/apply", "q", &v1alpha1.MemoryProposalApplication{}); !apierrors.IsConflict(err) {
		t.Errorf("apply of a skill: %v", err)
	}
	// A memory with the name that the proposal's would have is not taken for it.
	want := proposal(t, s, "p")
	m := &v1alpha1.Memory{ObjectMeta: metav1.ObjectMeta{Name: appliedName(t, s, want), Namespace: "default"}, Spec: v1alpha1.MemorySpec{Content: "planted"}}
	if _, err := s.Create(s.User(), "memories", m); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateNamed(s.As("decider", nil), "memoryproposals/apply", "p", &v1alpha1.MemoryProposalApplication{}); !apierrors.IsConflict(err) {
		t.Errorf("apply over a planted memory: %v", err)
	}
	if got := proposal(t, s, "p").Status.State; got != v1alpha1.ProposalAccepted {
		t.Errorf("state %s after a refused apply", got)
	}
}

// appliedName returns the name of the memory that a proposal would make, from a dry run.
func appliedName(t *testing.T, s *coretest.Server, p *v1alpha1.MemoryProposal) string {
	t.Helper()
	out, err := s.Storage["memoryproposals/apply"].(rest.NamedCreater).Create(coretest.WithPath(s.As("decider", nil), "memoryproposals/apply"), p.Name,
		&v1alpha1.MemoryProposalApplication{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return out.(*v1alpha1.Memory).Name
}

// Nobody writes the status or changes the spec.
func TestOnlyTheServerWritesProposals(t *testing.T) {
	s := coretest.Start(t)
	propose(t, s, "p", "memory")
	_, err := s.Update(s.User(), "memoryproposals/status", "p", func(o runtime.Object) { o.(*v1alpha1.MemoryProposal).Status.State = v1alpha1.ProposalAccepted })
	if !apierrors.IsInvalid(err) {
		t.Errorf("write of the status: %v", err)
	}
	_, err = s.Update(s.User(), "memoryproposals", "p", func(o runtime.Object) { o.(*v1alpha1.MemoryProposal).Spec.Content = "other" })
	if !apierrors.IsInvalid(err) {
		t.Errorf("change of the spec: %v", err)
	}
	label := func(o runtime.Object) { o.(*v1alpha1.MemoryProposal).Labels = map[string]string{"team": "a"} }
	if _, err = s.Update(s.User(), "memoryproposals", "p", label); err != nil {
		t.Errorf("label: %v", err)
	}
}
