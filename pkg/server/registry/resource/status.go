// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// statusStrategy allows a write to change only Status, as for custom resources.
type statusStrategy[T Object] struct{ *strategy[T] }

func (s statusStrategy[T]) PrepareForUpdate(ctx context.Context, o, oldO runtime.Object) {
	obj := o.(T)
	managed, finalizers := obj.GetManagedFields(), obj.GetFinalizers()
	s.p.keepStatusOnly(oldO.DeepCopyObject(), obj)
	settle(obj, oldO.(T))
	obj.SetManagedFields(managed)
	s.addFinalizer(obj, finalizers)
	if s.s.PrepareForStatus != nil {
		s.s.PrepareForStatus(ctx, obj, oldO.(T))
	}
	s.setStatus(obj)
	s.p.cleanStatus(obj)
}

// addFinalizer adds StatusFinalizer if it is among the finalizers that were sent. Nothing new waits for the deletion of an
// object that is already being deleted.
func (s statusStrategy[T]) addFinalizer(obj T, sent []string) {
	f := s.s.StatusFinalizer
	if f == "" || !slices.Contains(sent, f) || slices.Contains(obj.GetFinalizers(), f) || obj.GetDeletionTimestamp() != nil {
		return
	}
	obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), f))
}

func (s statusStrategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if s.s.ValidateStatus == nil {
		return nil
	}
	return s.s.ValidateStatus(ctx, obj.(T), old.(T))
}

func (s statusStrategy[T]) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, errs field.ErrorList, op operation.Type, c rest.DeclarativeValidationConfig) field.ErrorList {
	return s.validateAs(ctx, "status", obj, old, errs, op, c)
}

func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// statusPath is the name of the subresource.
const statusPath = "status"

// statusREST serves get, update and patch of a Kept resource's status.
type statusREST[T Object] struct {
	store   *registry.Store
	k       *kind[T]
	answers answers[T]
}

var (
	_ rest.Patcher                   = &statusREST[Object]{}
	_ rest.ResetFieldsFilterStrategy = &statusREST[Object]{}
	_ rest.TableConvertor            = &statusREST[Object]{}
)

func (r *statusREST[T]) New() runtime.Object { return r.store.New() }

func (*statusREST[T]) Destroy() {}

func (r *statusREST[T]) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, opts)
	if err == nil {
		err = r.k.allowed(ctx, "get", statusPath, obj)
	}
	if err != nil {
		return nil, err
	}
	return r.answers.to(ctx).one(obj), nil
}

// Update never creates an object, whatever forceAllowCreate is: a status without an object has no
// meaning.
func (r *statusREST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc, _ bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if err := r.k.allowedStored(ctx, "update", statusPath, name, r.store); err != nil {
		return nil, false, err
	}
	return r.store.Update(ctx, name, info, onCreate, onUpdate, false, opts)
}

// GetResetFieldsFilter prevents a server-side apply of the status from owning any other field.
func (r *statusREST[T]) GetResetFieldsFilter() map[fieldpath.APIVersion]fieldpath.Filter {
	s := r.store.UpdateStrategy.(statusStrategy[T])
	gv := fieldpath.APIVersion(s.k.Resource.GroupVersion().String())
	return map[fieldpath.APIVersion]fieldpath.Filter{
		gv: fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status")),
	}
}

func (r *statusREST[T]) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, opts)
}
