// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimepool

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/agentprogram"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/metric"
)

// metrics shows the pools in the controller's cache.
type metrics struct {
	ctx                                        context.Context //nolint:containedctx // of the controller
	ledger                                     Ledger
	pools                                      client.Reader
	desired, ready, sessions, prompts, waiting *prometheus.Desc
	admission                                  *prometheus.Desc
	deleted                                    *prometheus.CounterVec
}

var _ prometheus.Collector = (*metrics)(nil)

// show registers the metrics, until ctx ends: a process may run controllers again.
func show(ctx context.Context, r prometheus.Registerer, l Ledger, pools client.Reader) (*metrics, error) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("platform_acp_runtime_pool_"+name, help, labels, nil)
	}
	m := &metrics{
		ctx: ctx, ledger: l, pools: pools,
		desired:   desc("desired_replicas", "Instances of a RuntimePool that are wanted while no task needs one (spec.desiredReplicas).", "namespace", "runtime_pool"),
		ready:     desc("ready_replicas", "1 while a session of a RuntimePool is at work; sessions are processes or Pods of their own.", "namespace", "runtime_pool"),
		sessions:  desc("sessions_active", "Tasks that hold a place in a RuntimePool.", "namespace", "runtime_pool"),
		prompts:   desc("prompts_in_flight", "Tasks of a RuntimePool whose agent is at work.", "namespace", "runtime_pool"),
		waiting:   desc("queued_tasks", "Tasks that wait for a place in a RuntimePool.", "namespace", "runtime_pool"),
		admission: desc("admission_state", "1 for the state of a RuntimePool's admission, 0 for the others.", "namespace", "runtime_pool", "state"),
	}
	var err error
	m.deleted, err = metric.Register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "platform_acp_runtime_pool_scale_to_zero_total", Help: "How often a RuntimePool was deleted because no task needed it.",
	}, []string{"namespace", "runtime_pool"}))
	if err != nil || r == nil {
		return m, err
	}
	if err := r.Register(m); err != nil {
		return nil, fmt.Errorf("metrics of runtime pools: %w", err)
	}
	context.AfterFunc(ctx, func() { r.Unregister(m) })
	return m, nil
}

// Describe sends the descriptions of all metrics.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.desired, m.ready, m.sessions, m.prompts, m.waiting, m.admission} {
		ch <- d
	}
}

// Collect sends the current values.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	var list v1alpha1.RuntimePoolList
	if err := m.pools.List(m.ctx, &list); err != nil {
		klog.FromContext(m.ctx).Info("RuntimePools cannot be counted", "cause", err.Error())
		return
	}
	for i := range list.Items {
		p := &list.Items[i]
		if agentprogram.TypeOf(p) == "" {
			continue
		}
		use, known := m.ledger.Use(client.ObjectKeyFromObject(p))
		if !known {
			return
		}
		send := func(d *prometheus.Desc, n int32, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), append([]string{p.Namespace, p.Name}, labels...)...)
		}
		desired := int32(0)
		if p.Spec.DesiredReplicas != nil {
			desired = *p.Spec.DesiredReplicas
		}
		send(m.desired, desired)
		send(m.ready, min(1, use.Running))
		send(m.sessions, use.Resident)
		send(m.prompts, use.Running)
		send(m.waiting, use.Queued)
		for _, state := range []v1alpha1.RuntimePoolAdmission{
			v1alpha1.PoolAdmissionClosed, v1alpha1.PoolAdmissionAccepting, v1alpha1.PoolAdmissionDraining, v1alpha1.PoolAdmissionAmbiguous,
		} {
			is := int32(0)
			if p.Status.Admission == state {
				is = 1
			}
			send(m.admission, is, string(state))
		}
	}
}
