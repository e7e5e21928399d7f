// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/controller/agent"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/pkg/worker/program"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// confinement returns what confines programs of runs on this machine. groups is the folder for their control groups.
func (o *Options) confinement(ctx context.Context, groups string) (agent.Confinement, error) {
	k := sandbox.Probe()
	processes := program.LimitedBy(cgroup.Place{Dir: groups})
	if err := o.reportSandbox(k, processes); err != nil {
		return agent.Confinement{}, err
	}
	log := klog.FromContext(ctx)
	if o.SandboxOff {
		log.Error(nil, "THE SANDBOX IS OFF (--sandbox=off): programs of agents and tasks can read all that this process can, including the administrator's key")
		return agent.Confinement{Off: true}, nil
	}
	if err := k.Check(); err != nil {
		log.Error(err, "Tasks that run programs are refused (with --sandbox=off they run without a sandbox)")
		return agent.Confinement{Refusal: err.Error() + "; the operator can run them without (--sandbox=off)"}, nil // the refusal of each task
	}
	log.Info("Programs of runs are confined to a sandbox", "by", k.String(), "userNamespaces", k.UserNamespaces, "processesLimitedBy", processes)
	c := agent.Confinement{By: fmt.Sprintf("%s; user namespaces: %t", k, k.UserNamespaces)}
	if err := k.CheckProxy(); err != nil {
		c.NetworkRefusal = err.Error()
	}
	return c, nil
}

// findGroups returns the folder in which programs of runs get control groups; empty if this server can make none.
func findGroups(ctx context.Context) string {
	dir, err := cgroup.Find()
	if err != nil {
		klog.FromContext(ctx).Info("Programs of runs get no control groups", "reason", err.Error())
	}
	return dir
}

// reportSandbox registers the metric platform_sandbox_ready: 1 if programs of runs are confined to a sandbox, and 0 if they
// are refused or run without one. Its labels say what the kernel offers, and what holds the limit of their processes.
func (o *Options) reportSandbox(k sandbox.Kernel, processes string) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "platform_sandbox_ready", Help: "Whether programs of runs are confined to a sandbox.",
		ConstLabels: prometheus.Labels{
			"landlock": strconv.Itoa(k.Landlock), "seccomp": strconv.FormatBool(k.Seccomp),
			"user_namespaces": strconv.FormatBool(k.UserNamespaces), "off": strconv.FormatBool(o.SandboxOff),
			"processes": processes,
		},
	})
	if k.Check() == nil && !o.SandboxOff {
		g.Set(1)
	}
	_, err := metric.Register(o.Metrics, g)
	return err
}
