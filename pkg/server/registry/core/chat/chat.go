// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat serves chats: turns of conversations with the orchestrator, which package server/chat carries out. A turn
// is answered as an object, or as server-sent events if the client accepts them. Nothing is stored here. kube-apiserver cuts
// requests after a minute, so clients in a cluster connect to the Service of this server.
package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/sse"
)

// configName is the only name under which the configuration is served.
const configName = "default"

// Options are what chats need. Guard is required.
type Options struct {
	// Service answers. Nil refuses every chat.
	Service *chat.Service
	// Clock times the heartbeats of streams.
	Clock clock.WithTicker
	// WriteTimeout is how long a client of a stream may take to accept what was sent before it is disconnected.
	WriteTimeout time.Duration
	Guard        resource.Guard[*v1alpha1.Chat]
}

// Resource is the resource chats.
type Resource struct {
	resource.Resource
	o Options
}

// New makes the resource chats.
func New(o Options) *Resource {
	r := &Resource{o: o}
	r.Resource = &resource.Definition[*v1alpha1.Chat]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("chats"),
		Kind:     "Chat",
		Singular: "chat",
		Roles:    resource.Roles{Creators: resource.Writers()},
		Scopes:   &external.Scopes{Of: scopes},
		Guard:    o.Guard,
		Shape:    resource.Exchange[*v1alpha1.Chat]{Serve: r.serve},
	}
	return r
}

// scopes returns what a transaction token needs: a turn asks a Provider and is kept in a session; the configuration says which
// Provider and model answer.
func scopes(a authorizer.Attributes) (families []string, ok bool) {
	if a.GetSubresource() == "config" {
		return []string{"providers:use"}, external.Reads(a.GetVerb())
	}
	return []string{"sessions:write", "providers:use"}, a.GetVerb() == "create"
}

// Grants says who may read the configuration.
func (r *Resource) Grants() []resource.Grant {
	return append(r.Resource.Grants(), resource.Grant{Resource: "chats/config", Readers: resource.Users()})
}

// Storage builds the storage. An Exchange has no subresources, because its objects are not stored; the configuration is
// the same for all of them.
func (r *Resource) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	paths, err := r.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	paths["chats/config"] = &config{r}
	return paths, r.o.Service.Resume(ctx)
}

var errOff = apierrors.NewForbidden(v1alpha1.Resource("chats"), "", errors.New("this server answers no chats"))

// serve answers one turn.
func (r *Resource) serve(req *http.Request, c *v1alpha1.Chat, answer resource.Answer) {
	if r.o.Service == nil {
		answer.Error(errOff)
		return
	}
	ctx := req.Context()
	caller, ok := request.UserFrom(ctx)
	if !ok {
		answer.Error(apierrors.NewUnauthorized("the caller is not known"))
		return
	}
	turn := chat.Request{Caller: caller, Namespace: request.NamespaceValue(ctx), Spec: c.Spec}
	if sse.Accepted(req.Header) {
		r.stream(ctx, turn, answer)
		return
	}
	t, err := r.o.Service.Begin(ctx, turn)
	if err != nil {
		answer.Error(err)
		return
	}
	if c.Spec.Background {
		c.Status = *t.Started()
		t.Start() //nolint:contextcheck // a background turn outlives the request
		answer.Accepted(c)
		return
	}
	defer t.Close()
	status, err := t.Run() //nolint:contextcheck // the turn has the context of the request
	if err != nil {
		answer.Error(err)
		return
	}
	c.Status = *status
	answer.Object(c)
}

// config serves chats/config.
type config struct{ r *Resource }

var _ rest.Getter = (*config)(nil)

// New makes an empty object of the kind.
func (*config) New() runtime.Object { return &v1alpha1.ChatConfig{} }

// Destroy does nothing.
func (*config) Destroy() {}

// Get returns the configuration.
func (c *config) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != configName {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("chats"), name)
	}
	if g := c.r.o.Guard; g != nil && g.Held(ctx) {
		if err := g.Object(ctx, resource.Access{Verb: "get", Subresource: "config"}, &v1alpha1.Chat{}); err != nil {
			return nil, fmt.Errorf("chats/config: %w", err)
		}
	}
	if c.r.o.Service == nil {
		return &v1alpha1.ChatConfig{AvailableTools: []string{}}, nil
	}
	return c.r.o.Service.Config(), nil
}
