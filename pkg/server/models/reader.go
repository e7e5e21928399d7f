// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/readcache"
)

// secretAge is how long the key of a Secret is used that another server stores. A key that its vendor refuses is read again at once.
const secretAge = 10 * time.Second

// kept is what was read before. Its objects are shared and must not be changed.
type kept struct {
	agents    readcache.Cache[types.NamespacedName, *v1alpha1.Agent]
	providers readcache.Cache[string, *namespaced] // by namespace
	tools     readcache.Cache[string, []v1alpha1.Tool]
	secrets   readcache.Cache[types.NamespacedName, *corev1.Secret]
	// choices are what follows from all of these. They are not kept if another server has the Secrets.
	choices readcache.Cache[Query, *Choice]
}

// namespaced are the Providers of a namespace.
type namespaced struct {
	list   []v1alpha1.Provider
	byName map[string]*v1alpha1.Provider
}

func newKept(o *Options) *kept {
	k := &kept{}
	changed := func(resource string) func() (uint64, bool) { return readcache.ChangesOf(o.Changed, resource) }
	k.agents.Changed, k.agents.Clock = changed(v1alpha1.Resource("agents").String()), o.Clock
	k.providers.Changed, k.providers.Clock = changed(v1alpha1.Resource("providers").String()), o.Clock
	k.tools.Changed, k.tools.Clock = changed(v1alpha1.Resource("tools").String()), o.Clock
	k.secrets.Changed, k.secrets.Clock, k.secrets.Age = changed("secrets"), o.Clock, secretAge
	if o.Host != nil { // another server has the Secrets
		k.secrets.Changed = func() (uint64, bool) { return 0, false }
	}
	k.choices.Clock = o.Clock
	k.choices.Changed = func() (newest uint64, known bool) {
		for _, f := range []func() (uint64, bool){k.agents.Changed, k.providers.Changed, k.secrets.Changed} {
			rev, ok := f()
			if !ok {
				return 0, false
			}
			newest = max(newest, rev) // resources share one counter, so each change makes this greater
		}
		return newest, true
	}
	return k
}

// reader reads for one request, and collects the keys of its Providers.
type reader struct {
	models *Models
	keys   map[types.NamespacedName]key // by Provider
}

// key is the key of a Provider, and the Secret that has it.
type key struct {
	value  string
	secret types.NamespacedName
	field  string
	// hosts is where the value may be sent.
	hosts egress.Hosts
}

var _ plan.Reader = (*reader)(nil)

// errNotNeeded is returned for objects that decide nothing about models.
var errNotNeeded = errors.New("skills, tools, runtimes and ConfigMaps are not read")

// Agent reads an Agent.
func (r *reader) Agent(ctx context.Context, key types.NamespacedName) (*v1alpha1.Agent, error) {
	a, err := r.models.kept.agents.Get(ctx, key, func(ctx context.Context) (*v1alpha1.Agent, error) {
		return r.models.objects.CoreV1alpha1().Agents(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, err
	}
	return a.DeepCopy(), nil
}

// Provider reads a Provider, which must not be changed.
func (r *reader) Provider(ctx context.Context, key types.NamespacedName) (*v1alpha1.Provider, error) {
	all, err := r.models.providers(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	p := all.byName[key.Name]
	if p == nil {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("providers"), key.Name)
	}
	return p, nil
}

// Providers lists the Providers of a namespace.
func (r *reader) Providers(ctx context.Context, namespace string) ([]v1alpha1.Provider, error) {
	return r.models.Providers(ctx, namespace)
}

// providers returns the Providers of a namespace, which must not be changed.
func (m *Models) providers(ctx context.Context, namespace string) (*namespaced, error) {
	return m.kept.providers.Get(ctx, namespace, func(ctx context.Context) (*namespaced, error) {
		list, err := m.objects.CoreV1alpha1().Providers(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("providers of namespace %s: %w", namespace, err)
		}
		all := &namespaced{list: list.Items, byName: make(map[string]*v1alpha1.Provider, len(list.Items))}
		for i := range list.Items {
			all.byName[list.Items[i].Name] = &list.Items[i]
		}
		return all, nil
	})
}

// Skill is not needed to find a model.
func (*reader) Skill(context.Context, types.NamespacedName) (*v1alpha1.Skill, error) {
	return nil, errNotNeeded
}

// Tool is not needed to find a model.
func (*reader) Tool(context.Context, types.NamespacedName) (*v1alpha1.Tool, error) {
	return nil, errNotNeeded
}

// ConnectorProviders are not needed to find a model.
func (*reader) ConnectorProviders(context.Context, string) ([]v1alpha1.ConnectorProvider, error) {
	return nil, errNotNeeded
}

// Connection is not needed to find a model.
func (*reader) Connection(context.Context, types.NamespacedName) (*v1alpha1.Connection, error) {
	return nil, errNotNeeded
}

// AgentRuntime is not needed to find a model.
func (*reader) AgentRuntime(context.Context, types.NamespacedName) (*v1alpha1.AgentRuntime, error) {
	return nil, errNotNeeded
}

// ConfigMapKey is not needed to find a model.
func (*reader) ConfigMapKey(context.Context, types.NamespacedName, string) (string, bool, error) {
	return "", false, errNotNeeded
}

// HasSecret reads the key of a Provider and keeps its value.
func (r *reader) HasSecret(ctx context.Context, s plan.Secret) (bool, egress.Hosts, error) {
	if s.Use != plan.ForProvider {
		return false, egress.Hosts{}, errNotNeeded
	}
	if known := r.keys[s.For]; known.value != "" {
		return true, known.hosts, nil
	}
	k := key{secret: types.NamespacedName{Namespace: s.Namespace, Name: s.Ref.Name}, field: s.Ref.Key}
	if err := k.read(ctx, r.models); err != nil {
		return false, egress.Hosts{}, err
	}
	r.keys[s.For] = k
	return k.value != "", k.hosts, nil
}

// read reads the value of a key, and where it may be sent.
func (k *key) read(ctx context.Context, m *Models) error {
	secret, err := m.kept.secrets.Get(ctx, k.secret, func(ctx context.Context) (*corev1.Secret, error) {
		return m.secrets.CoreV1().Secrets(k.secret.Namespace).Get(ctx, k.secret.Name, metav1.GetOptions{})
	})
	if err != nil {
		return err
	}
	k.value, k.hosts = string(secret.Data[k.field]), plan.HostsOf(secret.Annotations)
	return nil
}
