// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host provides the small part of Kubernetes that the platform needs
// where there is no cluster: identities, permissions, namespaces, secrets and
// configuration. They are served from the platform's own store, next to its own
// kinds.
//
// The program that assembles the server uses the package in this order:
//
//	h, err := host.New(host.Config{Dir: …})
//	scheme, err := apiserver.NewScheme(host.Install, …)
//	… RESTOptionsGetter with h.Transformers() …
//	resources := h.Resources(ours...)
//	err = h.Apply(generic)        // before the server is built
//	…New(ctx)                     // builds the resources' storage
//	err = h.Start(ctx)            // before the server answers
//	h.Run(ctx)                    // while it does
package host

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/host/install"
	"github.com/platform-ai/platform/pkg/server/host/pki"
	"github.com/platform-ai/platform/pkg/server/host/policy"
	"github.com/platform-ai/platform/pkg/server/host/rbac"
	"github.com/platform-ai/platform/pkg/server/host/seal"
	"github.com/platform-ai/platform/pkg/server/host/token"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

const (
	// secretsKeyFile is the key file of stored Secrets.
	secretsKeyFile = "secrets.key"
	// renewEvery is how often a running host checks whether a certificate is
	// about to expire.
	renewEvery = 12 * time.Hour
	// SystemNamespace is the namespace of the platform's own objects.
	SystemNamespace = "platform-system"
)

// Namespaces returns the namespaces that exist from the start and cannot be
// deleted.
func Namespaces() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, SystemNamespace}
}

// Config says where the host keeps its keys.
type Config struct {
	// Dir is the directory of keys and certificates.
	Dir string
	// Hosts are additional names of the server for its certificate; see
	// pki.Options.
	Hosts []string
	// Clock provides the time. Default: the real clock.
	Clock clock.WithTicker
}

// Host is an opened host.
type Host struct {
	c       Config
	pki     *pki.Authority
	seal    value.Transformer
	signer  *token.Signer
	tokens  *token.Authenticator
	view    *rbac.View
	authz   authorizer.Authorizer
	storage *storages
	ours    []resource.Resource // the resources that were passed to Resources

	follow sync.WaitGroup // the watches that Start began, which end with its context
}

// New opens the keys, or creates them in an empty directory.
func New(c Config) (*Host, error) {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	h := &Host{c: c, view: rbac.NewView(), storage: newStorages()}
	if err := h.openKeys(); err != nil {
		return nil, err
	}
	key := h.pki.ServiceAccountKey()
	var err error
	if h.signer, err = token.NewSigner(token.SignerOptions{Key: key, Clock: c.Clock}); err != nil {
		return nil, err
	}
	h.tokens, err = token.NewAuthenticator(token.AuthenticatorOptions{
		Keys: []*ecdsa.PublicKey{&key.PublicKey}, Clock: c.Clock,
		ServiceAccount: h.storage.uid(serviceAccountsResource, notDeleting),
		Secret:         h.storage.uid(secretsResource, notDeleting),
		// A task that is being deleted still has a worker, which must be able
		// to learn that from the server's answers.
		Task: h.storage.uid(tasksResource, nil),
	})
	if err != nil {
		return nil, err
	}
	h.authz, err = newAuthorizer(h.view)
	return h, err
}

// openKeys creates the key of Secrets first. So if a directory has certificates
// but not this key, the key has been lost.
func (h *Host) openKeys() error {
	_, err := os.Stat(filepath.Join(h.c.Dir, "ca.crt"))
	fresh := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(h.c.Dir, 0o700); err != nil {
		return fmt.Errorf("host keys: %w", err)
	}
	if h.seal, err = seal.Open(filepath.Join(h.c.Dir, secretsKeyFile), fresh); err != nil {
		return err
	}
	h.pki, err = pki.Open(pki.Options{Dir: h.c.Dir, Hosts: h.c.Hosts, Clock: h.c.Clock})
	return err
}

// PKI returns the host's certificate authority.
func (h *Host) PKI() *pki.Authority { return h.pki }

// Install adds the host's kinds to a scheme.
func Install(s *runtime.Scheme) error { return install.Install(s) }

// Transformers returns the transformers that encrypt resources at rest.
func (h *Host) Transformers() map[schema.GroupResource]value.Transformer {
	return map[schema.GroupResource]value.Transformer{secretsResource: h.seal}
}

// Admission returns the plugins that enforce the administrator's policies.
func (h *Host) Admission() ([]admission.Interface, error) {
	return []admission.Interface{policy.New()}, nil
}

// Start makes the host ready to answer requests: when it returns, the
// authorizer knows all roles, and the default roles and namespaces exist. Call
// it after the storage was built. The watches that it starts end with ctx; Run
// waits for them.
func (h *Host) Start(ctx context.Context) error {
	sources, err := h.storage.rbacSources()
	if err != nil {
		return err
	}
	h.follow.Go(func() { h.view.Follow(ctx, sources) })
	if err := h.view.WaitForSync(ctx); err != nil {
		return fmt.Errorf("load roles: %w", err)
	}
	roles, bindings, err := h.storage.rbacClients()
	if err != nil {
		return err
	}
	if err := rbac.Reconcile(asAdmin(ctx), h.ours, roles, bindings); err != nil {
		return err
	}
	for _, name := range Namespaces() {
		if err := h.ensureNamespace(ctx, name); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// Run maintains namespaces, owned objects, aggregated roles and certificates until ctx ends.
// renewed, if set, is called after certificates were renewed.
func (h *Host) Run(ctx context.Context, renewed func() error) error {
	namespaces, err := h.namespaceController()
	if err != nil {
		return err
	}
	roles, _, err := h.storage.rbacClients()
	if err != nil {
		return err
	}
	aggregator := rbac.Aggregator{View: h.view, Clock: h.c.Clock, Update: func(ctx context.Context, r *rbacv1.ClusterRole) error {
		_, err := roles.Update(asAdmin(ctx), r)
		return err
	}}
	var wg sync.WaitGroup
	wg.Go(func() { namespaces.Run(ctx) })
	wg.Go(func() { h.collector().Run(ctx) })
	wg.Go(func() { aggregator.Run(ctx) })
	wg.Go(func() { h.renew(ctx, renewed) })
	wg.Wait()
	h.follow.Wait()
	return nil
}

func (h *Host) renew(ctx context.Context, renewed func() error) {
	ticker := h.c.Clock.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		changed, err := h.pki.Renew()
		if err == nil && changed && renewed != nil {
			err = renewed()
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Certificates could not be renewed")
		}
	}
}

func (h *Host) ensureNamespace(ctx context.Context, name string) error {
	err := h.storage.ensure(asAdmin(ctx), namespacesResource, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil {
		return err
	}
	return h.ensureServiceAccount(ctx, name)
}
