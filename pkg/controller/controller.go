// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller joins the controllers of the platform into one manager. They act through
// the API only, so the manager can run in the server's process or, in a cluster, in a process
// of its own (see ClusterOptions).
//
// In a cluster the process needs, in the namespaces of tasks:
//
//	core.platform.ai  tasks                            get list watch create patch delete
//	                  agents                           get list watch delete
//	                  runtimepools                     get list watch create delete
//	                  connectorproviders               get list watch
//	                  connections                      get list watch patch
//	                  connections/release              create
//	                  agentruntimes, approvals, gateways, gatewaybindings, gatewayevents, providers, skills, tools, repositorymonitors  get list watch
//	                  gatewaydeliveries, monitor{runs,items,commands,workactions,mutations}  get list watch create
//	                  gateways/probe, gatewaydeliveries/send, gatewayevents/decide, repositorymonitors/codehost  create
//	                  repositorymonitors/links         get
//	                  sessions                         get create
//	                  {tasks,agents,agentruntimes,providers,runtimepools,sessions,skills,tools,repositorymonitors}/status  patch
//	                  {connectorproviders,connections}/status  patch
//	                  gateway{s,bindings,deliveries,events}/status, monitor{runs,items,commands,workactions,mutations}/status  patch
//	                  executionevents                  list
//	                  executionevents/controlled, sessions/transcript, tasks/cancel, tasks/events, usagelinks  create
//	                  tasks/plan, tasks/result         get
//	batch             jobs                             get list watch create patch delete
//	""                pods                             get list watch
//	                  events                           list watch create
//	                  secrets, configmaps              get
//	                  serviceaccounts                  get create
//	rbac              rolebindings                     get create
//	                  clusterroles platform-worker     bind (cluster-wide)
//
// in the whole cluster gatewayclasses (get, list, watch) with their status (patch), and in its own namespace leases (get, create, update) and
// events (create, patch).
//
//large:imports it joins all controllers
package controller

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/agent"
	"github.com/platform-ai/platform/pkg/controller/agentruntime"
	"github.com/platform-ai/platform/pkg/controller/connector"
	"github.com/platform-ai/platform/pkg/controller/gateway"
	"github.com/platform-ai/platform/pkg/controller/monitor"
	"github.com/platform-ai/platform/pkg/controller/provider"
	"github.com/platform-ai/platform/pkg/controller/runtimepool"
	"github.com/platform-ai/platform/pkg/controller/task"
	"github.com/platform-ai/platform/pkg/controller/tool"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/sparse"
)

// shutdownTimeout is how long running reconciles may take to end at shutdown.
const shutdownTimeout = 10 * time.Second

// Options configure the controllers.
type Options struct {
	// Tasks configures the controller of tasks. All controllers use its clock.
	Tasks task.Options
	// Programs says what confines the programs of Agents.
	Programs agent.Confinement
	// MergeGate permits repository monitors to merge pull requests.
	MergeGate bool
	// Gateways configures the controllers of gateways. Clock and Metrics are those of Tasks if they are not set.
	Gateways gateway.Options
	// Connectors keeps the status of ConnectorProviders and Connections.
	Connectors bool
	// ToolProbeInterval is the time between two probes of a Tool. Default 1 min.
	ToolProbeInterval time.Duration
	// WebFetchAllow lists host:port of MCP servers that may be asked although their addresses are not public.
	WebFetchAllow []string
	// LeaderElection makes sure that only one of several processes acts, through a Lease.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the Lease. Default platform-system.
	LeaderElectionNamespace string
	// MetricsBindAddress serves metrics when it is not empty.
	MetricsBindAddress string
	// Namespaces are the namespaces whose objects are reconciled; empty means all.
	Namespaces []string
	// Beside, if not nil, runs alongside the controllers, while they act.
	Beside func(ctx context.Context) error
	// OnReady, if not nil, is called when the controllers have started to work.
	OnReady func()
}

// MergeGateOf returns whether the environment permits repository monitors to merge.
func MergeGateOf(environ []string) (open bool, err error) {
	const name = "PLATFORM_REPOSITORY_MONITOR_AUTOMERGE_GATE"
	for _, e := range environ {
		value, ok := strings.CutPrefix(e, name+"=")
		if value = strings.TrimSpace(value); !ok || value == "" {
			continue
		}
		if open, err = strconv.ParseBool(value); err != nil {
			return false, fmt.Errorf("%s: must be true or false", name)
		}
	}
	return open, nil
}

// Run runs the controllers until the context ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	mgr, err := newManager(ctx, cfg, &o)
	if err != nil {
		return err
	}
	o.Tasks.Pools = task.NewPools(o.Tasks.Clock.Now)
	for _, add := range []func(manager.Manager) error{
		func(m manager.Manager) error { return task.Add(ctx, m, o.Tasks) },
		func(m manager.Manager) error { return runtimepool.Add(ctx, m, poolsOf(o.Tasks)) },
		func(m manager.Manager) error {
			return agent.Add(ctx, m, o.Tasks.Clock, task.PlaceOf(o.Tasks), o.Programs)
		},
		func(m manager.Manager) error {
			return provider.Add(m, provider.Options{Clock: o.Tasks.Clock, RequireSecretHosts: o.Tasks.RequireSecretHosts})
		},
		func(m manager.Manager) error {
			// Runtimes are registered by administrators; metadata services stay closed.
			return agentruntime.Add(m, agentruntime.Options{Clock: o.Tasks.Clock, Guard: egress.Guard{Private: true}, RequireSecretHosts: o.Tasks.RequireSecretHosts})
		},
		func(m manager.Manager) error {
			return monitor.Add(ctx, m, monitor.Options{Clock: o.Tasks.Clock, MergeGate: o.MergeGate, Metrics: o.Tasks.Metrics})
		},
		func(m manager.Manager) error { return gateway.Add(ctx, m, gatewaysOf(&o)) },
		func(m manager.Manager) error {
			return connector.Add(ctx, m, connector.Options{Clock: o.Tasks.Clock, Enabled: o.Connectors, RequireSecretHosts: o.Tasks.RequireSecretHosts})
		},
		func(m manager.Manager) error {
			// Tools are made by people who may also call them; metadata services stay closed.
			return tool.Add(m, tool.Options{
				Interval: o.ToolProbeInterval, Guard: egress.Guard{Private: true}, Remote: egress.Guard{Allow: o.WebFetchAllow}, Clock: o.Tasks.Clock,
				RequireSecretHosts: o.Tasks.RequireSecretHosts,
			})
		},
	} {
		if err := add(mgr); err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
	}
	if o.Beside != nil {
		if err := mgr.Add(manager.RunnableFunc(o.Beside)); err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
	}
	if o.OnReady != nil {
		err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if mgr.GetCache().WaitForCacheSync(ctx) {
				o.OnReady()
			}
			return nil
		}))
		if err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	return nil
}

// poolsOf returns the options of the controller of RuntimePools that go with those of tasks.
func poolsOf(o task.Options) runtimepool.Options {
	return runtimepool.Options{
		Ledger: o.Pools, Clock: o.Clock, IdleTTL: o.PoolOptions.IdleTTL, Image: task.ImageOf(o.Executor), Lacks: task.PlaceOf(o).Runtime,
		Pods: o.Executor.ByReference(), Metrics: o.Metrics,
	}
}

// gatewaysOf returns the options of the controllers of gateways.
func gatewaysOf(o *Options) gateway.Options {
	g := o.Gateways
	if g.Clock == nil {
		g.Clock = o.Tasks.Clock
	}
	if g.Metrics == nil {
		g.Metrics = o.Tasks.Metrics
	}
	return g
}

// setLogger guards the global logger of controller-runtime, which parts of it use: a process may run several managers.
var setLogger sync.Once

func newManager(ctx context.Context, cfg *rest.Config, o *Options) (manager.Manager, error) {
	if o.Tasks.Clock == nil {
		o.Tasks.Clock = clock.RealClock{}
	}
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = "platform-system"
	}
	if o.MetricsBindAddress == "" {
		o.MetricsBindAddress = "0" // none
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // no client-side limit: the server has API Priority and Fairness
	cfg.UserAgent = "platform-controller"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("controllers: %w", err)
		}
	}
	log := newErrorLog(ctx, klog.FromContext(ctx).WithName("controller"), sparse.New(o.Tasks.Clock))
	setLogger.Do(func() { crlog.SetLogger(log) })
	mgr, err := manager.New(cfg, manager.Options{
		Scheme:                  scheme,
		Logger:                  log,
		Metrics:                 metricsserver.Options{BindAddress: o.MetricsBindAddress},
		HealthProbeBindAddress:  "0",
		LeaderElection:          o.LeaderElection,
		LeaderElectionID:        "platform-controller",
		LeaderElectionNamespace: o.LeaderElectionNamespace,
		// The process ends when it loses leadership, so the next leader need not wait.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
		Cache: cache.Options{
			DefaultNamespaces: only(o.Namespaces),
			DefaultTransform:  cache.TransformStripManagedFields(),
			// Only pending approvals are cached, and only records of gateways that are not ended, because the others have no bound.
			ByObject: map[client.Object]cache.ByObject{
				&v1alpha1.Approval{}:        {Field: fields.OneTermEqualSelector("status.state", string(v1alpha1.ApprovalPending))},
				&v1alpha1.GatewayEvent{}:    {Field: fields.OneTermEqualSelector("open", "true")},
				&v1alpha1.GatewayDelivery{}: {Field: fields.OneTermEqualSelector("open", "true")},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: uncached()}},
		// A process may run the controllers again, after the server restarts within it.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return mgr, nil
}

// only restricts caches to the given namespaces; an empty list does not restrict them.
func only(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	m := map[string]cache.Config{}
	for _, n := range namespaces {
		m[n] = cache.Config{}
	}
	return m
}

// uncached returns the kinds that are read from the server each time: Secrets, because their
// values should not stay in memory, and others, because their number has no bound.
func uncached() []client.Object {
	return []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{},
		&v1alpha1.Session{}, &v1alpha1.ExecutionEvent{},
	}
}
