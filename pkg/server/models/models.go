// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models gives the server's own endpoints access to models: chats, and the vendors' APIs that the server
// offers. It finds the models of a request by the rules of package plan, reads their keys with the server's own
// identity, and checks whether a caller may use them at all. A Provider's key never leaves this package, except to the
// address of its Provider.
//
//	models.go     which models answer a request
//	candidate.go  one model, and requests to it
//	reader.go     reading Providers, Agents and Secrets
//	toolkey.go    the credentials of Tools that this server calls itself
//	meter.go      recording the use of models
//	metered.go    models that record each request
//	requests.go   which requests are open, and their ends when the server stops
//	recorded.go   recording in the ledger
//	access.go     what a caller must be permitted to do
//
// # Use and limits
//
// A Meter is told about each request before it is sent, and about its usage and outcome afterwards. It may refuse the request, as does
// package modelrequest, which applies rate limits and Budgets. The start is durable before the request is sent; on a full disk none is
// sent (507). An end is stored with the start of another request, or soon (package storage/ledger). A server that stops refuses further
// requests, gives the open ones some time, cancels the rest, and then closes its store (Requests). A crash before an end is stored
// leaves a gap, and Budgets are charged all that the request had reserved.
//
// # What is read
//
// Providers, Agents, Tools and Secrets are kept until the store reports a newer change to their resource, so whoever waited
// for a write to be acknowledged gets an answer based on it (package readcache). Secrets of a cluster are kept for a short time (secretAge), and read
// again when a vendor refuses their key.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/plan"
)

// DefaultProvider is the name of the Provider that is used if nothing names one.
const DefaultProvider = "default"

// idlePerHost is how many idle connections to one vendor are kept.
const idlePerHost = 64

// Options configure Models.
type Options struct {
	// Loopback is the configuration of the server's client of itself. It is required.
	Loopback *rest.Config
	// Host is the client configuration for the cluster that has the Secrets; nil means this server itself.
	Host *rest.Config
	// Authorizer decides what callers may do. It is required.
	Authorizer authorizer.Authorizer
	// Provider is the name of the Provider that is used if neither a request nor its Agent names one. Default:
	// DefaultProvider.
	Provider string
	// Model is the model that is used if neither the request, its Agent nor the Provider names one. Empty for none.
	Model string
	// RequireSecretHosts refuses Providers whose Secrets do not name the hosts to which their values may be sent.
	RequireSecretHosts bool
	// Changed returns the revision of the newest change to a resource of this server, such as
	// "providers.core.platform.ai", or reports false if that is not known. Objects of such resources are read once for
	// each change. If it is nil, they are read for each request.
	Changed func(resource string) (revision uint64, known bool)
	// Drain is how long an answer is read on after its caller has left, if its Provider does not say. Default: DefaultDrain.
	Drain time.Duration
	// Clock is the clock of the vendors' clients. Default: the real clock.
	Clock clock.WithDelayedExecution
}

// Models finds models and authorizes their use. All methods may be called concurrently.
type Models struct {
	o         Options
	objects   versioned.Interface
	secrets   kubernetes.Interface
	transport http.RoundTripper
	clients   clients
	kept      *kept
}

// New makes Models. It makes no request.
func New(o Options) (*Models, error) {
	if o.Loopback == nil || o.Authorizer == nil {
		return nil, errors.New("the options Loopback and Authorizer are required")
	}
	o.Provider = cmp.Or(o.Provider, DefaultProvider)
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	objects, err := versioned.NewForConfig(o.Loopback)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	host := rest.CopyConfig(cmp.Or(o.Host, o.Loopback))
	host.QPS = -1 // requests of callers are limited where they arrive
	secrets, err := kubernetes.NewForConfig(host)
	if err != nil {
		return nil, fmt.Errorf("client of the host: %w", err)
	}
	// A Provider's address may be inside the operator's network, as for runs. Metadata services stay out of reach.
	transport := egress.ForProviders().Transport()
	transport.ResponseHeaderTimeout = wire.HeaderTimeout
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, idlePerHost
	m := &Models{o: o, objects: objects, secrets: secrets, transport: transport}
	m.kept = newKept(&m.o)
	return m, nil
}

// Query is what a request says about the model that is to answer it. Every field but Namespace may be empty.
type Query struct {
	// Namespace is where the Provider and the Agent are.
	Namespace string
	// Provider is the name of a Provider, and Model the vendor's name of a model. Both override those of the Agent.
	Provider, Model string
	// Agent is the name of an Agent that supplies the Provider, the model and its fallbacks. Coding says that it is a coding agent.
	Agent  string
	Coding bool
}

// Choice is what answers a request.
type Choice struct {
	// Candidates are the model and its fallbacks, in the order in which they are tried. There is at least one.
	Candidates []Candidate
	// Agent is nil if the query names none.
	Agent *v1alpha1.Agent
	// Temperature is the Agent's; nil for the model's default.
	Temperature *float64
	// MaxTokens limits the output of one answer, in tokens: the Agent's limit or the default.
	MaxTokens int64
}

// Resolve returns the models for a request. Its caller must have authorized the request. The error is a
// *refusal.Error if no model can answer, because of the request, the Agent, the Provider or the Secret; any other
// error says that this could not be found out.
func (m *Models) Resolve(ctx context.Context, q Query) (*Choice, error) {
	kept, err := m.kept.choices.Get(ctx, q, func(ctx context.Context) (*Choice, error) { return m.resolve(ctx, q) })
	if err != nil {
		return nil, err
	}
	c := *kept
	c.Candidates, c.Agent = slices.Clone(c.Candidates), c.Agent.DeepCopy()
	return &c, nil
}

func (m *Models) resolve(ctx context.Context, q Query) (*Choice, error) {
	r := &reader{models: m, keys: map[types.NamespacedName]key{}}
	p, err := plan.Answering(ctx, r, &plan.Question{
		Namespace: q.Namespace, Provider: q.Provider, Model: q.Model, Agent: q.Agent, Coding: q.Coding,
		DefaultProvider: m.o.Provider, DefaultModel: m.o.Model,
		RequireHosts: m.o.RequireSecretHosts,
	})
	if err != nil {
		return nil, err
	}
	c := &Choice{Agent: p.Agent, Temperature: p.Temperature, MaxTokens: p.MaxTokens}
	for _, found := range p.Candidates {
		c.Candidates = append(c.Candidates, Candidate{
			Provider: found.Provider, Model: found.Model, models: m,
			key: r.keys[types.NamespacedName{Namespace: found.Provider.Namespace, Name: found.Provider.Name}],
		})
	}
	return c, nil
}

// Providers returns the Providers of a namespace. Its caller must have authorized the request.
func (m *Models) Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error) {
	all, err := m.providers(ctx, namespace)
	if err != nil {
		return nil, err
	}
	list := make([]v1alpha1.Provider, len(all.list))
	for i := range all.list {
		all.list[i].DeepCopyInto(&list[i])
	}
	return list, nil
}
