// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownplan makes the plan of a run, in its worker.
package ownplan

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// Of returns what the task of a run runs with. The controller applied the same rules before it started the run. If something
// has been deleted or changed since then so that the task cannot run, the error is a runner.Error with the reason that the
// controller would give now.
//
// It allows references to other namespaces, because the controller has decided about them, and the API server lets the run
// read nothing else.
func Of(ctx context.Context, r *runner.Run) (*plan.Plan, error) {
	place := plan.Place{OtherNamespaces: true, Started: true, Lacks: func(tool string) string {
		if tool == builtin.WebSearch.Name && r.SearchURL == "" { // the controller has said so
			return "no search service is set up"
		}
		return ""
	}, Runtime: func(v1alpha1.AgentRuntimeType) string { return "" }} // the runner looks for the program itself
	if err := r.Policy.Check(); err != nil {
		place.NoPrograms = err.Error()
	}
	if err := r.Policy.CheckProxy(); err != nil {
		place.NoNetwork = err.Error()
	}
	p, err := plan.Make(ctx, reader{r}, place, r.Task)
	if refused, ok := errors.AsType[*refusal.Error](err); ok {
		return nil, runner.Fail(refused.Reason, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	for _, note := range p.Notes {
		r.Log.Line("%s", note)
	}
	return p, nil
}

// reader reads the objects that the task refers to through the API server, and keys from what the run was given.
type reader struct{ *runner.Run }

var _ plan.Reader = reader{}

func (r reader) Agent(ctx context.Context, key types.NamespacedName) (*v1alpha1.Agent, error) {
	return r.API.CoreV1alpha1().Agents(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func (r reader) Provider(ctx context.Context, key types.NamespacedName) (*v1alpha1.Provider, error) {
	return r.API.CoreV1alpha1().Providers(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func (r reader) Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error) {
	list, err := r.API.CoreV1alpha1().Providers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (r reader) Skill(ctx context.Context, key types.NamespacedName) (*v1alpha1.Skill, error) {
	return r.API.CoreV1alpha1().Skills(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func (r reader) Tool(ctx context.Context, key types.NamespacedName) (*v1alpha1.Tool, error) {
	return r.API.CoreV1alpha1().Tools(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// ConnectorProviders returns those whose tools the task is bound to.
func (r reader) ConnectorProviders(ctx context.Context, namespace string) ([]v1alpha1.ConnectorProvider, error) {
	var all []v1alpha1.ConnectorProvider
	read := map[string]bool{}
	for _, b := range r.Task.Status.ConnectionBindings {
		if read[b.ConnectorProvider] {
			continue
		}
		read[b.ConnectorProvider] = true
		p, err := r.API.CoreV1alpha1().ConnectorProviders(namespace).Get(ctx, b.ConnectorProvider, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			all = append(all, *p)
		}
	}
	return all, nil
}

// Connection is read by no run: the controller has bound the tools to it.
func (reader) Connection(_ context.Context, key types.NamespacedName) (*v1alpha1.Connection, error) {
	return nil, apierrors.NewNotFound(v1alpha1.Resource("connections"), key.Name)
}

// AgentRuntime is read by no run: what it needs of its runtime was given to it.
func (reader) AgentRuntime(_ context.Context, key types.NamespacedName) (*v1alpha1.AgentRuntime, error) {
	return nil, apierrors.NewNotFound(v1alpha1.Resource("agentruntimes"), key.Name)
}

// ConfigMapKey returns the value that the run was given, because it may not read ConfigMaps.
func (r reader) ConfigMapKey(_ context.Context, key types.NamespacedName, name string) (string, bool, error) {
	text, ok := r.Credentials.ConfigMaps[runspec.ConfigMapKey(key.Namespace, key.Name, name)]
	return text, ok, nil
}

// HasSecret reports whether the run was given the value, because it may not read Secrets. Where the value may be sent was
// given with it: the Provider or Tool may have changed since.
func (r reader) HasSecret(_ context.Context, s plan.Secret) (bool, egress.Hosts, error) {
	key := runspec.CredentialKey(s.For.Namespace, s.For.Name)
	switch c := &r.Credentials; s.Use {
	case plan.ForProvider:
		return c.ProviderKeys[key] != "", c.Hosts.Providers[key], nil
	case plan.ForTool:
		return c.ToolKeys[key] != "", c.Hosts.Tools[key], nil
	default: // variables and mounts exist when a run has started
		return true, egress.Hosts{}, nil
	}
}
