// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/support"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// tools finds the tools of these names.
func (m *maker) tools(ctx context.Context, names []types.NamespacedName) error {
	for _, key := range names {
		if b, ok := builtin.Find(key.Name); ok {
			if err := m.builtin(b); err != nil {
				return err
			}
			if what := m.lacks(key.Name); what != "" {
				m.plan.Notes = append(m.plan.Notes, support.AbsentTool(key.Name, what))
				continue
			}
			m.plan.Tools = append(m.plan.Tools, Tool{Name: key.Name})
			continue
		}
		if err := m.custom(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// lacks returns what a tool lacks at the place; empty if it lacks nothing.
func (m *maker) lacks(name string) string {
	if m.place.Lacks == nil {
		return ""
	}
	return m.place.Lacks(name)
}

// builtin refuses a built-in tool that cannot work at the place, unless the run goes on without it.
func (m *maker) builtin(b *builtin.Tool) error {
	if what := m.lacks(b.Name); what != "" && !b.Dispensable {
		return refusal.New(v1alpha1.ReasonToolUnavailable, "the tool %s cannot work here: %s; or take it from the tools of the task and its agent", b.Name, what)
	}
	if b.Effects.Has(builtin.Executes) && m.place.NoPrograms != "" {
		return refusal.New(v1alpha1.ReasonSandboxUnavailable, "tool %s: %s", b.Name, m.place.NoPrograms)
	}
	if b.Effects.Has(builtin.Executes) && m.place.NoNetwork != "" && PublicNetwork(m.plan.Agent) {
		return refusal.New(v1alpha1.ReasonSandboxUnavailable, "tool %s: spec.sandbox.network of Agent %q: %s", b.Name, m.plan.Agent.Name, m.place.NoNetwork)
	}
	return nil
}

// RunsPrograms reports whether tasks of the Agent may run programs, whatever else they name.
func RunsPrograms(a *v1alpha1.Agent) bool {
	task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI}}
	task.Namespace = a.Namespace
	return slices.ContainsFunc(UsesOf(task, a).Tools, func(key types.NamespacedName) bool {
		b, ok := builtin.Find(key.Name)
		return ok && b.Effects.Has(builtin.Executes)
	})
}

// PublicNetwork reports whether programs of the Agent may reach the public internet. The Agent may be nil.
func PublicNetwork(a *v1alpha1.Agent) bool {
	return a != nil && a.Spec.Sandbox != nil && a.Spec.Sandbox.Network == v1alpha1.SandboxNetworkPublic
}

// custom adds the Tool with the given name, if there is one.
func (m *maker) custom(ctx context.Context, key types.NamespacedName) error {
	o, err := m.reader.Tool(ctx, key)
	if apierrors.IsNotFound(err) {
		if found, err := m.accounts.add(ctx, key); found || err != nil {
			return err
		}
		m.plan.Notes = append(m.plan.Notes, support.UnknownTool("tools", key.Name))
		return nil
	}
	if err != nil {
		return fmt.Errorf("tool %s: %w", key, err)
	}
	if !tool.ValidName(key.Name) {
		return refusal.New(v1alpha1.ReasonToolInvalid, "tool %q: models know tools by names of 1 to 64 letters, digits, - and _", key.Name)
	}
	if err := tool.CheckSpec(&o.Spec); err != nil {
		return refusal.New(v1alpha1.ReasonToolInvalid, "tool %s: %v", key, err)
	}
	if o.Spec.MCP != nil && key.Namespace != m.namespace {
		return refusal.New(v1alpha1.ReasonToolInvalid, "tool %s: spec.mcp: a remote MCP tool can be used in its own namespace only, not from namespace %q", key, m.namespace)
	}
	m.plan.Tools = append(m.plan.Tools, Tool{Name: key.Name, Object: o})
	if h := o.Spec.HTTP; h != nil && h.AuthSecretRef != nil && !m.withoutKeys {
		address, err := tool.Address(&o.Spec)
		if err != nil {
			return refusal.New(v1alpha1.ReasonToolInvalid, "tool %s: its address cannot be used", key)
		}
		return m.need(ctx, Secret{Use: ForTool, For: key, Namespace: key.Namespace, Ref: *h.AuthSecretRef}, address)
	}
	return nil
}
