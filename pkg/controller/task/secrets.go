// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
)

// mounted checks a Secret that is to be mounted into a run of the namespace.
func (r *resolver) mounted(ctx context.Context, namespace string, key types.NamespacedName) error {
	if err := r.get(ctx, key, &corev1.Secret{}, "Secret"); err != nil {
		return err
	}
	if r.mountRefusal != "" {
		return refuse(v1alpha1.ReasonRefused, "Secret %s: %s", key.Name, r.mountRefusal)
	}
	return r.reachable(namespace, key)
}

// reachable refuses a Secret that a run by reference cannot have: a pod sees only those of its own namespace.
func (r *resolver) reachable(namespace string, key types.NamespacedName) error {
	if r.byReference && key.Namespace != namespace {
		return refuse(v1alpha1.ReasonRefused, "Secret %q of namespace %q cannot be given to a pod of namespace %q", key.Name, key.Namespace, namespace)
	}
	return nil
}

// keep notes a secret of a namespace for the run: its value, or where that is.
func (r *resolver) keep(ctx context.Context, t *v1alpha1.Task, res *resolved, namespace string, s executor.Secret) error {
	value, err := r.secret(ctx, namespace, s.Ref)
	if err != nil {
		return err
	}
	if r.byReference {
		if !slices.Contains(res.secrets, s) {
			res.secrets = append(res.secrets, s)
		}
		return r.reachable(t.Namespace, types.NamespacedName{Namespace: namespace, Name: s.Ref.Name})
	}
	values := &res.credentials.ProviderKeys
	if s.Use == executor.ForTool {
		values = &res.credentials.ToolKeys
	}
	if *values == nil {
		*values = map[string]string{}
	}
	(*values)[s.For] = value
	return nil
}

// env collects the variables that come from Secrets, which a worker may not
// read, and checks those that come from ConfigMaps, which it reads itself.
func (r *resolver) env(ctx context.Context, t *v1alpha1.Task, res *resolved) error {
	for _, e := range t.Spec.Env {
		from := e.ValueFrom
		if from == nil {
			continue
		}
		var err error
		var optional *bool
		switch {
		case from.SecretKeyRef != nil:
			optional = from.SecretKeyRef.Optional
			var v string
			v, err = r.secret(ctx, t.Namespace, v1alpha1.KeyReference{Name: from.SecretKeyRef.Name, Key: from.SecretKeyRef.Key})
			if err == nil && !r.byReference { // a pod's own environment has references
				if res.credentials.Env == nil {
					res.credentials.Env = map[string]string{}
				}
				res.credentials.Env[e.Name] = v
			}
		case from.ConfigMapKeyRef != nil:
			optional = from.ConfigMapKeyRef.Optional
			err = r.configMap(ctx, t.Namespace, &v1alpha1.KeyReference{Name: from.ConfigMapKeyRef.Name, Key: from.ConfigMapKeyRef.Key})
		}
		if _, ok := errors.AsType[*refusal](err); ok && ptr.Deref(optional, false) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) secret(ctx context.Context, namespace string, ref v1alpha1.KeyReference) (string, error) {
	s := &corev1.Secret{}
	if err := r.get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, s, "Secret"); err != nil {
		return "", err
	}
	if len(s.Data[ref.Key]) == 0 {
		return "", missing(v1alpha1.ReasonSecretKeyNotFound, "Secret %q has no key %q", ref.Name, ref.Key)
	}
	return string(s.Data[ref.Key]), nil
}

func (r *resolver) configMap(ctx context.Context, namespace string, ref *v1alpha1.KeyReference) error {
	m := &corev1.ConfigMap{}
	if err := r.get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, m, "ConfigMap"); err != nil {
		return err
	}
	if _, ok := m.Data[ref.Key]; !ok {
		return missing(v1alpha1.ReasonConfigMapKeyNotFound, "ConfigMap %q has no key %q", ref.Name, ref.Key)
	}
	return nil
}

// key is the object that a reference names; a refusal where it may not name it.
func (r *resolver) key(namespace string, ref *v1alpha1.NamespacedReference, kind string) (types.NamespacedName, error) {
	key := refKey(namespace, ref)
	if key.Namespace != namespace && !r.crossNamespace {
		return key, refuse(v1alpha1.ReasonNamespaceIsolationViolation, "%s %q of namespace %q may not be used from namespace %q", kind, key.Name, key.Namespace, namespace)
	}
	return key, nil
}

// get reads an object. What a cache does not know, the server may.
func (r *resolver) get(ctx context.Context, key types.NamespacedName, o client.Object, kind string) error {
	err := r.reader.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		err = r.reader.GetLive(ctx, key, o)
	}
	if apierrors.IsNotFound(err) {
		return missing(v1alpha1.ReasonNotFound(kind), "%s %q does not exist in namespace %q", kind, key.Name, key.Namespace)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}
