// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

type parent = resource.Parent[*v1alpha1.MemoryProposal]

// write changes the status of the proposal.
func (r *Resource) write(ctx context.Context, p parent, change func(*v1alpha1.MemoryProposal) error) (*v1alpha1.MemoryProposal, error) {
	return p.Update(byServer(ctx), func(p *v1alpha1.MemoryProposal) error {
		was := p.Status.State
		if err := change(p); err != nil {
			return err
		}
		if p.Status.State != was {
			p.Status.UpdatedAt = r.now()
		}
		return nil
	})
}

// review records a decision without applying it.
func (r *Resource) review(ctx context.Context, p parent, obj runtime.Object) (runtime.Object, error) {
	body, ok := obj.(*v1alpha1.MemoryProposalReview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a MemoryProposalReview, not %T", obj))
	}
	verdict := body.Spec
	if verdict.Status != v1alpha1.ProposalAccepted && verdict.Status != v1alpha1.ProposalRejected {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("status: %q: must be accepted or rejected", verdict.Status))
	}
	rule.Clean(&verdict.Reviewer, &verdict.ReviewNote)
	return r.write(ctx, p, func(p *v1alpha1.MemoryProposal) error {
		s := &p.Status
		if s.State != v1alpha1.ProposalPending {
			return conflict(p, "only a pending proposal can be reviewed; this one is %s", s.State)
		}
		s.State, s.ReviewedBy, s.ReviewNote, s.ReviewedAt = verdict.Status, caller(ctx), verdict.ReviewNote, r.now()
		s.Reviewer = named(verdict.Reviewer, s.ReviewedBy)
		return nil
	})
}

func named(name, otherwise string) string {
	if name != "" {
		return name
	}
	return otherwise
}

// archive closes a proposal without applying it.
func (r *Resource) archive(ctx context.Context, p parent, _ runtime.Object) (runtime.Object, error) {
	return r.write(ctx, p, func(p *v1alpha1.MemoryProposal) error {
		switch p.Status.State {
		case v1alpha1.ProposalApplied:
			return conflict(p, "an applied proposal cannot be archived; disable or delete memory %s instead", p.Status.MemoryName)
		default:
			p.Status.State = v1alpha1.ProposalArchived
			return nil
		}
	})
}

// apply makes the memory. The proposal is marked as applied before the memory is made, and receives the memory's UID
// after that. So it cannot be archived meanwhile, and a repeated request completes what a crash interrupted. The
// memory's name is derived from the proposal, so there is only one.
func (r *Resource) apply(ctx context.Context, p parent, obj runtime.Object) (runtime.Object, error) {
	body, ok := obj.(*v1alpha1.MemoryProposalApplication)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a MemoryProposalApplication, not %T", obj))
	}
	by := body.Spec.AppliedBy
	rule.Clean(&by)
	if err := r.rehearse(ctx, p); err != nil {
		return nil, err
	}
	marked, err := r.write(ctx, p, func(p *v1alpha1.MemoryProposal) error {
		s := &p.Status
		if s.State == v1alpha1.ProposalApplied {
			return nil
		}
		if err := mayApply(p, caller(ctx)); err != nil {
			return err
		}
		s.State, s.Applier, s.AppliedAt, s.MemoryName = v1alpha1.ProposalApplied, caller(ctx), r.now(), memoryName(p.UID)
		s.AppliedBy = named(by, s.Applier)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if marked.Status.MemoryUID != "" {
		return r.o.Memory(ctx, marked.Status.MemoryName)
	}
	m, made, err := r.o.Make(ctx, memoryOf(marked), p.DryRun)
	if err != nil || p.DryRun {
		return m, err
	}
	_, err = r.write(ctx, p, func(p *v1alpha1.MemoryProposal) error {
		switch {
		case p.Status.MemoryUID == "":
			p.Status.MemoryUID = m.UID
		case made && p.Status.MemoryUID != m.UID:
			return errMadeAgain
		}
		return nil
	})
	if errors.Is(err, errMadeAgain) {
		if err := r.o.Unmake(ctx, m); err != nil {
			return nil, err
		}
		return nil, apierrors.NewNotFound(v1alpha1.Resource("memories"), m.Name)
	}
	return m, err
}

// rehearse makes the memory in a dry run, so that a proposal is not marked as applied if a policy, a quota or a rule
// refuses its memory.
func (r *Resource) rehearse(ctx context.Context, p parent) error {
	if p.Object.Status.State == v1alpha1.ProposalApplied {
		return nil
	}
	if err := mayApply(p.Object, caller(ctx)); err != nil {
		return err
	}
	preview := p.Object.DeepCopy()
	preview.Status.MemoryName = memoryName(p.Object.UID)
	_, _, err := r.o.Make(ctx, memoryOf(preview), true)
	return err
}

// errMadeAgain reports that the memory was made and deleted by somebody else while this request was on its way.
var errMadeAgain = errors.New("the memory was deleted")

// mayApply checks the state of a proposal that is not applied yet, and who applies it.
func mayApply(p *v1alpha1.MemoryProposal, by string) error {
	s := &p.Status
	if s.State != v1alpha1.ProposalAccepted {
		return conflict(p, "only an accepted proposal can be applied; this one is %s", s.State)
	}
	if p.Spec.Type != v1alpha1.ProposalMemory {
		return conflict(p, "only a proposal of type memory can be applied; this one is of type %s", p.Spec.Type)
	}
	if s.Origin != nil && s.Origin.OutsideText && s.Origin.RequestedBy == by {
		return apierrors.NewForbidden(v1alpha1.Resource("memoryproposals/apply"), p.Name, errors.New("your task proposed it, and untrusted text may be in it: somebody else must apply it"))
	}
	return nil
}

// memoryOf returns the memory that a proposal makes.
func memoryOf(p *v1alpha1.MemoryProposal) *v1alpha1.Memory {
	content := p.Spec.Content
	if strings.TrimSpace(content) == "" {
		content = p.Spec.Title
	}
	m := &v1alpha1.Memory{
		ObjectMeta: metav1.ObjectMeta{Name: p.Status.MemoryName, Namespace: p.Namespace},
		Spec: v1alpha1.MemorySpec{
			Content: content, Tags: tagsOf(p.Spec.Description), Source: v1alpha1.MemorySourceProposal,
			AgentName: p.Spec.AgentName, TaskName: p.Spec.TaskName,
		},
		Status: v1alpha1.MemoryStatus{ProposalName: p.Name, ProposalUID: p.UID, Origin: p.Status.Origin.DeepCopy()},
	}
	return m
}

// Bounds of the tags in a description.
const (
	maxTags = 64
	maxTag  = 128 // bytes
)

// tagsOf returns the tags in the first line of a description that begins with "Tags:". A tag that a memory cannot have
// is left out.
func tagsOf(description string) []string {
	for line := range strings.Lines(description) {
		list, ok := strings.CutPrefix(strings.TrimSpace(line), "Tags:")
		if !ok {
			continue
		}
		var tags []string
		for tag := range strings.SplitSeq(list, ",") {
			tag = strings.TrimSpace(tag)
			if tag != "" && len(tag) <= maxTag && len(tags) < maxTags && !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
		return tags
	}
	return nil
}

// memoryName derives the name of a memory from the UID of its proposal: a UUID of version 8 (RFC 9562) from its SHA-256.
func memoryName(proposal types.UID) string {
	sum := sha256.Sum256([]byte(proposal))
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("mem-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
