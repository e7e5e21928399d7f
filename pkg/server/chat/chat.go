// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat answers chats: a model, the orchestrator, creates and follows tasks for the caller with the tools of package
// toolbox. One request is one turn of a conversation, in one namespace. A chat is not stored; the conversation is a Session of
// type chat. The loop is that of the workers (package agentloop).
//
//	chat.go      options, and the beginning of a turn: everything that can refuse it
//	slots.go     how many turns run at once; one turn at a time in a session
//	turn.go      the turn itself
//	frame.go     what a turn reports while it runs, and its errors
//	prompt.go    the instructions of the orchestrator
//	session.go   what is kept of a conversation
//	journal.go   what is stored of a turn while it runs
//	live.go      the frames of a background turn, for its clients
//	resume.go    turns that an earlier process did not end
//	aside.go     those of them that cannot be read
//	text.go      text without secrets, as it arrives
//	removed.go   the secrets that were removed from earlier turns of a session
//	unfinished.go answers that come while tasks of the chat still run
//
// The tools act in the name of the caller. With the rights to create chats and to list providers alone, a chat creates nothing but
// its session. The server acts for itself only to find the model and read its key, and to keep the session.
//
// Each turn is stored as it goes on: the calls, their results and, of a background turn, its frames. A server that starts
// continues the background turns of the one before it, and adds its other turns to their sessions as interrupted. A turn that
// cannot be read is set aside: the log and a metric say so once, its session gets a message in its place, and a client that follows
// it gets an error as its last frame.
package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/storage/turn"
)

// Limits of a request. Its texts may be as long as a request may be.
const (
	maxTokens      = 1 << 20
	maxTemperature = 2
	// defaultTokens bounds an answer of the model if nothing else does.
	defaultTokens = 4096
	// busySeconds is after how many seconds a client that found all slots taken may come back.
	busySeconds = 5
)

// Limits are what an operator configures.
type Limits struct {
	// Enabled is whether chats are answered.
	Enabled bool
	// Provider and Model answer if nothing else names one; both may be empty.
	Provider, Model string
	// MaxIterations is how often the model is asked in one turn.
	MaxIterations int
	// MaxDuration bounds a turn, and ToolTimeout one call of a tool.
	MaxDuration, ToolTimeout time.Duration
	// MaxConcurrent is how many turns run at once.
	MaxConcurrent int
	// Shares say how these turns are divided among namespaces, and which are reserved.
	Shares fairshare.Shares
	// MaxTasksPerTurn is how many tasks one turn may create.
	MaxTasksPerTurn int
	// MaxPrematureEnds is how often a model is told to go on: in a chat, because its tasks still run when it
	// answers; for a client of a vendor's API, because its answer does not say whether the goal is reached.
	MaxPrematureEnds int
	// MaxSessionBytes bounds what is kept of a session, and the conversation that a model reads: before each question its oldest
	// turns are left out, and then results of calls are cut.
	MaxSessionBytes int64
	// Blocked are namespaces without chats, besides kube-system and kube-public.
	Blocked []string
}

// Options configure a Service. All fields but Meter and Metrics are required.
type Options struct {
	Limits
	// Models finds the model of a turn and authorizes its caller.
	Models *models.Models
	// Tools makes the tools of a turn. The server acts for itself through its client.
	Tools *toolbox.Maker
	// Meter, if set, records the use of models.
	Meter models.Meter
	// Sessions keeps conversations.
	Sessions Sessions
	// Turns stores turns while they run.
	Turns *turn.Store
	Clock clock.WithTickerAndDelayedExecution
	// Metrics registers the metrics of chats.
	Metrics prometheus.Registerer
}

// Service answers chats.
type Service struct {
	o       Options
	slots   *slots
	busy    *sessions
	removed *removals
	own     versioned.Interface // acts as the server
	metrics *metrics

	// serving ends when the server stops; nil until Resume.
	serving atomic.Pointer[context.Context]
	lost    interruptions
}

// New makes a Service. It makes no request.
func New(o Options) (*Service, error) {
	m, err := metric.Register(o.Metrics, newMetrics())
	if err != nil {
		return nil, err
	}
	return &Service{o: o, busy: newSessions(), removed: newRemovals(), own: o.Tools.Server(), slots: newSlots(o.MaxConcurrent, o.Shares, o.Clock), metrics: m}, nil
}

// Request is one turn that a caller asks for.
type Request struct {
	Caller    user.Info
	Namespace string
	Spec      v1alpha1.ChatSpec
	// Observe receives frames as they occur, on the goroutine of the turn. An error ends the turn. May be nil.
	Observe func(Frame) error
}

// Begin checks a request and prepares its turn. Errors are API errors. The turn holds a slot and its session until Close.
func (s *Service) Begin(ctx context.Context, r Request) (*Turn, error) { //nolint:contextcheck // a background turn has the context of the server
	if !s.o.Enabled {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("chats"), "", errors.New("chat is switched off on this server (--chat-enabled=false)"))
	}
	runs := ctx //nolint:contextcheck // as above
	if r.Spec.Background {
		serving := s.serving.Load()
		if serving == nil {
			return nil, apierrors.NewServiceUnavailable("this server does not run chats in the background yet; try again later")
		}
		runs = *serving
	}
	if !s.slots.take(r.Namespace) {
		if s.authorize(ctx, &r) == nil {
			s.slots.want(r.Namespace)
		}
		s.metrics.refused()
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("the server allows %d chats at once, and none is free for this namespace; those that end make room for namespaces with fewer first; try again later", s.o.MaxConcurrent), busySeconds)
	}
	t := s.turn(runs, r, s.o.Clock.Now())
	t.took()
	if !r.Spec.Background {
		ctx = t.ctx
	}
	if err := t.begin(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// turn makes a turn that ends with ctx, and when it has taken too long since it began.
func (s *Service) turn(ctx context.Context, r Request, began time.Time) *Turn {
	t := &Turn{service: s, request: r, began: began}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	deadline := s.o.Clock.AfterFunc(max(0, s.o.MaxDuration-s.o.Clock.Since(began)), func() { t.cancel(errTimeout) })
	t.release = []func(){func() { deadline.Stop() }, func() { t.cancel(nil) }}
	return t
}

// took notes that the turn has a slot.
func (t *Turn) took() {
	namespace := t.request.Namespace
	t.service.metrics.took(namespace)
	t.release = append(t.release, func() { t.service.slots.give(namespace) }, func() { t.service.metrics.gave(namespace) })
}

// begin does all that can refuse a turn which has a slot.
func (t *Turn) begin(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return t.service.check(&t.request) },
		func(ctx context.Context) error { return t.service.authorize(ctx, &t.request) },
		t.choose, t.open, t.prepare, t.record,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// check applies the rules that need nothing but the request.
func (s *Service) check(r *Request) error {
	spec := &r.Spec
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if strings.TrimSpace(spec.Message) == "" {
		add("message: is required")
	}
	for _, f := range []struct{ name, value string }{{"sessionId", spec.SessionID}, {"provider", spec.Provider}, {"agentRef", spec.AgentRef}} {
		if f.value == "" {
			continue
		}
		for _, msg := range validation.IsDNS1123Subdomain(f.value) {
			add("%s: %.64q: %s", f.name, f.value, msg)
		}
	}
	if len(spec.Model) > validation.DNS1123SubdomainMaxLength {
		add("model: must be at most %d bytes", validation.DNS1123SubdomainMaxLength)
	}
	if v := spec.Temperature; v != nil && (*v < 0 || *v > maxTemperature) {
		add("temperature: %v: must be from 0 to %d", *v, maxTemperature)
	}
	if v := spec.MaxTokens; v != nil && (*v < 1 || *v > maxTokens) {
		add("maxTokens: %d: must be from 1 to %d", *v, maxTokens)
	}
	if len(wrong) > 0 {
		return apierrors.NewBadRequest(strings.Join(wrong, "; "))
	}
	return s.o.CheckNamespace(r.Namespace)
}

// CheckNamespace returns an API error if the server's tools must not work in a namespace.
func (l *Limits) CheckNamespace(name string) error {
	if slices.Contains(append([]string{"kube-system", "kube-public"}, l.Blocked...), name) {
		return apierrors.NewForbidden(v1alpha1.Resource("chats"), "", fmt.Errorf("chats are not allowed in namespace %q; name another one", name))
	}
	return nil
}

// authorize checks what the caller needs besides create on chats, which the chain has checked.
func (s *Service) authorize(ctx context.Context, r *Request) error {
	var more []models.Access
	if id := r.Spec.SessionID; id != "" {
		more = append(more, models.Access{Verb: "get", Resource: "sessions", Name: id}, models.Access{Verb: "update", Resource: "sessions", Name: id})
	}
	if a := r.Spec.AgentRef; a != "" {
		more = append(more, models.Access{Verb: "get", Resource: "agents", Name: a})
	}
	return s.o.Models.Authorize(ctx, r.Caller, r.Namespace, models.Chat(more...)...)
}

// shown turns an error about models into an API error.
func shown(err error) error {
	if refused, ok := errors.AsType[*refusal.Error](err); ok {
		return apierrors.NewBadRequest(refused.Error())
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Code != http.StatusForbidden {
		return status
	}
	return err
}

// Config describes the chat for clients.
func (s *Service) Config() *v1alpha1.ChatConfig {
	l := &s.o.Limits
	return &v1alpha1.ChatConfig{
		Enabled: l.Enabled, Provider: l.Provider, Model: l.Model, MaxIterations: int32(l.MaxIterations), MaxDuration: l.MaxDuration.String(),
		ToolTimeout: l.ToolTimeout.String(), MaxTasksPerTurn: int32(l.MaxTasksPerTurn), MaxConcurrent: int32(l.MaxConcurrent),
		MaxSessionSize: l.MaxSessionBytes, AvailableTools: toolbox.Names(),
	}
}

// Cancel ends the turn of a session and waits until it has ended. It reports false if the turn still runs when ctx ends,
// and true if there is none.
func (s *Service) Cancel(ctx context.Context, session *v1alpha1.Session) bool {
	return s == nil || s.busy.cancel(ctx, session.UID)
}
