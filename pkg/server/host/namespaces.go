// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/server/host/namespace"
)

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
	_, err := change(asAdmin(ctx), h.storage.finalize, ns.Name, func(cur *corev1.Namespace) {
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
	_, err := change(asAdmin(ctx), h.storage.status, name, func(ns *corev1.Namespace) {
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

// change reads, changes and writes an object of the context's namespace on behalf of the host, and retries until no other writer
// interferes.
func change[T runtime.Object](ctx context.Context, u rest.Updater, name string, mutate func(T)) (runtime.Object, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj, ok := old.DeepCopyObject().(T)
		if !ok {
			return nil, fmt.Errorf("%s: stored as %T", name, old)
		}
		mutate(obj)
		return obj, nil
	})
	out, _, err := u.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return out, err
}
