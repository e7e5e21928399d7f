// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the API server: k8s.io/apiserver's generic server, the resources it is given, and what
// they share (scheme, OpenAPI, admission, limits, health).
//
//	Config > Complete > CompletedConfig > New > Server
//
// Authentication, authorization, storage and the listener are set on Config.Generic by the program: a standalone
// process takes them from the host packages, a server in a cluster delegates to the cluster.
//
// Admission runs in this process, because a host cluster's admission never sees objects of an aggregated API.
// NamespaceLifecycle is always on. Policies, webhooks and quotas need their kinds served somewhere, so a program passes
// those plugins in Config.Admission whose kinds Config.Host serves.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/sparse"
)

const (
	// maxBody bounds the request body of an object, as in kube-apiserver. Subresources may have limits of their own.
	maxBody = 3 << 20
	// watchDrain is how long open watches may take to end when the server stops.
	watchDrain = 2 * time.Second
	// shutdownTimeout is how long connections may take to close after that.
	shutdownTimeout = 5 * time.Second
)

// Config says what the server serves.
type Config struct {
	// Generic holds what every API server has. NewGeneric makes one with our defaults.
	Generic *genericapiserver.Config
	// Scheme has every type of Resources, as its version and as internal. NewScheme makes it.
	Scheme *runtime.Scheme
	// Resources are the served resources of all groups.
	Resources []resource.Resource
	// Definitions are the OpenAPI definitions of the resources' types.
	Definitions []common.GetOpenAPIDefinitions
	// Admission plugins run after NamespaceLifecycle, in order.
	Admission []admission.Interface
	// Host is the client of the cluster that has the namespaces and the configuration of admission and of priority and
	// fairness; nil is this server itself.
	Host *rest.Config
	// PriorityAndFairness shares the server among its callers as the host's FlowSchemas say, instead of by two limits of
	// requests in flight.
	PriorityAndFairness bool
	// Immortal are the namespaces that cannot be deleted.
	Immortal []string
	// Healthy is asked by /readyz and /livez under the name "store".
	Healthy func() error
	// GarbageCollector tells that a collector follows owner references; see resource.Config.
	GarbageCollector bool
	// Clock tells ages in tables.
	Clock clock.PassiveClock
	// REST, where set, serves the documented REST paths beside the Kubernetes API.
	REST *facade.Options
	// Handlers serve paths outside the API groups, each exactly its path, for callers whose role names it under
	// nonResourceURLs. Their requests have no deadline; their contexts end when the server begins to stop.
	Handlers map[string]http.Handler
	// Intake, where set, accounts for the bodies of requests on all listeners, and closes them to callers that are not known.
	Intake *intake.Gate
	// Sparse gets the lines that clients can cause at will. Default: one on Clock.
	Sparse *sparse.Log
	// StoreID is the identity of the store, which every answer names in a header; see v1alpha1.HeaderStoreID.
	StoreID string
	// Ready are further checks of /readyz, by name; /readyz/NAME says what a failing one says.
	Ready map[string]func() error
	// Identify, where set, is the innermost filter: what it wraps sees the caller as it leaves the caller, who is
	// authenticated, impersonated and authorized by then.
	Identify func(http.Handler) http.Handler
}

type completedConfig struct{ Config }

// CompletedConfig can only be made by Config.Complete.
type CompletedConfig struct{ *completedConfig }

// Server is an assembled server that does not serve yet.
type Server struct {
	// Generic is the server as k8s.io/apiserver knows it.
	Generic *genericapiserver.GenericAPIServer
	// REST serves the REST paths alone, for a listener of their own; nil where Config.REST was.
	REST http.Handler
	// Drained is closed when the server is stopping and no request needs the store any more; connections may be open.
	Drained <-chan struct{}
	openapi *lazyOpenAPI
}

// Complete fills in what can be derived. It changes Config.Generic.
func (c *Config) Complete() (CompletedConfig, error) {
	switch {
	case c.Generic == nil || c.Scheme == nil || c.Generic.RESTOptionsGetter == nil:
		return CompletedConfig{}, errors.New("apiserver: Generic, its RESTOptionsGetter and Scheme are needed")
	case c.Generic.Authentication.Authenticator == nil || c.Generic.Authorization.Authorizer == nil:
		return CompletedConfig{}, errors.New("apiserver: authentication and authorization are needed")
	case c.Generic.LoopbackClientConfig == nil:
		return CompletedConfig{}, errors.New("apiserver: a loopback client is needed")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Sparse == nil {
		c.Sparse = sparse.New(c.Clock)
	}
	if c.Healthy != nil {
		c.Generic.AddHealthChecks(healthz.NamedCheck("store", func(*http.Request) error { return c.Healthy() }))
	}
	for name, ready := range c.Ready {
		c.Generic.AddReadyzChecks(healthz.NamedCheck(name, func(*http.Request) error { return ready() }))
	}
	addOpenAPI(c.Generic, c.Scheme, c.Definitions)
	c.addLongRunning()
	c.addSparseLog()
	c.addIntake()
	if c.Identify != nil {
		chain := c.Generic.BuildHandlerChainFunc
		c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
			return chain(c.Identify(api), g)
		}
	}
	if c.StoreID != "" {
		chain := c.Generic.BuildHandlerChainFunc
		c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
			return nameStore(chain(api, g), c.StoreID)
		}
	}
	return CompletedConfig{&completedConfig{*c}}, nil
}

// nameStore has every answer name the store that it comes from.
func nameStore(next http.Handler, id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(v1alpha1.HeaderStoreID, id)
		next.ServeHTTP(w, r)
	})
}

// New builds the server. Hooks of resources run under ctx, which should end when the server has stopped.
func (c CompletedConfig) New(ctx context.Context) (*Server, error) {
	informers, err := c.addAdmission()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	var facadeErr error
	if c.REST != nil {
		chain := c.Generic.BuildHandlerChainFunc
		c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
			var f *facade.Facade
			if f, facadeErr = facade.New(chain(api, g), *c.REST); facadeErr != nil {
				return http.NotFoundHandler() // New ends
			}
			context.AfterFunc(ctx, f.Close)
			s.REST = c.guard(f.Alone())
			return f
		}
	}
	c.guardListener()
	if c.Intake != nil {
		context.AfterFunc(ctx, c.Intake.Close)
	}
	generic, err := c.Generic.Complete(informers).New("platform", genericapiserver.NewEmptyDelegate())
	if err = errors.Join(err, facadeErr); err != nil {
		return nil, fmt.Errorf("generic server: %w", err)
	}
	generic.ShutdownTimeout = shutdownTimeout
	for path, h := range c.Handlers {
		generic.Handler.NonGoRestfulMux.Handle(path, h)
	}
	groups, err := c.groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g.PrioritizedVersions[0].Group == "" {
			err = generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, g)
		} else {
			err = generic.InstallAPIGroup(g)
		}
		if err != nil {
			return nil, fmt.Errorf("API group %q: %w", g.PrioritizedVersions[0].Group, err)
		}
	}
	s.Generic, s.openapi, s.Drained = generic, newLazyOpenAPI(generic, c.Generic), c.Generic.DrainedNotify()
	return s, nil
}

// Run serves until ctx ends and then shuts down: readiness fails first, watches and streams are told to end, requests
// in flight finish, and only then the listener and the resources are closed.
func (s *Server) Run(ctx context.Context) error {
	s.openapi.install()
	return s.Generic.PrepareRun().RunWithContext(ctx)
}

// groups sorts the resources' storage into API groups, in the order in which the groups first appear.
func (c CompletedConfig) groups(ctx context.Context) ([]*genericapiserver.APIGroupInfo, error) {
	conf := resource.Config{Scheme: c.Scheme, RESTOptions: c.Generic.RESTOptionsGetter, Clock: c.Clock, GarbageCollector: c.GarbageCollector}
	if len(c.Admission) > 0 { // without NamespaceLifecycle: what ends in a namespace that ends is still told of
		conf.Admission = admission.NewChainHandler(c.Admission...)
	}
	for _, r := range c.Resources {
		if err := r.Register(c.Scheme); err != nil {
			return nil, err
		}
	}
	codecs := Codecs(c.Scheme)
	params := runtime.NewParameterCodec(c.Scheme)
	var groups []*genericapiserver.APIGroupInfo
	byName := map[string]*genericapiserver.APIGroupInfo{}
	for _, r := range c.Resources {
		gvr := r.GroupVersionResource()
		g := byName[gvr.Group]
		if g == nil {
			info := genericapiserver.NewDefaultAPIGroupInfo(gvr.Group, c.Scheme, params, codecs)
			if !speaksProtobuf(c.Scheme, gvr.Group) {
				info.NegotiatedSerializer = textOnly{info.NegotiatedSerializer}
			}
			g = &info
			byName[gvr.Group] = g
			groups = append(groups, g)
		}
		storage, err := r.Storage(ctx, conf)
		if err != nil {
			return nil, err
		}
		if err := add(g, gvr, storage); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

func add(g *genericapiserver.APIGroupInfo, gvr schema.GroupVersionResource, storage map[string]registryrest.Storage) error {
	paths := g.VersionedResourcesStorageMap[gvr.Version]
	if paths == nil {
		paths = map[string]registryrest.Storage{}
		g.VersionedResourcesStorageMap[gvr.Version] = paths
	}
	for path, s := range storage {
		if paths[path] != nil {
			return fmt.Errorf("%s %s is served twice", gvr.GroupVersion(), path)
		}
		paths[path] = s
	}
	return nil
}

// NewGeneric gives a generic configuration with the defaults all our servers share.
func NewGeneric(scheme *runtime.Scheme) *genericapiserver.Config {
	g := genericapiserver.NewConfig(Codecs(scheme))
	g.FeatureGate = utilfeature.DefaultFeatureGate
	g.EffectiveVersion = effectiveVersion()
	g.MaxRequestBodyBytes = maxBody
	g.LongRunningFunc = LongRunning
	g.BuildHandlerChainFunc = handlerChain
	g.ShutdownWatchTerminationGracePeriod = watchDrain
	return g
}
