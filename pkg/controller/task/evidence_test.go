// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/workspace"
)

// TestEvidence: a pull request that the publication made counts as created, with its receipt, and one of somebody else does not. A merge is
// not invented. Only a failure that may pass holds the task up.
func TestEvidence(t *testing.T) {
	var recorded *v1alpha1.UsageLink
	var failure error
	e := evidence{create: func(_ context.Context, l *v1alpha1.UsageLink) error { recorded = l; return failure }}
	task := task(finalizing)
	task.Status.Delivery.PublicationID = "pub-1"
	pulled := func(how, state string) *workspace.Pulled {
		return &workspace.Pulled{Outcome: "Open", How: how, Repository: "Ada/shop", Receipt: &v1alpha1.PullRequestReceipt{ID: "70", Number: 7, State: state, HeadSHA: "abc", URL: "https://git.example/Ada/shop/pull/7"}}
	}
	for _, c := range []struct {
		how, state string
		origin     v1alpha1.UsageLinkOrigin
		evidence   string
		want       v1alpha1.UsageLinkState
	}{
		{"Created", "open", v1alpha1.UsageLinkCreated, "pub-1", v1alpha1.UsageLinkOpen},
		{"Found", "closed", v1alpha1.UsageLinkCreated, "pub-1", v1alpha1.UsageLinkClosed},
		{"Found", "merged", v1alpha1.UsageLinkCreated, "pub-1", v1alpha1.UsageLinkUnknown},
		{"Adopted", "open", v1alpha1.UsageLinkAssisted, "", v1alpha1.UsageLinkOpen},
	} {
		if err := e.record(t.Context(), task, pulled(c.how, c.state)); err != nil {
			t.Fatal(err)
		}
		l := recorded.Spec
		if l.Origin != c.origin || l.EvidenceID != c.evidence || l.State != c.want || l.Repository != "Ada/shop" || l.Number != 7 || l.GitHubID != 70 || l.TaskUID != task.UID || l.Ready {
			t.Errorf("%s, %s: %+v", c.how, c.state, l)
		}
	}
	links := v1alpha1.Resource("usagelinks")
	for _, c := range []struct {
		failure error
		again   bool
	}{
		{apierrors.NewConflict(links, "x", errors.New("a later observation is recorded")), false},
		{apierrors.NewForbidden(links, "x", errors.New("no")), false},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 501}}, false},
		{apierrors.NewTooManyRequests("wait", 1), true},
		{apierrors.NewServiceUnavailable("away"), true},
		{errors.New("connection refused"), true},
	} {
		failure = c.failure
		if err := e.record(t.Context(), task, pulled("Created", "open")); (err != nil) != c.again {
			t.Errorf("%v: %v", c.failure, err)
		}
	}
}
