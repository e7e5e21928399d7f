// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy is the create, update and delete strategy of all Kept resources.
type strategy[T Object] struct {
	rest.DeclarativeValidation
	names.NameGenerator
	k *kind[T]
	s Kept[T]
	p parts
}

var (
	_ rest.RESTCreateUpdateStrategy        = &strategy[Object]{}
	_ rest.RESTGracefulDeleteStrategy      = &strategy[Object]{}
	_ rest.DeclarativeValidationStrategy   = &strategy[Object]{}
	_ rest.CreateUpdateResetFieldsStrategy = &strategy[Object]{}
)

func newStrategy[T Object](k *kind[T], s Kept[T]) *strategy[T] {
	if s.ValidateName == nil {
		s.ValidateName = apivalidation.NameIsDNSSubdomain
	}
	return &strategy[T]{rest.DeclarativeValidation{Scheme: k.Scheme}, names.SimpleNameGenerator, k, s, partsOf[T]()}
}

func (s *strategy[T]) hasStatus() bool { return s.p.status != nil && !s.s.NoStatus }

func (s *strategy[T]) NamespaceScoped() bool { return !s.k.ClusterScoped }

func (*strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

func (s *strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return s.s.UnconditionalUpdate }

func (*strategy[T]) Canonicalize(runtime.Object) {}

// GetResetFields prevents server-side apply from giving users ownership of fields that the server discards.
func (s *strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if !s.hasStatus() {
		return nil
	}
	gv := fieldpath.APIVersion(s.k.Resource.GroupVersion().String())
	return map[fieldpath.APIVersion]*fieldpath.Set{gv: fieldpath.NewSet(fieldpath.MakePathOrDie("status"))}
}

func (s *strategy[T]) PrepareForCreate(ctx context.Context, o runtime.Object) {
	obj := o.(T)
	if s.hasStatus() {
		s.p.clearStatus(obj)
	}
	if s.p.spec != nil {
		obj.SetGeneration(1)
	}
	if s.s.Default != nil {
		s.s.Default(obj)
	}
	if s.s.PrepareForCreate != nil {
		s.s.PrepareForCreate(ctx, obj)
	}
	s.setStatus(obj)
	s.p.cleanStatus(obj)
}

func (s *strategy[T]) PrepareForUpdate(ctx context.Context, o, oldO runtime.Object) {
	obj, old := o.(T), oldO.(T)
	settle(obj, old)
	if s.hasStatus() {
		s.p.copyStatus(old, obj)
	}
	if s.s.Default != nil {
		s.s.Default(obj)
	}
	if s.s.PrepareForUpdate != nil {
		s.s.PrepareForUpdate(ctx, obj, old)
	}
	// The caller has already reset generation to that of the old object.
	if s.p.specChanged(obj, old) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
	s.setStatus(obj)
}

// setStatus sets a status that follows from the spec.
func (s *strategy[T]) setStatus(obj T) {
	if s.s.Status != nil {
		s.s.Status(obj)
	}
}

func (s *strategy[T]) Validate(ctx context.Context, o runtime.Object) field.ErrorList {
	obj := o.(T)
	var errs field.ErrorList
	path := field.NewPath("metadata", "name")
	for _, msg := range s.s.ValidateName(obj.GetName(), false) {
		errs = append(errs, field.Invalid(path, obj.GetName(), msg))
	}
	if s.k.Owners != nil {
		errs = append(errs, s.k.Owners(obj, nil)...)
	}
	if s.s.validateNew != nil {
		errs = append(errs, s.s.validateNew(obj)...)
	}
	if s.s.Validate != nil {
		errs = append(errs, s.s.Validate(ctx, obj)...)
	}
	return errs
}

func (s *strategy[T]) ValidateUpdate(ctx context.Context, o, oldO runtime.Object) field.ErrorList {
	obj, old := o.(T), oldO.(T)
	var errs field.ErrorList
	for _, f := range s.s.Frozen {
		if v := f.Value(obj); !equality.Semantic.DeepEqual(v, f.Value(old)) {
			errs = append(errs, field.Invalid(f.Path, v, apivalidation.FieldImmutableErrorMsg).WithOrigin("immutable"))
		}
	}
	if s.k.Owners != nil {
		errs = append(errs, s.k.Owners(obj, old)...)
	}
	if s.s.Validate != nil && (s.p.spec == nil || s.p.specChanged(obj, old)) {
		errs = append(errs, s.s.Validate(ctx, obj)...)
	}
	if s.s.ValidateUpdate != nil {
		errs = append(errs, s.s.ValidateUpdate(ctx, obj, old)...)
	}
	return errs
}

// ValidateDeclaratively runs the generated validation of the type. It chooses the version and subresource itself
// instead of taking them from the request, because writes also come from other subresources and from inside the
// server.
func (s *strategy[T]) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, errs field.ErrorList, op operation.Type, c rest.DeclarativeValidationConfig) field.ErrorList {
	return s.validateAs(ctx, "", obj, old, errs, op, c)
}

func (s *strategy[T]) validateAs(ctx context.Context, subresource string, obj, old runtime.Object, errs field.ErrorList, op operation.Type, c rest.DeclarativeValidationConfig) field.ErrorList {
	if !s.k.Scheme.HasValidationFunc(s.k.newObject()) {
		return errs
	}
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true,
		APIGroup:          s.k.Resource.Group, APIVersion: s.k.Resource.Version,
		Resource: s.k.Resource.Resource, Subresource: subresource,
	})
	errs = s.DeclarativeValidation.ValidateDeclaratively(ctx, obj, old, errs, op, c)
	for _, e := range errs {
		if e.Type == field.ErrorTypeInvalid && e.BadValue == nil && e.Origin == "immutable" {
			e.Type = field.ErrorTypeForbidden // otherwise it would read `Invalid value: null`
		}
	}
	return errs
}

func (s *strategy[T]) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.s.Warnings == nil {
		return nil
	}
	var none T
	return s.s.Warnings(ctx, obj.(T), none)
}

func (s *strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if s.s.Warnings == nil {
		return nil
	}
	return s.s.Warnings(ctx, obj.(T), old.(T))
}

// CheckGracefulDelete never asks for a grace period. It calls Deleting, because the store calls it when a deletion
// begins.
func (s *strategy[T]) CheckGracefulDelete(_ context.Context, obj runtime.Object, _ *metav1.DeleteOptions) bool {
	if s.s.Deleting != nil {
		s.s.Deleting(obj.(T))
	}
	return false
}
