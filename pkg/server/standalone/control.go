// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/controller"
	"github.com/platform-ai/platform/pkg/controller/executor/process"
	"github.com/platform-ai/platform/pkg/controller/publisher"
	"github.com/platform-ai/platform/pkg/controller/task"
	"github.com/platform-ai/platform/pkg/runspec"
)

const (
	// restartDelay and restartDelayMax bound the wait before controllers that failed are started again.
	restartDelay, restartDelayMax = time.Second, 30 * time.Second
)

// mountsRefused is the reason why a task that mounts a Secret fails: the Secret would be on disk, in a directory of
// the run.
const mountsRefused = "Secrets are not mounted into runs on this machine; give single values with spec.env and secretKeyRef"

// hostCommandsRefused is the reason why a container task fails if the operator did not allow such tasks.
const hostCommandsRefused = "container tasks are commands of the host here, which the operator did not allow (--allow-host-commands)"

// imagesRefused is the reason why a container task that names an image fails.
const imagesRefused = "container tasks are commands of the host here, so another program than that of the image would run; leave spec.image out"

// repositoriesRefused is the reason why a task with a workspace fails where the program that prepares it is missing.
const repositoriesRefused = "the program platform-workspace, which fetches repositories, is not next to the server (install it there, or name it with --workspace-binary)"

// control runs the controllers until ctx ends. Runs continue after it returns, and the next process finds them again.
func (o *Options) control(ctx context.Context, a *assembly) (err error) {
	if o.Controllers != nil {
		o.keepRunning(ctx, a.Loopback, o.Controllers)
		return nil
	}
	exchange := o.Identity.ContextToken.Exchange
	if err := exchange.ReadCA(o.Identity.ContextToken.CAFile); err != nil {
		return fmt.Errorf("--context-token-ca-file: %w", err)
	}
	groups := findGroups(ctx)
	e, err := process.Open(ctx, process.Options{
		Dir: o.Path(runsFolder), Command: []string{o.WorkerBinary}, ContainerCommand: []string{o.containerWorker}, Standby: o.containerWorker != o.WorkerBinary, ControllerURL: a.info.URL, CAFile: a.host.PKI().CAFile(),
		AllowHostCommands: o.AllowHostCommands, WebFetchAllow: o.WebFetchAllow, SearchURL: o.SearchURL, AgentPrograms: o.agentPrograms, Clock: o.Clock,
		RepositoryAllow: o.RepositoryAllow, WorkspaceProgram: o.WorkspaceBinary,
		DiskBytes: o.RunDiskLimit.Value(), Keep: o.KeepRuns, Exchange: exchange,
		Sandbox: runspec.Sandbox{Off: o.SandboxOff, Hide: []string{o.DataDir}, Read: o.SandboxRead, Groups: groups},
	})
	if err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	defer func() {
		n := e.Running()
		err = errors.Join(err, e.Close(), goOn(o.Out, n, o.DataDir))
	}()
	options := task.Options{
		Executor: e, MountRefusal: mountsRefused, MaxRunning: o.MaxRunning, MaxRunningPerNamespace: o.MaxRunningPerNamespace,
		Shares: o.shares(), Metrics: o.Metrics, PoolOptions: o.Pools,
		WebhookAllow: o.WebhookAllow, SearchKey: o.SearchKey, Clock: o.Clock, LocalRuns: true, RequireSecretHosts: o.RequireSecretHosts,
	}
	options.ImageRefusal = imagesRefused
	if o.WorkspaceBinary == "" {
		options.RepositoryRefusal = repositoriesRefused
	} else if options.Publisher, err = publisher.New(ctx, o.WorkspaceBinary, o.Path(publicationsFolder)); err != nil {
		return err
	}
	options.RepositoryAllow = o.RepositoryAllow
	programs, err := o.confinement(ctx, groups)
	if err != nil {
		return err
	}
	options.ProgramRefusal, options.NetworkRefusal = programs.Refusal, programs.NetworkRefusal
	if !o.AllowHostCommands {
		options.ContainerRefusal = hostCommandsRefused
	}
	gateways := controller.GatewayOptions{
		ClaimLease: o.Gateways.Limits.Lease, EventExpiry: o.Gateways.Limits.EventExpiry, BatchSize: o.Gateways.BatchSize, DeliveryAttempts: o.Gateways.Limits.MaxAttempts,
	}
	o.keepRunning(ctx, a.Loopback, func(ctx context.Context, c *rest.Config) error {
		return controller.Run(ctx, c, controller.Options{Tasks: options, Programs: programs, WebFetchAllow: o.WebFetchAllow, MergeGate: o.MergeGate, Gateways: gateways, Connectors: o.Connectors.Enabled})
	})
	return nil
}

// keepRunning runs controllers until ctx ends. If they fail, it starts them again after growing delays; the API stays
// available meanwhile.
func (o *Options) keepRunning(ctx context.Context, c *rest.Config, run func(context.Context, *rest.Config) error) {
	log := klog.FromContext(ctx)
	for delay := restartDelay; ; delay = min(2*delay, restartDelayMax) {
		err := run(ctx, rest.CopyConfig(c))
		if ctx.Err() != nil {
			return
		}
		log.Error(err, "The controllers ended; starting them again", "delay", delay)
		timer := o.Clock.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}
