// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usagereport

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/usage"
)

// Links returns the resource usagelinks, by which controllers record pull requests.
func (r *Resource) Links() resource.Resource {
	return &resource.Definition[*v1alpha1.UsageLink]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("usagelinks"),
		Kind:     "UsageLink",
		Singular: "usagelink",
		Shape:    resource.Action[*v1alpha1.UsageLink]{Create: r.link},
	}
}

// link records one observation. One that is older than the recorded one is refused (409). A merge that was observed once stays.
func (r *Resource) link(ctx context.Context, l *v1alpha1.UsageLink) (*v1alpha1.UsageLink, error) {
	namespace, now := request.NamespaceValue(ctx), r.o.Clock.Now()
	if r.o.Ledger == nil || r.o.ChangeLink == nil {
		return nil, problem(http.StatusNotImplemented, "NotImplemented", "this server records no usage of models")
	}
	if errs := checkLink(&l.Spec, now); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("UsageLink").GroupKind(), "", errs)
	}
	next := linkOf(namespace, &l.Spec, now)
	err := r.o.ChangeLink(ctx, namespace, next.ID, func(v usage.View, old *usage.Link) (*usage.Link, error) {
		if err := admit(v, &next, old); err != nil || resource.IsDryRun(ctx) {
			return nil, err
		}
		return &next, nil
	})
	if err != nil {
		return nil, err
	}
	l.Namespace, l.Spec = namespace, specOf(&next)
	return l, nil
}

// admit decides whether an observation is recorded, and adds what is known of the link.
func admit(v usage.View, next, old *usage.Link) error {
	switch {
	case old == nil:
		t, err := v.Task(next.TaskUID)
		if err == nil && t == nil {
			err = problem(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("spec.taskUID: no task of the namespace %q has the UID %q", next.Namespace, next.TaskUID))
		}
		return err
	case next.ObservedAt.Before(old.ObservedAt):
		return apierrors.NewConflict(v1alpha1.Resource("usagelinks"), next.ID, fmt.Errorf("a later observation, of %s, is recorded", old.ObservedAt.Format(time.RFC3339Nano)))
	case old.GithubID != 0 && next.GithubID != 0 && next.GithubID != old.GithubID:
		return apierrors.NewConflict(v1alpha1.Resource("usagelinks"), next.ID, fmt.Errorf("spec.githubID: the code host gave the pull request that the task worked on the id %d", old.GithubID))
	}
	keep(next, old)
	return nil
}

// Claim records that a task worked on a pull request, as a call on the code host has confirmed. What is known of the link stays, unless the
// claim proves more, or says that the pull request was merged.
func (r *Resource) Claim(ctx context.Context, namespace string, l v1alpha1.UsageLinkSpec) error {
	if r.o.Ledger == nil || r.o.ChangeLink == nil {
		return nil // no usage is recorded
	}
	now := r.o.Clock.Now()
	claim := linkOf(namespace, &l, now)
	if claim.State == usage.PRMerged && claim.MergedAt.IsZero() {
		claim.MergedAt = now.Truncate(time.Second).UTC()
	}
	return r.o.ChangeLink(ctx, namespace, claim.ID, func(v usage.View, old *usage.Link) (*usage.Link, error) {
		if old == nil {
			t, err := v.Task(claim.TaskUID)
			if t == nil {
				return nil, err
			}
			return &claim, err
		}
		next, more := *old, claim.Origin.Proves(old.Origin)
		if more {
			next.Origin, next.EvidenceID = claim.Origin, claim.EvidenceID
		}
		if claim.State == usage.PRMerged && old.State != usage.PRMerged {
			next.State, next.MergedAt, next.ObservedAt, next.Ready, next.ReadinessReason, more = claim.State, claim.MergedAt, claim.ObservedAt, false, "", true
		}
		if !more {
			return nil, nil //nolint:nilnil // nothing is to be recorded
		}
		return &next, nil
	})
}

// keep adds what an earlier observation of the same link proved: a merge, and what the task has done.
func keep(next *usage.Link, old *usage.Link) {
	if old.State == usage.PRMerged {
		next.State, next.MergedAt, next.Ready = old.State, old.MergedAt, false
	}
	if old.EvidenceID != "" && old.Origin == next.Origin || old.Origin.Proves(next.Origin) {
		next.Origin, next.EvidenceID = old.Origin, old.EvidenceID
	}
	next.GithubID = cmp.Or(next.GithubID, old.GithubID)
	if next.CreatedAt.IsZero() {
		next.CreatedAt = old.CreatedAt
	}
}

func checkLink(s *v1alpha1.UsageLinkSpec, now time.Time) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if owner, name, ok := strings.Cut(s.Repository, "/"); !ok || owner == "" || name == "" || strings.ContainsAny(name, "/ \x00") {
		errs = append(errs, field.Invalid(path.Child("repository"), s.Repository, "must be OWNER/REPOSITORY"))
	}
	if s.Ready && s.State != v1alpha1.UsageLinkOpen {
		errs = append(errs, field.Invalid(path.Child("ready"), s.Ready, "may be true only if state is open"))
	}
	if (s.MergedAt != nil) != (s.State == v1alpha1.UsageLinkMerged) {
		errs = append(errs, field.Invalid(path.Child("mergedAt"), field.OmitValueType{}, "must be given if state is merged, and only then"))
	}
	if s.ObservedAt != nil && s.ObservedAt.After(now) {
		errs = append(errs, field.Invalid(path.Child("observedAt"), field.OmitValueType{}, "must not be in the future"))
	}
	return errs
}

// linkOf returns the record of an observation. A creation without a receipt is assistance.
func linkOf(namespace string, s *v1alpha1.UsageLinkSpec, now time.Time) usage.Link {
	l := usage.Link{
		ID: usage.LinkID(string(s.TaskUID), s.Repository, s.Number), Namespace: namespace, TaskUID: string(s.TaskUID), Repository: strings.ToLower(s.Repository), Number: s.Number, GithubID: s.GitHubID,
		URL: s.URL, HeadSHA: s.HeadSHA, Origin: usage.Origin(s.Origin), EvidenceID: s.EvidenceID, State: usage.PRState(s.State), Ready: s.Ready,
		ReadinessReason: s.ReadinessReason, ObservedAt: now,
	}
	if l.Origin == usage.OriginCreated && l.EvidenceID == "" {
		l.Origin = usage.OriginAssisted
	}
	if s.ObservedAt != nil {
		l.ObservedAt = s.ObservedAt.UTC()
	}
	l.CreatedAt, l.MergedAt, l.ClosedAt = timeOf(s.CreatedAt), timeOf(s.MergedAt), timeOf(s.ClosedAt)
	return l
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// specOf shows a record.
func specOf(l *usage.Link) v1alpha1.UsageLinkSpec {
	at := func(t time.Time) *metav1.Time {
		if t.IsZero() {
			return nil
		}
		return &metav1.Time{Time: t}
	}
	return v1alpha1.UsageLinkSpec{
		TaskUID: types.UID(l.TaskUID), Repository: l.Repository, Number: l.Number, GitHubID: l.GithubID, URL: l.URL, HeadSHA: l.HeadSHA,
		Origin: v1alpha1.UsageLinkOrigin(l.Origin), EvidenceID: l.EvidenceID, State: v1alpha1.UsageLinkState(l.State), Ready: l.Ready,
		ReadinessReason: l.ReadinessReason, CreatedAt: at(l.CreatedAt), MergedAt: at(l.MergedAt), ClosedAt: at(l.ClosedAt),
		ObservedAt: &metav1.MicroTime{Time: l.ObservedAt},
	}
}

// maxUnmerged is how many links Unmerged returns.
const maxUnmerged = 200

// Unmerged returns links of tasks of a namespace to pull requests of a repository, OWNER/NAME, that are not known to be merged: those that
// were observed the longest time ago, the first one first.
func (r *Resource) Unmerged(ctx context.Context, namespace, repository string) (*v1alpha1.UsageLinkPage, error) {
	list := &v1alpha1.UsageLinkPage{Links: []v1alpha1.UsageLinkSpec{}}
	if r.o.Ledger == nil {
		return list, nil
	}
	v, err := r.o.Ledger.At(ctx, namespace, r.o.Clock.Now())
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for l, err := range v.Unmerged(repository) {
		if err != nil {
			return nil, err
		}
		if list.Links = append(list.Links, specOf(l)); len(list.Links) == maxUnmerged {
			break
		}
	}
	return list, nil
}
