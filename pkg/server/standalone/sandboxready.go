// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// programRefusal returns why programs of runs cannot be started on this machine; empty if they can.
func (o *Options) programRefusal(ctx context.Context) (string, error) {
	k := sandbox.Probe()
	if err := o.reportSandbox(k); err != nil {
		return "", err
	}
	log := klog.FromContext(ctx)
	if o.SandboxOff {
		log.Error(nil, "THE SANDBOX IS OFF (--sandbox=off): programs of agents and tasks can read all that this process can, including the administrator's key")
		return "", nil
	}
	if err := k.Check(); err != nil {
		log.Error(err, "Tasks that run programs are refused (with --sandbox=off they run without a sandbox)")
		return err.Error() + "; the operator can run them without (--sandbox=off)", nil // the refusal of each task
	}
	log.Info("Programs of runs are confined to a sandbox", "by", k.String(), "userNamespaces", k.UserNamespaces)
	return "", nil
}

// reportSandbox registers the metric platform_sandbox_ready: 1 if programs of runs are confined to a sandbox, and 0 if they
// are refused or run without one. Its labels say what the kernel offers.
func (o *Options) reportSandbox(k sandbox.Kernel) error {
	if o.Metrics == nil {
		return nil
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "platform_sandbox_ready", Help: "Whether programs of runs are confined to a sandbox.",
		ConstLabels: prometheus.Labels{
			"landlock": strconv.Itoa(k.Landlock), "seccomp": strconv.FormatBool(k.Seccomp),
			"user_namespaces": strconv.FormatBool(k.UserNamespaces), "off": strconv.FormatBool(o.SandboxOff),
		},
	})
	if k.Check() == nil && !o.SandboxOff {
		g.Set(1)
	}
	if err := o.Metrics.Register(g); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
