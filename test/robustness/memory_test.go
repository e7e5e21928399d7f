// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
)

// TestProposalsUnderKills kills the server while proposals are made, reviewed and applied. What was acknowledged stays,
// and applying again completes what a kill interrupted: one memory for each proposal, which a search finds.
func TestProposalsUnderKills(t *testing.T) {
	const proposals = 60
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	s := kit.StartServer(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client := func(as string) *versioned.Clientset {
		t.Helper()
		cfg := config(t, "", s.Kubeconfig)
		cfg.Impersonate.UserName, cfg.Impersonate.Groups = as, []string{"system:masters"}
		c, err := versioned.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ann, bob := client("ann"), client("bob")
	var all sync.WaitGroup
	apply := func(name string) (*v1alpha1.Memory, error) {
		return bob.CoreV1alpha1().MemoryProposals("default").ApplyMemory(ctx, name, &v1alpha1.MemoryProposalApplication{}, metav1.CreateOptions{})
	}
	acknowledged := make([]*v1alpha1.Memory, proposals)
	for i := range proposals {
		all.Go(func() {
			name := fmt.Sprintf("p%d", i)
			p := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemoryProposalSpec{Title: fmt.Sprintf("title%d", i), Content: fmt.Sprintf("word%d", i)}}
			review := &v1alpha1.MemoryProposalReview{Spec: v1alpha1.MemoryProposalReviewSpec{Status: v1alpha1.ProposalAccepted}}
			for ctx.Err() == nil { // each step is repeated until one after it is acknowledged
				_, _ = ann.CoreV1alpha1().MemoryProposals("default").Create(ctx, p, metav1.CreateOptions{})
				_, _ = bob.CoreV1alpha1().MemoryProposals("default").Review(ctx, name, review, metav1.CreateOptions{})
				if m, err := apply(name); err == nil {
					acknowledged[i] = m
					return
				}
			}
		})
	}
	for range rounds(t) {
		pause(ctx, time.Duration(random.Int64N(int64(300*time.Millisecond))))
		s.Kill()
		s.Restart(t)
	}
	all.Wait()
	list, err := ann.CoreV1alpha1().Memories("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != proposals {
		t.Errorf("seed %d: %d memories of %d proposals", seed, len(list.Items), proposals)
	}
	for i, m := range acknowledged {
		name := fmt.Sprintf("p%d", i)
		if m == nil {
			t.Errorf("seed %d: %s was not applied in time", seed, name)
			continue
		}
		p, err := ann.CoreV1alpha1().MemoryProposals("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || p.Status.State != v1alpha1.ProposalApplied || p.Status.MemoryUID != m.UID || p.Status.MemoryName != m.Name {
			t.Errorf("seed %d: %s: %v, %+v; its memory is %s", seed, name, err, p.Status, m.UID)
		}
		if again, err := apply(name); err != nil || again.UID != m.UID {
			t.Errorf("seed %d: %s applied again: %v", seed, name, err)
		}
		search := &v1alpha1.MemorySearch{Spec: v1alpha1.MemorySearchSpec{Query: fmt.Sprintf("word%d", i)}}
		found, err := ann.CoreV1alpha1().MemorySearches("default").Create(ctx, search, metav1.CreateOptions{})
		if err != nil || len(found.Status.Items) != 1 || found.Status.Items[0].Memory.UID != m.UID {
			t.Errorf("seed %d: search of %s: %v, %+v", seed, name, err, found)
		}
	}
}
