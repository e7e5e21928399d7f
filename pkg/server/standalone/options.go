// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone runs the whole platform in one process on one machine: the store, the API server with a small
// part of the Kubernetes API, and the controllers. Workers are child processes.
//
// All its files are in one data directory, which only one process at a time may use:
//
//	kubeconfig   the administrator's client certificate, for kubectl
//	pki/         keys and certificates
//	store/       all objects, events and results (see FORMAT.md of pkg/storage/engine)
//	runs/        working directories of tasks; no secrets
//
// The parts start in the order store, host, API server, controllers, and stop in the reverse order. So controllers
// can write their last status, and no write is interrupted.
package standalone

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/controller"
	"github.com/platform-ai/platform/pkg/controller/task"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/server/host"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/workspace"
)

// DefaultPort is the default port of the API.
const DefaultPort = 7443

// DefaultRESTAddress is the default address of the REST API without TLS.
const DefaultRESTAddress = "127.0.0.1:7080"

// DefaultMaxRunning is the default number of tasks that run at once. A worker mostly waits for its model and takes
// about 50 MB, so this many take 1.6 GB.
const DefaultMaxRunning = 32

// Options configure a standalone server.
type Options struct {
	server.Options
	// AllowHostCommands lets tasks of type container run as commands on this machine, with the permissions of this
	// process.
	AllowHostCommands bool
	// SandboxOff runs programs of agents and tasks without a sandbox. They can then read everything that this process
	// can, including its keys.
	SandboxOff bool
	// SandboxRead are directories that programs may read and execute, in addition to those of the system.
	SandboxRead []string
	// RunDiskLimit is what the files of one run may take on disk. A run that exceeds it ends.
	RunDiskLimit resource.QuantityValue
	// KeepRuns leaves the files of runs on disk until their tasks are deleted, to look into them. Otherwise only what the
	// server has stored remains.
	KeepRuns bool
	// MaxRunning limits how many tasks run at once, and MaxRunningPerNamespace how many of one namespace. Other tasks
	// wait. 0 means no limit.
	MaxRunning, MaxRunningPerNamespace int
	// ReservedTasks are how many of MaxRunning only a namespace can have. Shares of the others follow NamespaceWeights.
	ReservedTasks map[string]int
	// WorkerBinary is the program that runs a task. Default: platform-worker next to this program, and for tasks of type
	// container platform-worker-command if that is there, too, because it starts faster.
	WorkerBinary string
	// WorkspaceBinary is the program that fetches the repositories of tasks. Default: platform-workspace next to this program;
	// without it, tasks with a workspace are refused.
	WorkspaceBinary string
	// AgentPrograms are the programs of coding agents, as NAME=PATH. Default: those that are in PATH.
	AgentPrograms []string
	agentPrograms agentprogram.Given
	// Pools configures the RuntimePools of coding agents.
	Pools agentprogram.PoolOptions
	// containerWorker is the program for tasks of type container.
	containerWorker string

	// Ready, if set, is called once the server answers; an error stops the server.
	Ready func(ctx context.Context, s Info) error
	// Controllers runs until ctx ends. Default: the platform's own controllers.
	Controllers func(ctx context.Context, c *rest.Config) error

	// WebhookAllow lists destinations, as host:port, that completion callbacks may reach although they are not public.
	WebhookAllow []string
	// MergeGate permits repository monitors to merge pull requests.
	MergeGate bool
}

// Info describes where a running server can be reached.
type Info struct {
	// URL is the address of the API.
	URL string
	// RESTURL is the address of the listener without TLS; empty if there is none.
	RESTURL string
	// Console is set if the server serves the web console.
	Console bool
	// DataDir is the absolute path of the data directory.
	DataDir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Admin is the content of Kubeconfig as a client configuration.
	Admin *rest.Config
}

// lockTimeout is how long a start waits for a server that is ending, which takes up to 2 s with many open watches.
const lockTimeout = 4 * time.Second

// NewOptions returns the default options.
func NewOptions() *Options {
	return &Options{
		Options: server.Options{
			DataDir: "_data", BindAddress: "127.0.0.1", Port: DefaultPort, RESTBindAddress: DefaultRESTAddress, LockTimeout: lockTimeout,
			Console: true, Gateways: server.Gateways{Enabled: true}, Chat: server.ChatDefaults(),
		},
		Pools: agentprogram.DefaultPoolOptions(), MaxRunning: DefaultMaxRunning, RunDiskLimit: resource.QuantityValue{Quantity: resource.MustParse("10Gi")},
	}
}

// AddFlags binds the options that an operator sets to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.BoolVar(&o.AllowHostCommands, "allow-host-commands", o.AllowHostCommands, "let tasks of type container run as commands of this machine, with the rights of this process")
	fs.Var(sandbox.Flag{Off: &o.SandboxOff}, "sandbox", "on: programs of agents and tasks are kept in a sandbox, and refused where the kernel has none; off: they can reach everything that this process can, including its keys")
	fs.StringSliceVar(&o.SandboxRead, "sandbox-read-path", o.SandboxRead, "folder that programs in the sandbox may read and execute in addition to those of the system, such as a toolchain; repeatable")
	fs.Var(&o.RunDiskLimit, "run-disk-limit", "disk that the files of one run may take; a run that exceeds it ends with the reason DiskLimitExceeded")
	fs.BoolVar(&o.KeepRuns, "keep-run-folders", o.KeepRuns, "keep the files of runs until their tasks are deleted, to look into them; otherwise a run's folder is emptied once the server has stored its events, log, result and artifacts")
	fs.IntVar(&o.MaxRunning, "max-running-tasks", o.MaxRunning, "tasks that run at once; others wait until slots become free, which go round the namespaces, and within one by priority and age. 0 is no limit")
	fs.StringToIntVar(&o.ReservedTasks, "reserved-tasks", o.ReservedTasks, "NAMESPACE=NUMBER: slots, of those of --max-running-tasks, that only tasks of this namespace can have. Repeatable")
	fs.IntVar(&o.MaxRunningPerNamespace, "max-tasks-per-namespace", o.MaxRunningPerNamespace, "tasks of one namespace that run at once; 0 is no limit")
	fs.StringVar(&o.WorkerBinary, "worker-binary", o.WorkerBinary, "program that runs a task (default: platform-worker next to this program, and platform-worker-command for tasks of type container)")
	fs.StringVar(&o.WorkspaceBinary, "workspace-binary", o.WorkspaceBinary, "program that fetches the repositories of tasks (default: platform-workspace next to this program; without it, tasks with spec.workspace are refused)")
	fs.StringSliceVar(&o.AgentPrograms, "agent-runtime", o.AgentPrograms, "NAME=PATH: program of a coding agent (claude, codex, copilot or opencode) that speaks the Agent Client Protocol; without it the agent's own program is looked for in PATH. What the program reads besides the system's folders needs --sandbox-read-path. Repeatable")
	o.Pools.AddFlags(fs)
	fs.StringSliceVar(&o.WebhookAllow, "webhook-allow", o.WebhookAllow, "host:port that completion callbacks may reach although it is not public; repeatable")
}

// shares say how slots for runs are divided.
func (o *Options) shares() fairshare.Shares {
	return fairshare.Shares{Weights: o.NamespaceWeights, Reserved: o.ReservedTasks}
}

// complete checks the options and derives the remaining ones.
func (o *Options) complete() error {
	if err := o.Complete(); err != nil {
		return err
	}
	if err := task.CheckShares(o.shares(), o.MaxRunning, o.MaxRunningPerNamespace); err != nil {
		return err
	}
	if o.RunDiskLimit.Sign() <= 0 {
		return fmt.Errorf("--run-disk-limit: %s: must be above 0", o.RunDiskLimit.String())
	}
	if err := sandbox.CheckRead(o.SandboxRead, []string{o.DataDir}); err != nil {
		return fmt.Errorf("--sandbox-read-path: %w", err)
	}
	var err error
	if o.agentPrograms, err = agentprogram.ParseGiven(o.AgentPrograms); err == nil {
		err = o.agentPrograms.Check()
	}
	if err != nil {
		return fmt.Errorf("--agent-runtime: %w", err)
	}
	if err := o.Pools.Check(); err != nil {
		return err
	}
	o.LocalRuns = true
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("worker program: %w", err)
	}
	if o.WorkspaceBinary, err = workspace.Program(o.WorkspaceBinary); err != nil {
		return fmt.Errorf("workspace program: %w", err)
	}
	o.Chat.Blocked = []string{host.SystemNamespace} // models must not work among the platform's own objects
	if o.WorkerBinary != "" {
		o.containerWorker = o.WorkerBinary
		return nil
	}
	o.WorkerBinary = filepath.Join(filepath.Dir(self), "platform-worker")
	o.containerWorker = o.WorkerBinary + "-command"
	if !isFile(o.containerWorker) {
		o.containerWorker = o.WorkerBinary
	}
	return nil
}

// isFile reports whether there is a file at a path.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// names returns the names that the server's certificate needs in addition to the usual ones.
func (o *Options) names() []string {
	if ip := net.ParseIP(o.BindAddress); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
		return nil
	}
	return []string{o.BindAddress}
}

// SetEnvironment takes over what only the environment says.
func (o *Options) SetEnvironment(environ []string) (err error) {
	if o.Webhook, err = server.WebhookOf(environ); err != nil {
		return err
	}
	o.MergeGate, err = controller.MergeGateOf(environ)
	return err
}
