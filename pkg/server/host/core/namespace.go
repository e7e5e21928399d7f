// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core is the part of Kubernetes' core group that a standalone host
// serves: namespaces, secrets, configmaps, serviceaccounts with their tokens,
// and events. The rules and messages follow Kubernetes.
package core

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// ContentFinalizer keeps a namespace in phase Terminating until all its
// contents are gone. It is in metadata.finalizers, where the generic store
// looks for it. spec.finalizers shows Kubernetes' own finalizer for the same
// purpose, and is changed through namespaces/finalize.
const ContentFinalizer = "core.platform.ai/namespace-content"

// Namespaces serves namespaces with their subresources status and finalize.
func Namespaces() resource.Resource { return finalizable{namespaces} }

var namespaces = &resource.Definition[*corev1.Namespace]{
	Unguarded: true,
	Resource:  corev1.SchemeGroupVersion.WithResource("namespaces"),
	Kind:      "Namespace", Singular: "namespace", ShortNames: []string{"ns"},
	ClusterScoped: true,
	Fields: []resource.Field[*corev1.Namespace]{
		{Path: "status.phase", Value: func(n *corev1.Namespace) string { return string(n.Status.Phase) }},
	},
	Columns: []resource.Column[*corev1.Namespace]{
		{Name: "Status", Description: "The status of the namespace.", Value: func(n *corev1.Namespace) any { return string(n.Status.Phase) }},
	},
	Shape: resource.Kept[*corev1.Namespace]{
		ValidateName:        validation.ValidateNamespaceName,
		UnconditionalUpdate: true,
		PrepareForCreate: func(_ context.Context, n *corev1.Namespace) {
			n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
			n.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
			hold(n)
			name(n)
		},
		PrepareForUpdate: prepareNamespaceUpdate,
		Deleting:         func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating },
		ValidateUpdate:   validateNamespaceUpdate,
	},
}

// hold adds the finalizer that corresponds to spec.finalizers.
func hold(n *corev1.Namespace) {
	if !slices.Contains(n.Finalizers, ContentFinalizer) {
		n.Finalizers = append(n.Finalizers, ContentFinalizer)
	}
}

// name sets the label with which selectors can select a namespace by name.
func name(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

// finalizing marks a request to namespaces/finalize.
type finalizing struct{}

// prepareNamespaceUpdate lets only namespaces/finalize change spec.finalizers,
// and nothing else. When the last of them is removed, ContentFinalizer is
// removed too, so that the namespace can go.
func prepareNamespaceUpdate(ctx context.Context, n, old *corev1.Namespace) {
	if ctx.Value(finalizing{}) != nil {
		managed := n.ManagedFields
		old.ObjectMeta.DeepCopyInto(&n.ObjectMeta)
		n.ManagedFields = managed
		if len(n.Spec.Finalizers) == 0 {
			n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == ContentFinalizer })
		}
		return
	}
	old.Spec.DeepCopyInto(&n.Spec)
	if len(old.Spec.Finalizers) > 0 {
		hold(n)
	}
	name(n)
}

func validateNamespaceUpdate(_ context.Context, n, old *corev1.Namespace) field.ErrorList {
	path := field.NewPath("spec", "finalizers")
	var errs field.ErrorList
	for i, f := range n.Spec.Finalizers {
		if !slices.Contains(old.Spec.Finalizers, f) {
			errs = append(errs, field.Forbidden(path.Index(i), "finalizers can only be removed"))
		}
	}
	return errs
}

// finalizable adds namespaces/finalize.
type finalizable struct {
	*resource.Definition[*corev1.Namespace]
}

// Storage returns the Definition's storage plus namespaces/finalize.
func (f finalizable) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	paths, err := f.Definition.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	s, ok := paths["namespaces"].(rest.StandardStorage)
	if !ok {
		return nil, fmt.Errorf("resource namespaces: %T is not standard storage", paths["namespaces"])
	}
	paths["namespaces/finalize"] = &finalize{s}
	return paths, nil
}

// finalize serves PUT namespaces/NAME/finalize.
type finalize struct{ namespaces rest.StandardStorage }

var _ rest.Updater = (*finalize)(nil)

// New makes an empty namespace.
func (f *finalize) New() runtime.Object { return f.namespaces.New() }

// Destroy does nothing: there is nothing to release.
func (*finalize) Destroy() {}

// Update stores the finalizers. A namespace that is being deleted is removed
// once it has none.
func (f *finalize) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc, _ bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return f.namespaces.Update(context.WithValue(ctx, finalizing{}, true), name, info, onCreate, onUpdate, false, opts)
}
