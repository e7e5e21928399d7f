// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
)

// Limits of a search, in memories.
const (
	defaultLimit = 50
	maxLimit     = 200
	// spareHits and spareTimes are how many more hits of the index are looked at than are wanted.
	spareHits, spareTimes = 50, 4
)

// Searches returns the resource memorysearches.
func (r *Resource) Searches(guard resource.Guard[*v1alpha1.MemorySearch]) resource.Resource {
	return &resource.Definition[*v1alpha1.MemorySearch]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("memorysearches"),
		Kind:     "MemorySearch",
		Singular: "memorysearch",
		Roles:    resource.Roles{Creators: resource.Users(resource.Approver, resource.Worker)},
		Scopes:   &external.Scopes{Read: "memory:read", Write: "memory:read"}, // asked by a create
		Guard:    guard,
		Shape:    resource.Action[*v1alpha1.MemorySearch]{Create: r.search},
	}
}

// finder is one search.
type finder struct {
	spec    *v1alpha1.MemorySearchSpec
	task    *v1alpha1.Task       // of the worker that searches; nil for other callers
	scope   v1alpha1.MemoryScope // of that task
	session *v1alpha1.Session    // of that task; may be nil
	ns      string
}

// search answers a MemorySearch.
func (r *Resource) search(ctx context.Context, s *v1alpha1.MemorySearch) (*v1alpha1.MemorySearch, error) {
	f := &finder{spec: &s.Spec, ns: request.NamespaceValue(ctx)}
	var err error
	if f.task, err = r.caller(ctx); err != nil {
		return nil, err
	}
	if err := r.bound(ctx, f); err != nil {
		return nil, err
	}
	if f.task != nil && f.task.Spec.SessionRef != nil {
		if f.session, err = r.existing(ctx, f.task.Spec.SessionRef.Name); err != nil {
			return nil, err
		}
	}
	limit, err := resource.Limit(s.Spec.Limit, defaultLimit, maxLimit)
	switch {
	case err != nil:
		return nil, err
	case f.task != nil && s.Spec.IncludeDeleted:
		return nil, apierrors.NewForbidden(v1alpha1.Resource("memorysearches"), "", errors.New("includeDeleted: a worker may not find discarded memories"))
	case s.Spec.MaxCharacters < 0:
		return nil, apierrors.NewBadRequest("maxCharacters: must be at least 0")
	}
	hits, err := r.hits(f, limit)
	if err != nil {
		return nil, err
	}
	s.Status = v1alpha1.MemorySearchStatus{Items: []v1alpha1.MemoryMatch{}}
	characters := 0
	for _, h := range hits {
		if len(s.Status.Items) == limit {
			break
		}
		m, err := r.stored.Get(ctx, h.Name)
		if apierrors.IsNotFound(err) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		if !f.wants(m) {
			continue // changed since
		}
		length := utf8.RuneCountInString(m.Spec.Content)
		if f.spec.MaxCharacters > 0 && characters+length > int(f.spec.MaxCharacters) {
			continue
		}
		characters += length
		s.Status.Items = append(s.Status.Items, v1alpha1.MemoryMatch{Score: int64(h.Score * 1000), Memory: *m})
	}
	if f.task != nil && s.Spec.Recall {
		r.recalled(ctx, f, s.Status.Items)
	}
	return s, nil
}

// bound sets the scope of a worker's search: the narrower one of what its task may recall and what it asks for.
func (r *Resource) bound(ctx context.Context, f *finder) (err error) {
	if f.task == nil {
		if f.spec.Scope != "" {
			return apierrors.NewBadRequest("scope: only the search of a worker has one; use agentName and sessionName")
		}
		return nil
	}
	if f.scope, err = r.scope(ctx, f.task); err != nil {
		return err
	}
	// From the widest to the narrowest.
	order := []v1alpha1.MemoryScope{"", v1alpha1.MemoryScopeNamespace, v1alpha1.MemoryScopeAgent, v1alpha1.MemoryScopeSession}
	if slices.Index(order, f.spec.Scope) > slices.Index(order, f.scope) {
		f.scope = f.spec.Scope
	}
	return nil
}

// hits returns the memories that may match, best first: more than the limit, because some of them may not fit.
func (r *Resource) hits(f *finder, limit int) ([]fulltext.Hit, error) {
	if len(f.spec.IDs) > 0 && strings.TrimSpace(f.spec.Query) == "" {
		hits := make([]fulltext.Hit, len(f.spec.IDs))
		for i, id := range f.spec.IDs {
			hits[i].Name = id
		}
		return hits, nil
	}
	q := fulltext.Query{Space: f.ns, Text: f.spec.Query, Groups: f.groups(), Limit: spareHits + spareTimes*limit}
	if len(f.spec.IDs) > 0 || f.scope == v1alpha1.MemoryScopeAgent {
		q.Limit = 0 // most hits may be others
	}
	for _, m := range marked(f.fields()) {
		if m.value != "" {
			q.Marks = append(q.Marks, m.name+m.value)
		}
	}
	for _, tag := range f.spec.Tags {
		q.Marks = append(q.Marks, markTag+tag)
	}
	return r.index.Search(q)
}

// fields returns the fields that a memory must have.
func (f *finder) fields() *v1alpha1.MemorySpec {
	s := f.spec
	return &v1alpha1.MemorySpec{Source: s.Source, SessionName: s.SessionName, AgentName: s.AgentName, TaskName: s.TaskName, ParentTask: s.ParentTask}
}

// groups returns the groups of the index to read; nil for all. For a worker whose scope is its session they are that scope, the
// narrowest first. A wider one has memories of any session.
func (f *finder) groups() []string {
	if f.task == nil || f.scope != v1alpha1.MemoryScopeSession {
		return nil
	}
	agents, sessions := []string{""}, []string{""}
	if agent := v1alpha1.MemoryAgent(f.task); agent != "" {
		agents = []string{agent, ""}
	}
	if f.session != nil {
		sessions = []string{sessionKey(f.session.Name, f.session.UID), f.session.Name, ""}
	}
	states := []visibility{visible}
	if f.spec.IncludeDisabled {
		states = append(states, disabled)
	}
	var groups []string
	for _, v := range states {
		for _, a := range agents {
			for _, s := range sessions {
				groups = append(groups, group(v, a, s))
			}
		}
	}
	return groups
}

// wants reports whether a stored memory matches.
func (f *finder) wants(m *v1alpha1.Memory) bool {
	s := f.spec
	if m.Status.Deleted && !s.IncludeDeleted || m.Status.Disabled && !s.IncludeDisabled || f.task != nil && !guard.Recalls(f.scope, f.task, f.session, m) {
		return false
	}
	if len(s.IDs) > 0 && !slices.Contains(s.IDs, m.Name) {
		return false
	}
	have := marked(&m.Spec)
	for i, want := range marked(f.fields()) {
		if want.value != "" && want.value != have[i].value {
			return false
		}
	}
	return !slices.ContainsFunc(s.Tags, func(tag string) bool { return !slices.Contains(m.Spec.Tags, tag) })
}

// foreign reports whether a memory waits for a session that is not that of the task. Only a session that recalls it makes it
// its own, so what other tasks do leaves no time.
func (f *finder) foreign(m *v1alpha1.Memory) bool {
	return m.Spec.SessionName != "" && m.Status.SessionUID == "" && (f.session == nil || f.session.Name != m.Spec.SessionName)
}

// recalled raises the counters of memories that were given to a task. The task gets them anyway if that fails, for
// example on a full disk. A memory without a recorded session gets that of the task.
func (r *Resource) recalled(ctx context.Context, f *finder, items []v1alpha1.MemoryMatch) {
	now := r.now()
	var all sync.WaitGroup
	for i := range items {
		m := &items[i].Memory
		all.Go(func() {
			// The server writes this: a worker may not.
			out, err := r.stored.UpdateStored(byServer(ctx), m.Name, func(stored *v1alpha1.Memory) error {
				if stored.UID != m.UID {
					return errors.New("it is another memory by now")
				}
				stored.Status.RecalledCount++
				if !f.foreign(stored) {
					stored.Status.LastRecalledAt = now
				}
				if s := f.session; s != nil && stored.Spec.SessionName == s.Name && stored.Status.SessionUID == "" {
					stored.Status.SessionUID = s.UID
				}
				return nil
			})
			if err != nil {
				klog.FromContext(ctx).V(2).Info("A memory was recalled and not counted", "memory", klog.KObj(m), "err", err)
				return
			}
			items[i].Memory = *out
		})
	}
	all.Wait()
}
