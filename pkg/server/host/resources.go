// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/server/host/core"
	"github.com/platform-ai/platform/pkg/server/host/lease"
	"github.com/platform-ai/platform/pkg/server/host/namespace"
	"github.com/platform-ai/platform/pkg/server/host/policy"
	"github.com/platform-ai/platform/pkg/server/host/rbac"
	"github.com/platform-ai/platform/pkg/server/host/review"
	"github.com/platform-ai/platform/pkg/server/host/token"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Resources returns all resources of the server: the host's and the given ones.
// The host must know all of them to empty a namespace, and must know tasks to
// check the tokens that are bound to them.
func (h *Host) Resources(ours ...resource.Resource) []resource.Resource {
	h.ours = ours
	own := slices.Concat(
		[]resource.Resource{
			core.Namespaces(), core.Secrets, core.ConfigMaps, core.ServiceAccounts(h.tokenRequests()), core.Events,
			lease.Leases,
		},
		rbac.Resources(h.view),
		policy.Resources(),
		review.Identity(h.tokens, []string{token.DefaultIssuer}),
		review.Access(h.authz, h.view),
	)
	all := make([]resource.Resource, 0, len(own)+len(ours))
	for _, r := range append(own, ours...) {
		all = append(all, seen{r, h.storage})
	}
	return all
}

// tokenRequests connects the token subresource to the signer. Tokens can be
// bound to Secrets and to Tasks.
func (h *Host) tokenRequests() core.Tokens {
	secret := core.BoundKind{APIVersion: "v1", Kind: "Secret"}
	task := core.BoundKind{APIVersion: "core.platform.ai/v1alpha1", Kind: "Task"}
	return core.Tokens{
		Audiences: []string{token.DefaultIssuer},
		Bound: map[core.BoundKind]func(context.Context, string, string) (types.UID, error){
			secret: h.storage.uid(secretsResource, nil),
			task:   h.storage.uid(tasksResource, nil),
		},
		Issue: func(ctx context.Context, t core.Token) (core.IssuedToken, error) {
			c := token.Claims{
				Namespace:      t.ServiceAccount.Namespace,
				ServiceAccount: token.Ref{Name: t.ServiceAccount.Name, UID: t.ServiceAccount.UID},
				Audiences:      t.Audiences,
				Life:           t.Life,
			}
			switch {
			case t.Bound == nil:
			case t.Bound.Kind == secret.Kind:
				c.Secret = bound(t.Bound)
			case t.Bound.Kind == task.Kind:
				run, err := h.storage.run(ctx, c.Namespace, t.Bound)
				if err != nil {
					return core.IssuedToken{}, err
				}
				c.Task, c.Run = bound(t.Bound), run
			default:
				return core.IssuedToken{}, fmt.Errorf("token bound to a %s", t.Bound.Kind)
			}
			issued, err := h.signer.Sign(c)
			return core.IssuedToken(issued), err
		},
	}
}

func bound(ref *authenticationv1.BoundObjectReference) *token.Ref {
	return &token.Ref{Name: ref.Name, UID: ref.UID}
}

func (h *Host) ensureServiceAccount(ctx context.Context, ns string) error {
	return h.storage.ensure(request.WithNamespace(asAdmin(ctx), ns), serviceAccountsResource,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: namespace.DefaultServiceAccount, Namespace: ns}})
}

func (h *Host) namespaceController() (*namespace.Controller, error) {
	namespaces, err := h.storage.source(namespacesResource)
	if err != nil {
		return nil, err
	}
	accounts, err := h.storage.source(serviceAccountsResource)
	if err != nil {
		return nil, err
	}
	return namespace.New(namespace.Config{
		Namespaces:           namespaces,
		ServiceAccounts:      accounts,
		Contents:             h.storage.contents(),
		Get:                  h.namespace,
		EnsureServiceAccount: h.ensureServiceAccount,
		SetConditions:        h.setConditions,
		Finalize:             h.finalize,
		Clock:                h.c.Clock,
	})
}

func (h *Host) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	g, err := as[rest.Getter](h.storage, namespacesResource)
	if err != nil {
		return nil, err
	}
	obj, err := g.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("namespace %s: stored as %T", name, obj)
	}
	return ns, nil
}

// finalize removes Kubernetes' finalizer from a namespace. It is the last one
// unless a user added another.
func (h *Host) finalize(ctx context.Context, ns *corev1.Namespace) error {
	_, err := change(ctx, h.storage.finalize, ns.Name, func(cur *corev1.Namespace) {
		if cur.UID == ns.UID {
			cur.Spec.Finalizers = slices.DeleteFunc(cur.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		}
	})
	return err
}

// setConditions merges conditions into the status. A condition's transition
// time changes only with its status.
func (h *Host) setConditions(ctx context.Context, name string, conditions []corev1.NamespaceCondition) error {
	now := metav1.NewTime(h.c.Clock.Now())
	_, err := change(ctx, h.storage.status, name, func(ns *corev1.Namespace) {
		for _, c := range conditions {
			c.LastTransitionTime = now
			i := slices.IndexFunc(ns.Status.Conditions, func(have corev1.NamespaceCondition) bool { return have.Type == c.Type })
			if i < 0 {
				ns.Status.Conditions = append(ns.Status.Conditions, c)
				continue
			}
			if ns.Status.Conditions[i].Status == c.Status {
				c.LastTransitionTime = ns.Status.Conditions[i].LastTransitionTime
			}
			ns.Status.Conditions[i] = c
		}
	})
	return err
}

// change reads, changes and writes a namespace, and retries until no other
// writer interferes.
func change(ctx context.Context, u rest.Updater, name string, mutate func(*corev1.Namespace)) (runtime.Object, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		ns, ok := old.DeepCopyObject().(*corev1.Namespace)
		if !ok {
			return nil, fmt.Errorf("namespace %s: stored as %T", name, old)
		}
		mutate(ns)
		return ns, nil
	})
	out, _, err := u.Update(asAdmin(ctx), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return out, err
}
