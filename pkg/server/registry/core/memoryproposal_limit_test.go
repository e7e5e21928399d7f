// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// TestProposalsWaitForNoWebhook: while admission judges the proposals of a task, which may take long, other tasks propose. A task
// has no more proposals than are allowed, however many are judged at the same time.
func TestProposalsWaitForNoWebhook(t *testing.T) {
	s := start(t)
	busy, other := s.worker(s.mustTask("busy", "{type: ai, prompt: p}")), s.worker(s.mustTask("other", "{type: ai, prompt: p}"))
	propose := func(ctx context.Context, name string, admit rest.ValidateObjectFunc) error {
		p := &v1alpha1.MemoryProposal{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1alpha1.MemoryProposalSpec{Title: "t", Type: v1alpha1.ProposalMemory}}
		_, err := s.Storage["memoryproposals"].(rest.Creater).Create(coretest.WithPath(ctx, "memoryproposals"), p, admit, &metav1.CreateOptions{})
		return err
	}
	const before, atOnce = mostProposals - 5, 20
	for i := range before {
		if err := propose(busy, fmt.Sprint("p", i), rest.ValidateAllObjectFunc); err != nil {
			t.Fatal(err)
		}
	}
	judged, verdict := make(chan struct{}, atOnce), make(chan struct{})
	webhook := func(context.Context, runtime.Object) error {
		judged <- struct{}{}
		<-verdict
		return nil
	}
	results := make(chan error, atOnce)
	go func() { results <- propose(busy, "first", webhook) }()
	<-judged
	if err := propose(other, "other", rest.ValidateAllObjectFunc); err != nil {
		t.Errorf("another task: %v", err)
	}
	for i := range atOnce - 1 {
		go func() { results <- propose(busy, fmt.Sprint("more", i), webhook) }()
	}
	made, refused := 0, 0
	count := func(err error) {
		switch {
		case err == nil:
			made++
		case apierrors.IsForbidden(err):
			refused++
		default:
			t.Error(err)
		}
	}
	for range atOnce - 5 { // those for which there is no room are refused before they are judged
		count(<-results)
	}
	close(verdict)
	for range 5 {
		count(<-results)
	}
	if made != 5 || refused != atOnce-5 {
		t.Errorf("%d were made and %d refused", made, refused)
	}
}
