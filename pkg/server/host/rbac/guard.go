// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// guarded is a resource whose objects only system:masters may write. A write is
// answered only when the View has it.
type guarded struct {
	resource.Resource
	kind string
	view *View
}

// Storage wraps the storage of the objects. There are no subresources.
func (g guarded) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	paths, err := g.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	gvr := g.GroupVersionResource()
	s, ok := paths[gvr.Resource].(stored)
	if !ok {
		return nil, fmt.Errorf("resource %s: %T is not storage of a kept resource", gvr.Resource, paths[gvr.Resource])
	}
	paths[gvr.Resource] = &guard{stored: s, resource: gvr.GroupResource(), kind: g.kind, view: g.view}
	return paths, nil
}

// stored lists the interfaces that the server looks for in the storage of a
// Kept resource.
type stored interface {
	rest.StandardStorage
	rest.Scoper
	rest.SingularNameProvider
	rest.ShortNamesProvider
	rest.CategoriesProvider
	rest.ResetFieldsStrategy
	rest.StorageVersionProvider
	rest.StorageWithReadiness
}

type guard struct {
	stored
	resource schema.GroupResource
	kind     string
	view     *View
}

var errNotAdmin = errors.New("on a standalone host only the group system:masters may change roles and bindings")

// admit allows writes by administrators only.
func (g *guard) admit(ctx context.Context, name string) error {
	u, ok := request.UserFrom(ctx)
	if ok && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	return apierrors.NewForbidden(g.resource, name, errNotAdmin)
}

// written waits until the View has the new state of the object, so that
// requests are judged by it. The write has succeeded in any case, so giving up
// is not an error.
func (g *guard) written(ctx context.Context, out runtime.Object) {
	obj, ok := out.(object)
	if !ok || obj.GetResourceVersion() == "" { // the dry run of a create has no resourceVersion
		return
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		g.gone(ctx, obj.GetNamespace(), obj.GetName(), obj.GetUID())
		return
	}
	g.report(ctx, obj.GetName(), g.view.waitFor(ctx, obj))
}

func (g *guard) gone(ctx context.Context, namespace, name string, uid types.UID) {
	key := objectKey{kind: g.kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	g.report(ctx, name, g.view.waitGone(ctx, key, uid))
}

func (g *guard) report(ctx context.Context, name string, err error) {
	if err != nil {
		klog.FromContext(ctx).Error(err, "A write was answered before the authorizer had seen it", "resource", g.resource.String(), "name", name)
	}
}

// Create stores a new object.
func (g *guard) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := g.admit(ctx, m.GetName()); err != nil {
		return nil, err
	}
	out, err := g.stored.Create(ctx, obj, validate, opts)
	if err == nil {
		g.written(ctx, out)
	}
	return out, err
}

// Update stores a changed object.
func (g *guard) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc, create bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if err := g.admit(ctx, name); err != nil {
		return nil, false, err
	}
	out, created, err := g.stored.Update(ctx, name, info, onCreate, onUpdate, create, opts)
	if err == nil && (opts == nil || len(opts.DryRun) == 0) {
		g.written(ctx, out)
	}
	return out, created, err
}

// Delete removes an object.
func (g *guard) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if err := g.admit(ctx, name); err != nil {
		return nil, false, err
	}
	out, immediately, err := g.stored.Delete(ctx, name, validate, opts)
	if s, ok := out.(*metav1.Status); ok && err == nil && immediately && s.Details != nil && (opts == nil || len(opts.DryRun) == 0) {
		g.gone(ctx, request.NamespaceValue(ctx), name, s.Details.UID)
	}
	return out, immediately, err
}

// DeleteCollection removes all selected objects.
func (g *guard) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions, list *metainternal.ListOptions) (runtime.Object, error) {
	if err := g.admit(ctx, ""); err != nil {
		return nil, err
	}
	out, err := g.stored.DeleteCollection(ctx, validate, opts, list)
	if err != nil || opts != nil && len(opts.DryRun) > 0 {
		return out, err
	}
	return out, meta.EachListItem(out, func(item runtime.Object) error {
		if o, ok := item.(object); ok && len(o.GetFinalizers()) == 0 {
			g.gone(ctx, o.GetNamespace(), o.GetName(), o.GetUID())
		}
		return nil
	})
}
