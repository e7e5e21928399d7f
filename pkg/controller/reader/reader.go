// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reader reads the objects that a plan refers to, for controllers. It reads from their cache, and from the
// server what the cache does not have yet.
package reader

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
)

// Reader is a plan.Reader.
type Reader struct {
	// Cached is read first.
	Cached client.Reader
	// Live reads from the server what Cached does not have. It is nil if Cached reads from the server itself.
	Live client.Reader
	// OnSecret, if not nil, receives each value that was found, except those of mounts. It may not be used before the plan
	// is made, which may refuse it.
	OnSecret func(s plan.Secret, value []byte)
}

var _ plan.Reader = Reader{}

// Secrets returns what reads Secrets from the server. The client must not cache them.
func Secrets(c client.Client) func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
	return func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
		s := &corev1.Secret{}
		return s, c.Get(ctx, key, s)
	}
}

func (r Reader) get(ctx context.Context, key types.NamespacedName, o client.Object) error {
	err := r.Cached.Get(ctx, key, o)
	if apierrors.IsNotFound(err) && r.Live != nil {
		err = r.Live.Get(ctx, key, o)
	}
	return err
}

// Agent reads an Agent.
func (r Reader) Agent(ctx context.Context, key types.NamespacedName) (*v1alpha1.Agent, error) {
	a := &v1alpha1.Agent{}
	return a, r.get(ctx, key, a)
}

// Provider reads a Provider.
func (r Reader) Provider(ctx context.Context, key types.NamespacedName) (*v1alpha1.Provider, error) {
	p := &v1alpha1.Provider{}
	return p, r.get(ctx, key, p)
}

// Providers lists the Providers of a namespace that are cached.
func (r Reader) Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error) {
	var list v1alpha1.ProviderList
	err := r.Cached.List(ctx, &list, client.InNamespace(namespace))
	return list.Items, err
}

// Skill reads a Skill.
func (r Reader) Skill(ctx context.Context, key types.NamespacedName) (*v1alpha1.Skill, error) {
	s := &v1alpha1.Skill{}
	return s, r.get(ctx, key, s)
}

// Tool reads a Tool.
func (r Reader) Tool(ctx context.Context, key types.NamespacedName) (*v1alpha1.Tool, error) {
	t := &v1alpha1.Tool{}
	return t, r.get(ctx, key, t)
}

// ConnectorProviders lists the ConnectorProviders of a namespace that are cached.
func (r Reader) ConnectorProviders(ctx context.Context, namespace string) ([]v1alpha1.ConnectorProvider, error) {
	var list v1alpha1.ConnectorProviderList
	err := r.Cached.List(ctx, &list, client.InNamespace(namespace))
	return list.Items, err
}

// Connection reads a Connection.
func (r Reader) Connection(ctx context.Context, key types.NamespacedName) (*v1alpha1.Connection, error) {
	c := &v1alpha1.Connection{}
	return c, r.get(ctx, key, c)
}

// AgentRuntime reads an AgentRuntime.
func (r Reader) AgentRuntime(ctx context.Context, key types.NamespacedName) (*v1alpha1.AgentRuntime, error) {
	o := &v1alpha1.AgentRuntime{}
	return o, r.get(ctx, key, o)
}

// ConfigMapKey reads a key of a ConfigMap.
func (r Reader) ConfigMapKey(ctx context.Context, key types.NamespacedName, name string) (string, bool, error) {
	m := &corev1.ConfigMap{}
	err := r.get(ctx, key, m)
	text, ok := m.Data[name]
	return text, ok, err
}

// HasSecret checks for a Secret and a value of its key, and reads where the value may be sent.
func (r Reader) HasSecret(ctx context.Context, s plan.Secret) (bool, egress.Hosts, error) {
	o := &corev1.Secret{}
	err := r.get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Ref.Name}, o)
	s.Hosts = plan.HostsOf(o.Annotations)
	if err != nil || s.Use == plan.ForMount {
		return err == nil, s.Hosts, err
	}
	value := o.Data[s.Ref.Key]
	if len(value) > 0 && r.OnSecret != nil {
		r.OnSecret(s, value)
	}
	return len(value) > 0, s.Hosts, nil
}
