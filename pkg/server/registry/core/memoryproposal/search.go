// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memoryproposal

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Limits of a search, in proposals.
const (
	defaultLimit = 100
	maxLimit     = 500
)

// Searches returns the resource memoryproposalsearches. A search reads all proposals of its namespace: they are few,
// because people read each of them.
func (r *Resource) Searches(guard resource.Guard[*v1alpha1.MemoryProposalSearch]) resource.Resource {
	return &resource.Definition[*v1alpha1.MemoryProposalSearch]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("memoryproposalsearches"),
		Kind:     "MemoryProposalSearch",
		Singular: "memoryproposalsearch",
		Roles:    resource.Roles{Creators: resource.Users(resource.Approver, resource.Worker)},
		Scopes:   &external.Scopes{Read: "memory:read", Write: "memory:read"}, // asked by a create
		Guard:    guard,
		Shape:    resource.Action[*v1alpha1.MemoryProposalSearch]{Create: r.search},
	}
}

// search answers a MemoryProposalSearch. A worker finds the proposals of its own task.
func (r *Resource) search(ctx context.Context, s *v1alpha1.MemoryProposalSearch) (*v1alpha1.MemoryProposalSearch, error) {
	limit, err := resource.Limit(s.Spec.Limit, defaultLimit, maxLimit)
	if err != nil {
		return nil, err
	}
	task, err := r.o.Caller(ctx)
	if err != nil {
		return nil, err
	}
	proposals, err := r.o.Stored.AsCaller()
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(s.Spec.Query))
	var found []v1alpha1.MemoryProposal
	opts := &internalversion.ListOptions{}
	if task != nil { // the guard lists for a worker only what is narrowed to its task
		opts.FieldSelector = ofTask(task)
	}
	err = resource.EachObject(ctx, proposals, opts, func(o metav1.Object) {
		p, ok := o.(*v1alpha1.MemoryProposal)
		if ok && (task == nil || originOf(p).TaskUID == task.UID) && wants(&s.Spec, p) && hasWords(p, words) {
			found = append(found, *p)
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b v1alpha1.MemoryProposal) int {
		if c := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	s.Status = v1alpha1.MemoryProposalSearchStatus{Items: append([]v1alpha1.MemoryProposal{}, found[:min(len(found), limit)]...)}
	return s, nil
}

// ofTask selects the proposals of tasks with the name of t.
func ofTask(t *v1alpha1.Task) fields.Selector {
	return fields.OneTermEqualSelector("status.origin.taskName", t.Name)
}

// wants reports whether a proposal has the fields of a search.
func wants(s *v1alpha1.MemoryProposalSearchSpec, p *v1alpha1.MemoryProposal) bool {
	return (s.TaskName == "" || s.TaskName == p.Spec.TaskName) && (s.AgentName == "" || s.AgentName == p.Spec.AgentName) &&
		(s.Type == "" || s.Type == p.Spec.Type) && (s.Status == "" || s.Status == p.Status.State)
}

// hasWords reports whether the texts of a proposal contain all the words, which are in lower case.
func hasWords(p *v1alpha1.MemoryProposal, words []string) bool {
	if len(words) == 0 {
		return true
	}
	s := &p.Spec
	text := strings.ToLower(strings.Join([]string{s.Title, s.Description, s.Content, s.Patch, s.SkillName, p.Status.ReviewNote}, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
