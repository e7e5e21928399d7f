// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	records "github.com/platform-ai/platform/pkg/usage"
)

// models returns the models that a request used.
func (w *work) models() []string {
	var all []string
	for _, n := range w.tasks {
		for _, o := range n.used {
			if o.Model != "" && !slices.Contains(all, o.Model) {
				all = append(all, o.Model)
			}
		}
	}
	slices.Sort(all)
	return all
}

// show returns a work request without its tasks.
func (r *report) show(w *work) (*v1alpha1.UsageWork, error) {
	s, err := r.sumUp([]*work{w})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.UsageWork{
		ID: w.ID(r.uid), Namespace: r.namespace, NamespaceUID: types.UID(r.uid), Repository: w.Repository, Kind: v1alpha1.UsageKind(w.Kind), Number: w.Number,
		StartedAt: stamp(w.first().CreatedAt), Summary: *s, Models: w.models(),
	}
	for _, n := range w.tasks {
		if out.MonitorName == "" {
			out.MonitorName, out.MonitorUID = n.Work.MonitorName, types.UID(n.Work.MonitorUID)
		}
	}
	return out, nil
}

// task returns a task with its measurements.
func (r *report) task(n *node, workID string) (*v1alpha1.UsageTask, error) {
	s, err := r.sum([]*node{n})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.UsageTask{
		Namespace: n.Namespace, NamespaceUID: types.UID(n.NamespaceUID), TaskUID: types.UID(n.UID), TaskName: n.Name, SessionName: n.SessionName,
		ParentTaskUID: types.UID(n.ParentTaskUID), WorkID: workID, Repository: n.Repository, PRNumber: n.PRNumber, Phase: n.Phase,
		Role: n.Role, Runtime: cmp.Or(n.Runtime, n.Type), Agent: n.Agent, StartedAt: stamp(n.CreatedAt), GatewayOwner: n.GatewayOwner,
		Usage: s.totals(), Measurements: make([]v1alpha1.UsageMeasured, len(n.used)), Shared: len(n.works) > 1,
	}
	if !n.StartedAt.IsZero() {
		out.StartedAt = stamp(n.StartedAt)
	}
	for i, o := range n.used {
		out.Measurements[i] = r.measured(o)
	}
	return out, nil
}

// measured returns one measurement.
func (r *report) measured(o *records.Observation) v1alpha1.UsageMeasured {
	m := v1alpha1.UsageMeasured{
		ID: o.ID, AttemptID: o.AttemptID, Scope: string(o.Scope), Source: string(o.Source), Provider: o.Provider, Model: o.Model,
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens, CachedInputTokens: o.CachedInputTokens, CacheWriteInputTokens: o.CacheWriteInputTokens,
		Status: string(o.Status), Completeness: v1alpha1.UsagePartial, Gap: o.Gap, ObservedAt: stamp(o.ObservedAt),
	}
	switch {
	case !o.Some():
		m.Completeness = v1alpha1.UsageUnavailable
	case o.Complete && o.Reported():
		m.Completeness = v1alpha1.UsageComplete
	}
	if c, ok := r.Prices.Cost(o); ok {
		m.Cost = &v1alpha1.UsageAmount{Currency: c.Currency, Amount: c.Amount.String()}
	}
	return m
}
