// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session serves sessions: conversations that tasks, chats and gateways
// continue. The transcript is stored by the session's UID and deleted together
// with the session.
package session

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// Options are what sessions need besides the object store. All fields are
// required except MaxChatBytes and EndTurn.
type Options struct {
	// Stored is what is stored of sessions.
	Stored *resource.Stored[*v1alpha1.Session]
	// Timelines answers pages and streams of the events of a session's tasks.
	Timelines *timeline.Server
	// Transcripts stores the messages of sessions.
	Transcripts *transcript.Store
	// Task reads a task of the context's namespace. Errors are API errors.
	Task func(ctx context.Context, name string) (*v1alpha1.Task, error)
	// Clock provides the time of a session's last change.
	Clock clock.PassiveClock
	// MaxChatBytes bounds the transcript of a chat, in bytes. Default:
	// DefaultChatBytes.
	MaxChatBytes int64
	// EndTurn ends the turn of a chat that runs in a session. It reports false if the turn still runs when ctx ends.
	EndTurn func(ctx context.Context, s *v1alpha1.Session) bool
	// Turn answers with the frames of the newest background turn of a chat's session.
	Turn func(s *v1alpha1.Session, respond rest.Responder) http.Handler
	// Turns are what is stored of turns; a crash may leave those of a deleted session. May be nil.
	Turns resource.Content
	// Scope returns the scope of what a task may recall. Errors are API errors.
	Scope func(ctx context.Context, t *v1alpha1.Task) (v1alpha1.MemoryScope, error)
	// Caller returns the task of a worker that makes a request; nil for other callers.
	Caller func(ctx context.Context) (*v1alpha1.Task, error)
	// Deleted is called with each session that was deleted. A crash may prevent that.
	Deleted func(ctx context.Context, s *v1alpha1.Session)
	// Guard limits workers to the session of their task.
	Guard resource.Guard[*v1alpha1.Session]
}

// Resource is the resource sessions.
type Resource struct {
	resource.Resource
	stored        *resource.Stored[*v1alpha1.Session]
	caller        func(ctx context.Context) (*v1alpha1.Task, error)
	scope         func(ctx context.Context, t *v1alpha1.Task) (v1alpha1.MemoryScope, error)
	timelines     *timeline.Server
	transcripts   *transcript.Store
	task          func(ctx context.Context, name string) (*v1alpha1.Task, error)
	clock         clock.PassiveClock
	conversations Conversations
	endTurn       func(ctx context.Context, s *v1alpha1.Session) bool // may be nil
	turns         resource.Content                                    // may be nil
}

var _ resource.Resource = (*Resource)(nil)

// New makes the resource sessions.
func New(o Options) *Resource {
	r := &Resource{stored: o.Stored, caller: o.Caller, scope: o.Scope, timelines: o.Timelines, transcripts: o.Transcripts, task: o.Task, clock: o.Clock, conversations: Conversations{o.Stored, o.Transcripts, o.Clock, o.MaxChatBytes}, endTurn: o.EndTurn, turns: o.Turns}
	r.Resource = &resource.Definition[*v1alpha1.Session]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("sessions"),
		Kind:       "Session",
		Singular:   "session",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker), Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "sessions:read", Write: "sessions:write"},
		ShortNames: []string{"sess"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Session]{
			{Path: "spec.sessionType", Value: func(s *v1alpha1.Session) string { return string(s.Spec.SessionType) }},
			{Path: "status.activeTask", Value: func(s *v1alpha1.Session) string { return s.Status.ActiveTask }},
		},
		Columns: columns(),
		Guard:   o.Guard,
		Stored:  o.Stored,
		Shape: resource.Kept[*v1alpha1.Session]{
			ValidateDelete: r.validateDelete,
			AfterDelete: func(ctx context.Context, s *v1alpha1.Session) {
				defer r.timelines.Deleted(s.UID)
				r.forget(ctx, s)
				o.Deleted(ctx, s)
			},
		},
		Subresources: []resource.Subresource[*v1alpha1.Session]{
			{Name: "events", Subpath: true, Methods: []string{http.MethodGet}, Connect: r.events, New: func() runtime.Object { return &v1alpha1.ExecutionEventPage{} }, Readers: resource.Users()},
			{Name: "stream", Methods: []string{http.MethodGet}, Connect: r.stream, Readers: resource.Users()},
			{Name: "transcript", Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.transcript, New: func() runtime.Object { return &v1alpha1.SessionTranscript{} }, Readers: resource.Users(resource.Worker), Creators: resource.Writers()},
			{
				Name: "turn", Methods: []string{http.MethodGet}, Readers: resource.Users(),
				Connect: func(_ context.Context, p parent, respond rest.Responder) (http.Handler, error) {
					return o.Turn(p.Object, respond), nil
				},
			},
			{Name: "cancel", Methods: []string{http.MethodPost}, Connect: chats{r}.cancel, Creators: resource.Writers()},
		},
	}
	return r
}

// Storage builds the storage. It also starts a goroutine, which ends with ctx,
// to remove transcripts of sessions that no longer exist and to
// index those that were stored before there was an index.
func (r *Resource) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	paths, err := r.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	go func() { // ends with ctx
		r.sweep(ctx)
		r.catch(ctx)
	}()
	return paths, nil
}

// forget deletes the transcript. If a crash or a failure prevents that, the
// next sweep does it.
func (r *Resource) forget(ctx context.Context, s *v1alpha1.Session) {
	if err := r.transcripts.Delete(ctx, s.UID); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the transcript of a deleted session; the next start removes it", "session", klog.KObj(s))
	}
}
