// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the API server from k8s.io/apiserver's generic server, the given resources, and what
// these share: scheme, OpenAPI, admission, limits and health.
//
//	Config > Complete > CompletedConfig > New > Server
//
// The program sets authentication, authorization, storage and the listener on Config.Generic. A standalone process
// takes them from the host packages; a server in a cluster delegates to the cluster.
//
// Admission runs in this process, because a host cluster's admission never sees objects of an aggregated API.
// NamespaceLifecycle is always on. Policies, webhooks and quotas read objects of certain kinds, so a program lists in
// Config.Admission only the plugins whose kinds Config.Host serves.
//
//large:imports it puts together what the two hosts share of one server
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/compat"
	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/pkg/server/facade"
	facaderest "github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/server/intake"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/panics"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/sparse"
)

const (
	// maxBody bounds the request body of an object, as in kube-apiserver. JSON for the platform's own resources may be longer,
	// and subresources may have limits of their own.
	maxBody = 3 << 20
	// watchDrain is how long open watches may take to end when the server stops.
	watchDrain = time.Second
	// shutdownTimeout is how long connections may take to close after that.
	shutdownTimeout = 5 * time.Second
)

// Config describes what the server serves.
//
//large:fields each is one thing that the two hosts give to the same server
type Config struct {
	// Generic holds what every API server has. NewGeneric makes one with the platform's defaults.
	Generic *genericapiserver.Config
	// Scheme contains every type of Resources, as its version and as internal. NewScheme makes it.
	Scheme *runtime.Scheme
	// Resources are the served resources of all groups.
	Resources []resource.Resource
	// Definitions are the OpenAPI definitions of the resources' types.
	Definitions []common.GetOpenAPIDefinitions
	// Namespaces, if set, is called once with a lister of the namespaces, before the server serves.
	Namespaces func(corelisters.NamespaceLister)
	// Admission plugins run after NamespaceLifecycle, in order.
	Admission []admission.Interface
	// Host is the client configuration for the cluster that has the namespaces and the configuration of admission and
	// of priority and fairness; nil means this server itself.
	Host *rest.Config
	// PriorityAndFairness shares the server's capacity among callers according to the host's FlowSchemas, instead of
	// two limits on requests in flight.
	PriorityAndFairness bool
	// Immortal are the namespaces that cannot be deleted.
	Immortal []string
	// Healthy is called by /readyz and /livez, under the name "store".
	Healthy func() error
	// Clock is used to compute ages in tables.
	Clock clock.PassiveClock
	// REST, if set, serves the documented REST paths in addition to the Kubernetes API.
	REST *facade.Options
	// Compat, if set, serves the APIs of model vendors beside the REST paths.
	Compat *compat.Options
	// Requests, if set, says when requests to models end with the server; otherwise they end when it begins to stop.
	Requests *models.Requests
	// Console, if set, is put before each listener. It gets the handler of the listener and that of the whole API, which
	// the listener with the REST paths alone does not serve.
	Console func(listener, api http.Handler) http.Handler
	// Names, if set, is put before the secure listener, and refuses requests that mean another host.
	Names func(http.Handler) http.Handler
	// Handlers serve paths outside the API groups. Each key is an exact path, for callers whose role names it under
	// nonResourceURLs. Their requests have no deadline; their contexts end when the server begins to stop. A key that ends
	// with a slash is the beginning of paths of resources that Storage does not serve; these are ordinary requests.
	Handlers map[string]http.Handler
	// Intake, if set, accounts for the bodies of requests on all listeners, and refuses bodies from unauthenticated
	// callers.
	Intake *intake.Gate
	// Doors, if set, answer requests of callers that authentication does not know, before everything else on all listeners.
	Doors *door.Set
	// Lists, if set, bounds the memory of the lists that are answered at the same time.
	Lists *Lists
	// Sparse receives the log lines that clients can trigger repeatedly. Default: a new sparse log on Clock.
	Sparse *sparse.Log
	// Panics, if set, counts the requests that panic.
	Panics *panics.Counter
	// StoreID is the identity of the store, which every answer names in a header; see v1alpha1.HeaderStoreID.
	StoreID string
	// Ready are additional checks of /readyz, by name. /readyz/NAME shows the error of a failing one.
	Ready map[string]func() error
	// Health, if set, answers probes of the secure listener whose client accepts exactly JSON, as the listener of REST answers
	// all. Others get the texts of Kubernetes.
	Health *facaderest.Health
	// Identify, if set, is the innermost filter. It runs after authentication, impersonation and authorization, and
	// may change the user that the handler sees.
	Identify func(http.Handler) http.Handler
}

type completedConfig struct{ Config }

// CompletedConfig can only be made by Config.Complete.
type CompletedConfig struct{ *completedConfig }

// Server is an assembled server that does not serve yet.
type Server struct {
	// Generic is the underlying server of k8s.io/apiserver.
	Generic *genericapiserver.GenericAPIServer
	// REST serves only the REST paths, for a listener of their own, whose outermost handler Guard makes; both are nil if Config.REST
	// is nil.
	REST  http.Handler
	Guard func(http.Handler) http.Handler
	// Drained is closed when the server is stopping and no request needs the store any more. Connections may still be
	// open.
	Drained <-chan struct{}
	openapi *lazyOpenAPI
}

// Complete derives the remaining settings. It changes Config.Generic.
func (c *Config) Complete() (CompletedConfig, error) {
	switch {
	case c.Generic == nil || c.Scheme == nil || c.Generic.RESTOptionsGetter == nil:
		return CompletedConfig{}, errors.New("the configuration needs Generic with its RESTOptionsGetter, and Scheme")
	case c.Generic.Authentication.Authenticator == nil || c.Generic.Authorization.Authorizer == nil:
		return CompletedConfig{}, errors.New("authentication and authorization are needed")
	case c.Generic.LoopbackClientConfig == nil:
		return CompletedConfig{}, errors.New("a loopback client is needed")
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
	c.addTimeouts()
	c.addSparseLog()
	c.addPanics()
	c.addWellformed()
	c.addIntake()
	c.addLists()
	if c.Identify != nil {
		chain := c.Generic.BuildHandlerChainFunc
		c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
			return chain(c.Identify(api), g)
		}
	}
	c.addCreates()
	outer := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		return NoSniff(outer(api, g))
	}
	if c.StoreID != "" {
		chain := c.Generic.BuildHandlerChainFunc
		c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
			return nameStore(chain(api, g), c.StoreID)
		}
	}
	return CompletedConfig{&completedConfig{*c}}, nil
}

// console puts the console before a listener.
func (c *Config) console(listener, api http.Handler) http.Handler {
	if c.Console == nil {
		return listener
	}
	return c.Console(listener, api)
}

// NoSniff makes clients take each answer for what its Content-Type says. Answers hold what agents wrote.
func NoSniff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// nameStore sets the header that names the store in every answer.
func nameStore(next http.Handler, id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(v1alpha1.HeaderStoreID, id)
		next.ServeHTTP(w, r)
	})
}

// New builds the server. Hooks of resources run under ctx, which should end when the server has stopped.
func (c CompletedConfig) New(ctx context.Context) (*Server, error) {
	host, err := c.addAdmission()
	if err != nil {
		return nil, err
	}
	if c.Namespaces != nil {
		c.Namespaces(host.Core().V1().Namespaces().Lister())
	}
	s := &Server{}
	vendors, err := c.vendors(ctx)
	if err != nil {
		return nil, err
	}
	var facadeErr error
	if c.REST != nil {
		chain := c.Generic.BuildHandlerChainFunc
		c.Generic.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
			inside, calls := chain(api, g), c.callChain(vendors, g) //nolint:contextcheck // requests have theirs
			var f *facade.Facade
			o := *c.REST
			o.Document = sync.OnceValues(func() ([]byte, error) { return facade.Document(merged(c.Definitions)) })
			if f, facadeErr = facade.New(inside, o); facadeErr != nil {
				return http.NotFoundHandler() // New ends
			}
			context.AfterFunc(ctx, f.Close)
			s.REST = c.console(vendors.wrap(calls, f.Alone()), f)
			s.Guard = func(listener http.Handler) http.Handler { return c.guard(listener, g) }
			return c.console(vendors.wrap(calls, f), f)
		}
	}
	c.guardListener()
	if c.Intake != nil {
		context.AfterFunc(ctx, c.Intake.Close)
	}
	if c.Doors != nil {
		context.AfterFunc(ctx, c.Doors.Close)
	}
	if c.Lists != nil {
		context.AfterFunc(ctx, c.Lists.Close)
	}
	if c.Panics != nil {
		context.AfterFunc(ctx, c.Panics.Close)
	}
	generic, err := c.Generic.Complete(host).New("platform", genericapiserver.NewEmptyDelegate())
	if err = errors.Join(err, facadeErr); err != nil {
		return nil, fmt.Errorf("generic server: %w", err)
	}
	generic.ShutdownTimeout = shutdownTimeout
	for path, h := range c.Handlers {
		if strings.HasSuffix(path, "/") {
			generic.Handler.NonGoRestfulMux.HandlePrefix(path, h)
		} else {
			generic.Handler.NonGoRestfulMux.Handle(path, h)
		}
	}
	groups, err := c.groups(ctx, host)
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

// Run serves until ctx ends and then shuts down. First readiness fails and watches and streams are ended, then
// requests in flight finish, and only then are the listener and the resources closed.
func (s *Server) Run(ctx context.Context) error {
	s.openapi.install()
	return s.Generic.PrepareRun().RunWithContext(ctx)
}

// groups sorts the resources' storage into API groups, in the order in which the groups first appear.
func (c CompletedConfig) groups(ctx context.Context, host informers.SharedInformerFactory) ([]*genericapiserver.APIGroupInfo, error) {
	conf := resource.Config{Scheme: c.Scheme, RESTOptions: c.Generic.RESTOptionsGetter, Clock: c.Clock}
	conf.Namespaces = host.Core().V1().Namespaces().Lister() // NamespaceLifecycle reads them, too
	if len(c.Admission) > 0 {                                // without NamespaceLifecycle: events are still recorded in a namespace that is being deleted
		conf.Admission = admission.NewChainHandler(c.Admission...)
		conf.Policies = host.Admissionregistration().V1().ValidatingAdmissionPolicies().Lister()
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

// NewGeneric returns a generic configuration with the defaults that all servers of the platform share.
func NewGeneric(scheme *runtime.Scheme) *genericapiserver.Config {
	g := genericapiserver.NewConfig(Codecs(scheme))
	g.FeatureGate = utilfeature.DefaultFeatureGate
	g.EffectiveVersion = effectiveVersion()
	g.MaxRequestBodyBytes = intake.MaxJSON // admitBodies has the lower limits
	g.LongRunningFunc = LongRunning
	g.BuildHandlerChainFunc = handlerChain
	g.ShutdownWatchTerminationGracePeriod = watchDrain
	return g
}
