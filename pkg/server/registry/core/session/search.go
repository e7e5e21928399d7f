// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// Limits of a search, in messages and characters.
const (
	defaultFound, maxFound     = 10, 50
	defaultSnippet, maxSnippet = 360, 4096
)

// Searches returns the resource transcriptsearches.
func (r *Resource) Searches(guard resource.Guard[*v1alpha1.TranscriptSearch]) resource.Resource {
	return &resource.Definition[*v1alpha1.TranscriptSearch]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("transcriptsearches"),
		Kind:     "TranscriptSearch",
		Singular: "transcriptsearch",
		Roles:    resource.Roles{Creators: resource.Users(resource.Worker)},
		Scopes:   &external.Scopes{Read: "sessions:read", Write: "sessions:read"}, // asked by a create
		Guard:    guard,
		Shape:    resource.Action[*v1alpha1.TranscriptSearch]{Create: r.search},
	}
}

// Place returns where the messages of a session are kept and found.
func Place(s *v1alpha1.Session) transcript.Session {
	return transcript.Session{Namespace: s.Namespace, Name: s.Name, UID: s.UID}
}

// search answers a TranscriptSearch.
func (r *Resource) search(ctx context.Context, s *v1alpha1.TranscriptSearch) (*v1alpha1.TranscriptSearch, error) {
	spec := &s.Spec
	limit, err := resource.Limit(spec.Limit, defaultFound, maxFound)
	if err != nil {
		return nil, err
	}
	length := int(spec.MaxSnippetLength)
	switch {
	case spec.Query == "":
		return nil, apierrors.NewBadRequest("query: is required")
	case length < 0:
		return nil, apierrors.NewBadRequest("maxSnippetLength: must be at least 1")
	case length == 0:
		length = defaultSnippet
	}
	length = min(length, maxSnippet)
	for _, role := range spec.Roles {
		if !slices.Contains([]v1alpha1.MessageRole{v1alpha1.RoleSystem, v1alpha1.RoleUser, v1alpha1.RoleAssistant, v1alpha1.RoleTool}, role) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("roles: %q: must be system, user, assistant or tool", role))
		}
	}
	s.Status = v1alpha1.TranscriptSearchStatus{Items: []v1alpha1.TranscriptMatch{}}
	of, own, err := r.searched(ctx, spec)
	if err != nil || of != nil && len(of) == 0 {
		return s, err
	}
	there := map[types.UID]bool{}
	err = r.transcripts.Search(ctx, request.NamespaceValue(ctx), of, spec.Query, func(m transcript.Match) (bool, error) {
		switch {
		case m.Session.Name == spec.ExcludeSessionName, len(spec.Roles) > 0 && !slices.Contains(spec.Roles, m.Message.Role):
			return true, nil
		}
		exists, known := there[m.Session.UID]
		if !known {
			now, err := r.stored.Get(ctx, m.Session.Name)
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
			exists = err == nil && now.UID == m.Session.UID && (now.Name == own || !hidden(now, of))
			there[m.Session.UID] = exists
		}
		if exists {
			s.Status.Items = append(s.Status.Items, v1alpha1.TranscriptMatch{
				SessionName: m.Session.Name, MessageID: m.Message.Order, StableMessageID: m.Message.ID, Role: m.Message.Role, Name: m.Message.Name,
				Snippet: fulltext.Snippet(m.Message.Content, spec.Query, length), CreatedAt: &m.Message.Timestamp, Score: int64(m.Score * 1000),
			})
		}
		return len(s.Status.Items) < limit, nil
	})
	return s, err
}

// hidden reports whether a session is left out of a search that does not name it: one of a gateway.
func hidden(s *v1alpha1.Session, of []transcript.Session) bool {
	return of == nil && s.Spec.SessionType == v1alpha1.SessionTypeGateway
}

// searched returns the sessions to search; nil for all of the namespace. A worker searches all, or one that it names, if its
// Agent lets it recall what is in the namespace, and otherwise the session of its task. Sessions of gateways, which belong to
// people outside, are found by no worker but the one whose task uses it: own is the name of that session, empty for none.
func (r *Resource) searched(ctx context.Context, spec *v1alpha1.TranscriptSearchSpec) (of []transcript.Session, own string, err error) {
	name := spec.SessionName
	t, err := r.caller(ctx)
	if err != nil {
		return nil, "", err
	}
	if t != nil {
		if t.Spec.SessionRef != nil {
			own = t.Spec.SessionRef.Name
		}
		scope, err := r.scope(ctx, t)
		switch {
		case err != nil:
			return nil, "", err
		case scope == v1alpha1.MemoryScopeNamespace && (name == "" || name != own):
			of, err := r.openTo(ctx, name)
			return of, own, err
		case name != "" && name != own:
			return nil, "", apierrors.NewForbidden(v1alpha1.Resource("transcriptsearches"), "", fmt.Errorf("sessionName: the task of the caller's credential does not use this session, and its Agent recalls no other (spec.memory.recall is %s)", scope))
		}
		if name = own; name == "" {
			return []transcript.Session{}, own, nil
		}
	}
	if name == "" {
		return nil, "", nil
	}
	s, err := r.stored.Get(ctx, name)
	if apierrors.IsNotFound(err) && t != nil {
		return []transcript.Session{}, own, nil // nothing was said yet
	}
	if err != nil {
		return nil, "", err
	}
	return []transcript.Session{Place(s)}, own, nil
}

// openTo returns the session of a name for the search of a worker whose task does not use it; nil for all if there is no name.
func (r *Resource) openTo(ctx context.Context, name string) ([]transcript.Session, error) {
	if name == "" {
		return nil, nil
	}
	s, err := r.stored.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err), err == nil && hidden(s, nil):
		return []transcript.Session{}, nil
	case err != nil:
		return nil, err
	}
	return []transcript.Session{Place(s)}, nil
}

// catch indexes the transcripts that were stored before there was an index, once, in the background.
func (r *Resource) catch(ctx context.Context) {
	log := klog.FromContext(ctx)
	var all []transcript.Session
	err := resource.EachObject(ctx, r.stored, &internalversion.ListOptions{}, func(o metav1.Object) {
		all = append(all, transcript.Session{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()})
	})
	for i := 0; i < len(all) && err == nil; i++ {
		err = r.transcripts.Catch(ctx, all[i])
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) {
		log.Error(err, "Old messages of sessions cannot be searched until the next start")
	}
}
