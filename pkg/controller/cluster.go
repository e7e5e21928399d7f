// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/agent"
	"github.com/platform-ai/platform/pkg/controller/executor/kubernetes"
	"github.com/platform-ai/platform/pkg/controller/gateway"
	"github.com/platform-ai/platform/pkg/controller/publisher"
	"github.com/platform-ai/platform/pkg/controller/task"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/envflag"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/memlimit"
	"github.com/platform-ai/platform/pkg/profiling"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/workerpod"
	"github.com/platform-ai/platform/pkg/workspace"
)

// GatewayOptions configure the controllers of gateways.
type GatewayOptions = gateway.Options

// ClusterOptions configure the controllers as a process in a cluster, where tasks run as Jobs.
type ClusterOptions struct {
	// Kubeconfig is the path of a kubeconfig file; empty means the ServiceAccount of the pod.
	Kubeconfig string
	// WatchNamespaces are the namespaces whose tasks are run; empty means all.
	WatchNamespaces []string
	// LeaderElect makes sure that only one of several processes acts, through a Lease in LeaderElectNamespace. That
	// namespace defaults to the pod's.
	LeaderElect          bool
	LeaderElectNamespace string
	// MetricsBindAddress is where metrics are served; empty disables them.
	MetricsBindAddress string
	// HealthProbeBindAddress is where /healthz and /readyz are served; empty disables them.
	HealthProbeBindAddress string
	// Profiling is where profiles are served; empty disables them.
	Profiling profiling.Address
	// MaxRunning and MaxRunningPerNamespace limit the number of running tasks; 0 means no limit.
	MaxRunning, MaxRunningPerNamespace int
	// Shares divide running tasks among namespaces.
	Shares fairshare.Shares
	// WebhookAllow lists host:port that callbacks may reach although their addresses are not public.
	WebhookAllow []string
	// Connectors keeps the status of ConnectorProviders and Connections.
	Connectors bool
	// MergeGate permits repository monitors to merge pull requests.
	MergeGate bool
	// RequireSecretHosts refuses the use of Secrets that do not name the hosts to which their values may be sent.
	RequireSecretHosts bool
	// CAFile is a PEM file with the authorities of the token service in Runs.Exchange; empty means those of the system.
	CAFile string
	// WorkspaceBinary is the program that publishes what tasks change in their repositories, and PublicationsDir the folder in which it
	// makes one for what it needs meanwhile. Without the program such tasks are refused.
	WorkspaceBinary, PublicationsDir string
	// RunMemoryLimit is the memory limit of runs whose task and agent set none.
	RunMemoryLimit resource.QuantityValue
	// Gateways configures the controllers of gateways.
	Gateways GatewayOptions
	// Pools configures the RuntimePools of coding agents.
	Pools agentprogram.PoolOptions
	// Runs are the options of the executor. RunCluster sets its Client, Namespaces and MemoryLimit.
	Runs kubernetes.Options
}

// NewClusterOptions returns the defaults.
func NewClusterOptions() *ClusterOptions {
	o := &ClusterOptions{Pools: agentprogram.DefaultPoolOptions(), LeaderElect: true, LeaderElectNamespace: ownNamespace(), HealthProbeBindAddress: ":8081", Runs: kubernetes.Options{
		SearchSecret: kubernetes.DefaultSearchSecret, UnreachableTimeout: kubernetes.DefaultUnreachableTimeout, StartTimeout: kubernetes.DefaultStartTimeout,
		AgentImages: agentprogram.Images{},
	}, RunMemoryLimit: resource.QuantityValue{Quantity: kubernetes.DefaultMemoryLimit()}}
	if strings.Contains(os.Getenv("KUBERNETES_SERVICE_HOST"), ":") { // an IPv6 cluster
		o.Runs.APIURL = "https://[$(KUBERNETES_SERVICE_HOST)]:$(KUBERNETES_SERVICE_PORT)"
	}
	return o
}

func ownNamespace() string {
	namespace, err := workerpod.OwnNamespace()
	if err != nil {
		return "" // Options has a default
	}
	return namespace
}

// AddFlags binds the options to flags.
func (o *ClusterOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file; empty means the ServiceAccount of the pod")
	fs.StringSliceVar(&o.WatchNamespaces, "watch-namespace", nil, "namespace whose tasks are run; may be repeated; none means all")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "let one of several processes act, through a Lease")
	fs.StringVar(&o.LeaderElectNamespace, "leader-elect-namespace", o.LeaderElectNamespace, "namespace of the Lease; empty means platform-system")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "serve metrics at this address; empty means nowhere")
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "serve /healthz and /readyz at this address; empty means nowhere")
	o.Profiling.AddFlag(fs)
	fs.StringVar(&o.Runs.WorkerImage, "worker-image", "", "image with the worker program as its entrypoint, and /platform-workspace (required)")
	fs.StringVar(&o.Runs.AIImage, "ai-worker-image", "", "image for tasks of type ai; the worker program is put into it; empty means the worker image")
	fs.StringVar(&o.Runs.GeneralImage, "general-worker-image", "", "image for tasks of type container that name none; the worker program is put into it; empty means the worker image")
	o.Runs.AgentImages.AddFlags(fs)
	o.Pools.AddFlags(fs)
	fs.IntVar(&o.MaxRunning, "max-running-tasks", 0, "limit of running tasks of all namespaces; slots that become free go round the namespaces, and within one by priority and age. 0 is no limit")
	fs.StringToIntVar(&o.Shares.Weights, "namespace-weight", nil, "NAMESPACE=WEIGHT: how many of the running tasks a namespace gets, in relation to others, which have 1; give the server the same flag for its chats and rate limits. Repeatable")
	fs.StringToIntVar(&o.Shares.Reserved, "reserved-tasks", nil, "NAMESPACE=NUMBER: slots, of those of --max-running-tasks, that only tasks of this namespace can have. Repeatable")
	fs.IntVar(&o.MaxRunningPerNamespace, "max-tasks-per-namespace", 0, "limit of running tasks of one namespace; 0 is no limit")
	fs.StringSliceVar(&o.Runs.WebFetchAllow, "web-fetch-allow", nil, "host:port that the tool web_fetch, remote MCP tools and redirects of HTTP tools may reach although it is private; may be repeated")
	fs.StringSliceVar(&o.Runs.RepositoryAllow, "repository-allow", nil, "host:port from which repositories of tasks (spec.workspace.gitRepo) may be fetched although it is not public; may be repeated")
	fs.StringSliceVar(&o.WebhookAllow, "webhook-allow", nil, "host:port that callbacks may reach although it is not public; may be repeated")
	fs.BoolVar(&o.Connectors, "connectors-enabled", o.Connectors, "keep the status of ConnectorProviders and Connections; set it as the server has it")
	fs.DurationVar(&o.Gateways.ClaimLease, "gateway-claim-lease", time.Minute, "after how long the event of a gateway whose task an interrupted controller was making is taken up by another one")
	fs.IntVar(&o.Gateways.BatchSize, "gateway-batch-size", 25, "how many sessions of gateways are worked on at a time, at most 100")
	fs.BoolVar(&o.RequireSecretHosts, "require-secret-hosts", false, "use no Secret that does not name the hosts to which its values may be sent (annotation platform.ai/allowed-hosts); give the server the same flag")
	fs.Var(sandbox.Flag{Off: &o.Runs.SandboxOff}, "sandbox", "whether programs of runs are kept in a sandbox in their pods: on, or off where nodes lack Landlock (Linux 5.13) and programs may read the keys of their own run")
	fs.StringVar(&o.Runs.SearchURL, "search-url", "", "address of the search service that the tool web_search uses; empty disables the tool")
	fs.StringVar(&o.Runs.SearchSecret, "search-secret", o.Runs.SearchSecret, "Secret of a task's namespace whose key api-key is that of the search service; it need not exist")
	o.Runs.Exchange.AddFlags(fs)
	(&envflag.Set{FlagSet: fs}).Text(&o.CAFile, "context-token-ca-file", "", "PEM file with the authorities of the certificate of --context-token-tts-endpoint (default: those of the system)")
	fs.DurationVar(&o.Runs.UnreachableTimeout, "unreachable-timeout", o.Runs.UnreachableTimeout, "how long a pod stays bound to a node that does not answer")
	fs.DurationVar(&o.Runs.StartTimeout, "start-timeout", o.Runs.StartTimeout, "how long scheduling, mounts and image of a run may take; a run waits for room in a quota without a limit")
	fs.StringVar(&o.WorkspaceBinary, "workspace-binary", o.WorkspaceBinary, "program that publishes what tasks change in their repositories (default: platform-workspace next to this program; without it, tasks with spec.workspace.intent write are refused)")
	fs.StringVar(&o.PublicationsDir, "publications-dir", o.PublicationsDir, "folder in which a folder is made for what publications need meanwhile (default: the system's folder for temporary files)")
	fs.Var(&o.RunMemoryLimit, "run-memory-limit", "memory limit of runs whose task and agent name none")
}

// RunCluster runs the controllers until the context ends, or leadership is lost.
func RunCluster(ctx context.Context, o ClusterOptions) error {
	memlimit.Set(ctx)
	if o.Runs.WorkerImage == "" {
		return errors.New("--worker-image is required")
	}
	if err := errors.Join(o.Runs.AgentImages.Check(), o.Pools.Check()); err != nil {
		return err
	}
	var err error
	if o.Runs.RepositoryAllow, err = egress.ParseAllow(strings.Join(o.Runs.RepositoryAllow, ",")); err != nil {
		return fmt.Errorf("--repository-allow: %w", err)
	}
	if err := task.CheckShares(o.Shares, o.MaxRunning, o.MaxRunningPerNamespace); err != nil {
		return err
	}
	if err := o.Runs.Exchange.Check(); err != nil {
		return err
	}
	if err := o.Runs.Exchange.ReadCA(o.CAFile); err != nil {
		return fmt.Errorf("--context-token-ca-file: %w", err)
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	if o.Runs.Clock == nil {
		o.Runs.Clock = clock.RealClock{}
	}
	if o.Runs.SandboxOff {
		klog.FromContext(ctx).Error(nil, "THE SANDBOX IS OFF (--sandbox=off): programs of agents and tasks can read the keys of their run and the token of their worker")
	}
	stop, err := o.Profiling.Serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	health, err := serveProbes(ctx, o.HealthProbeBindAddress)
	if err != nil {
		return err
	}
	defer health.close()
	if o.Runs.Client, err = newClient(cfg); err != nil {
		return err
	}
	o.Runs.Namespaces, o.Runs.MemoryLimit = o.WatchNamespaces, o.RunMemoryLimit.Quantity
	if o.Runs.Store, err = storeOf(cfg); err != nil {
		return err
	}
	runs, err := kubernetes.New(o.Runs)
	if err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	tasks := task.Options{
		Executor: runs, MaxRunning: o.MaxRunning, MaxRunningPerNamespace: o.MaxRunningPerNamespace,
		Shares: o.Shares, PoolOptions: o.Pools, Metrics: ctrlmetrics.Registry, RepositoryAllow: o.Runs.RepositoryAllow,
		WebhookAllow: o.WebhookAllow, RequireSecretHosts: o.RequireSecretHosts, Clock: o.Runs.Clock,
	}
	if err := o.publish(ctx, &tasks); err != nil {
		return err
	}
	if err := awaitGroup(ctx, cfg, o.Runs.Clock); err != nil {
		return err
	}
	health.ready.Store(true)
	return Run(ctx, cfg, Options{
		Tasks:          tasks,
		Programs:       agent.Confinement{Off: o.Runs.SandboxOff},
		LeaderElection: o.LeaderElect, LeaderElectionNamespace: o.LeaderElectNamespace,
		MetricsBindAddress: o.MetricsBindAddress, Namespaces: o.WatchNamespaces, Beside: runs.Run,
		WebFetchAllow: o.Runs.WebFetchAllow, MergeGate: o.MergeGate, Gateways: o.Gateways, Connectors: o.Connectors,
	})
}

func (o *ClusterOptions) config() (*rest.Config, error) {
	var cfg *rest.Config
	var err error
	if o.Kubeconfig == "" {
		cfg, err = rest.InClusterConfig()
	} else {
		cfg, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("client configuration: %w", err)
	}
	return cfg, nil
}

// publish sets who publishes what tasks change in their repositories.
func (o *ClusterOptions) publish(ctx context.Context, tasks *task.Options) error {
	path, err := workspace.Program(o.WorkspaceBinary)
	if err != nil {
		return err
	}
	if path == "" {
		tasks.PublicationRefusal = publicationsRefused
		return nil
	}
	dir := cmp.Or(o.PublicationsDir, os.TempDir())
	tasks.Publisher, err = publisher.New(ctx, path, filepath.Join(dir, fmt.Sprintf("platform-publications-%d", os.Getpid())))
	return err
}

// publicationsRefused is the reason why a task that changes its repository fails where the program that publishes is missing.
const publicationsRefused = "the program platform-workspace, which publishes branches, is not next to the controller (install it there, or name it with --workspace-binary)"

// newClient returns a client for Jobs and Pods, which kube-apiserver serves in a compact encoding.
func newClient(cfg *rest.Config) (clientset.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.UserAgent = -1, "platform-controller"
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c, err := clientset.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// groupPause is the time between two checks for the platform's API.
const groupPause = 500 * time.Millisecond

// awaitGroup returns when the platform's own API is served and discoverable. Controllers that
// start earlier would fail.
func awaitGroup(ctx context.Context, cfg *rest.Config, c clock.WithTicker) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	tick := c.NewTicker(groupPause)
	defer tick.Stop()
	for told := false; ; {
		err := hasGroup(cfg, client)
		if err == nil {
			return nil
		}
		if !told {
			klog.FromContext(ctx).Info("Waiting for the platform's API", "group", v1alpha1.SchemeGroupVersion.String(), "cause", err.Error())
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C():
		}
	}
}

// hasGroup checks through discovery, as the controllers will. kube-apiserver serves a group a
// moment before its discovery lists it.
func hasGroup(cfg *rest.Config, client *http.Client) error {
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, client)
	if err != nil {
		return err
	}
	for _, kind := range []string{"Task", "Approval"} {
		if _, err := mapper.RESTMapping(v1alpha1.SchemeGroupVersion.WithKind(kind).GroupKind(), v1alpha1.SchemeGroupVersion.Version); err != nil {
			return err
		}
	}
	return nil
}
