// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// accounts plans the tools of a task that use the account of the person who asked for it.
type accounts struct {
	reader Reader
	task   *v1alpha1.Task
	// started is that of the Place.
	started bool
	plan    *Plan
	// writes are the tools that write.
	writes []string
}

// add adds the tool of a ConnectorProvider with the given name. The controller decides, and binds the tool to the account; the run follows
// the bindings. It reports whether the tool is one of a provider. There are none without a task.
func (a *accounts) add(ctx context.Context, key types.NamespacedName) (bool, error) {
	if a == nil || key.Namespace != a.task.Namespace {
		return false, nil
	}
	providers, err := a.reader.ConnectorProviders(ctx, key.Namespace)
	if err != nil {
		return false, fmt.Errorf("connector providers of namespace %s: %w", key.Namespace, err)
	}
	if a.started {
		return a.bound(providers, key.Name)
	}
	var of []*v1alpha1.ConnectorProvider
	for i := range providers {
		if p := &providers[i]; connector.Available(p) == nil && connector.HTTPTool(p, key.Name) != nil {
			of = append(of, p)
		}
	}
	switch {
	case len(of) == 0:
		return false, nil
	case len(of) > 1:
		names := make([]string, len(of))
		for i, p := range of {
			names[i] = p.Name
		}
		slices.Sort(names)
		return false, refusal.New(v1alpha1.ReasonToolInvalid, "tool %s: several ConnectorProviders declare it, and it is not clear whose account is meant: %s", key.Name, strings.Join(names, ", "))
	}
	return true, a.bind(ctx, of[0], connector.HTTPTool(of[0], key.Name))
}

// bind adds a tool, and the binding to the account of the person who asked for the task, if there is one.
func (a *accounts) bind(ctx context.Context, p *v1alpha1.ConnectorProvider, t *v1alpha1.ConnectorTool) error {
	who := a.task.Spec.RequestedBy
	if who == nil {
		a.plan.Notes = append(a.plan.Notes, fmt.Sprintf("tool %q: it needs the account of the person who asked for the task, and nobody is known to have; create the task with the token of a person", t.Name))
		return nil
	}
	b := v1alpha1.TaskConnectionBinding{Tool: t.Name, ConnectorProvider: p.Name, ToolDigest: connector.ToolDigest(t)}
	c, err := a.reader.Connection(ctx, types.NamespacedName{Namespace: a.task.Namespace, Name: connector.Name(p.Name, who.Issuer, who.Subject)})
	switch {
	case apierrors.IsNotFound(err): // the tool says that the person has to connect
	case err != nil:
		return fmt.Errorf("connection to %s: %w", p.Name, err)
	case c.Spec.Subject != v1alpha1.ConnectionSubject{Issuer: who.Issuer, Subject: who.Subject}:
		a.plan.Notes = append(a.plan.Notes, fmt.Sprintf("tool %q: the connection %s is another person's", t.Name, c.Name))
		return nil
	case t.Class == v1alpha1.ConnectorToolWrite && c.Spec.Mode != v1alpha1.ConnectionReadWrite:
		a.plan.Notes = append(a.plan.Notes, fmt.Sprintf("tool %q: the account is connected for reading only", t.Name))
		return nil
	default:
		b.Connection, b.ConnectionUID, b.GrantSequence = c.Name, c.UID, c.Status.GrantSequence
		if c.Status.Consent != nil {
			b.AuthorityDigest = c.Status.Consent.AuthorityDigest
		}
	}
	a.plan.Bindings = append(a.plan.Bindings, b)
	a.use(p, t)
	return nil
}

// bound adds a tool that the controller has bound when it started the run.
func (a *accounts) bound(providers []v1alpha1.ConnectorProvider, name string) (bool, error) {
	bindings := a.task.Status.ConnectionBindings
	i := slices.IndexFunc(bindings, func(b v1alpha1.TaskConnectionBinding) bool { return b.Tool == name })
	if i < 0 {
		return false, nil
	}
	b := &bindings[i]
	for j := range providers {
		if providers[j].Name != b.ConnectorProvider {
			continue
		}
		if t := connector.HTTPTool(&providers[j], name); t != nil && connector.ToolDigest(t) == b.ToolDigest {
			a.use(&providers[j], t)
			return true, nil
		}
	}
	return false, refusal.New(v1alpha1.ReasonToolInvalid, "tool %s: ConnectorProvider %q has changed since the run was started", name, b.ConnectorProvider)
}

// use adds a tool of a provider. One that writes needs an approval.
func (a *accounts) use(p *v1alpha1.ConnectorProvider, t *v1alpha1.ConnectorTool) {
	a.plan.Tools = append(a.plan.Tools, Tool{Name: t.Name, Connector: &ConnectorTool{Provider: p.Name, Tool: t}})
	if t.Class == v1alpha1.ConnectorToolWrite {
		a.writes = append(a.writes, t.Name)
	}
}

// gated returns the tools whose calls need an approval: those of uses, and those that write with the account of a person.
func (a *accounts) gated(uses *Uses) []string {
	all := slices.Clone(uses.Gated)
	for _, name := range a.writes {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
