// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Kept is the shape of an object that is stored and served with every verb. Hooks must not keep the objects they get.
type Kept[T Object] struct {
	// Default fills in unset fields, on create and on update, before anything else looks at the object.
	Default func(obj T)
	// PrepareForCreate changes the object before validation; its status is already cleared.
	PrepareForCreate func(ctx context.Context, obj T)
	// PrepareForUpdate changes the new object before validation; its status is already the old one's.
	PrepareForUpdate func(ctx context.Context, obj, old T)
	// Validate reports cross-field errors. On an update that leaves Spec as it is, it is not called, so an object
	// stored under older rules can still be labelled and finalized.
	Validate func(ctx context.Context, obj T) field.ErrorList
	// ValidateUpdate reports what may not change, beside Frozen.
	ValidateUpdate func(ctx context.Context, obj, old T) field.ErrorList
	// PrepareForStatus changes the new object of a write to the status subresource before validation.
	PrepareForStatus func(ctx context.Context, obj, old T)
	// ValidateStatus checks a write to the status subresource.
	ValidateStatus func(ctx context.Context, obj, old T) field.ErrorList
	// Frozen fields cannot change after create.
	Frozen []Frozen[T]
	// Warnings are shown to the writer of an accepted object. old is nil on create.
	Warnings func(ctx context.Context, obj, old T) []string
	// ValidateName checks metadata.name; the default is a DNS subdomain.
	ValidateName func(name string, prefix bool) []string
	// NoStatus serves a type that has a Status without a status subresource; Status is then ordinary content.
	NoStatus bool
	// UnconditionalUpdate accepts a PUT without resourceVersion, as the older kinds of core Kubernetes do.
	UnconditionalUpdate bool
	// TTL, in whole seconds, is how long after its last write an object is removed; zero keeps it.
	TTL time.Duration
	// Deleting changes an object whose deletion begins but waits for finalizers (for example its phase).
	Deleting func(obj T)
	// ValidateDelete refuses a deletion by an API error. It is asked for every object that is to go, also one of a
	// collection or of a namespace that is emptied, which then try again.
	ValidateDelete func(ctx context.Context, obj T) error
	// AfterCreate runs after the object was stored. It is not part of the write: it may be lost in a crash.
	AfterCreate func(obj T)
	// AfterDelete runs after the object left the store, once, also when its last finalizer was removed. It is not
	// part of the write: it may be lost in a crash, so it must be something that can also be done later.
	AfterDelete func(ctx context.Context, obj T)
}

// Frozen is a field that cannot change after create.
type Frozen[T Object] struct {
	// Path is the field's path, for example field.NewPath("spec", "type").
	Path *field.Path
	// Value is the field's value; values are compared deeply.
	Value func(T) any
}

// keptREST adds the discovery facts to the generic store.
type keptREST[T Object] struct {
	*registry.Store
	naming         naming[T]
	validateDelete func(context.Context, T) error // may be nil
}

var (
	_ rest.StandardStorage    = &keptREST[Object]{}
	_ rest.ShortNamesProvider = &keptREST[Object]{}
	_ rest.CategoriesProvider = &keptREST[Object]{}
)

// ShortNames is for discovery.
func (r *keptREST[T]) ShortNames() []string { return r.naming.ShortNames() }

// Categories is for discovery.
func (r *keptREST[T]) Categories() []string { return r.naming.Categories() }

// Revision is the revision of the whole store: that of a write that was acknowledged is not above it.
func (r *keptREST[T]) Revision(ctx context.Context) (uint64, error) {
	return r.Storage.Storage.GetCurrentResourceVersion(ctx)
}

// Get is the store's, for whom the guard lets.
func (r *keptREST[T]) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.Store.Get(ctx, name, opts)
	if err == nil {
		err = r.naming.k.allowed(ctx, "get", "", obj)
	}
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// List is the store's, of what the guard lets be seen.
func (r *keptREST[T]) List(ctx context.Context, opts *internalversion.ListOptions) (runtime.Object, error) {
	return r.naming.k.list(ctx, opts, r.Store.List)
}

// Watch is the store's, of what the guard lets be seen.
func (r *keptREST[T]) Watch(ctx context.Context, opts *internalversion.ListOptions) (watch.Interface, error) {
	return r.naming.k.watch(ctx, opts, r.Store.Watch)
}

// Create is the store's, for whom the guard lets.
func (r *keptREST[T]) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := r.naming.k.allowed(ctx, "create", "", obj); err != nil {
		return nil, err
	}
	return r.Store.Create(ctx, obj, admit, opts)
}

// Update is the store's, for whom the guard lets.
func (r *keptREST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc, force bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if err := r.naming.k.allowedStored(ctx, "update", "", name, r.Store); err != nil {
		return nil, false, err
	}
	return r.Store.Update(ctx, name, info, onCreate, onUpdate, force, opts)
}

// Delete is the store's, with the Definition's own validation after admission.
func (r *keptREST[T]) Delete(ctx context.Context, name string, admit rest.ValidateObjectFunc, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if err := r.naming.k.allowedStored(ctx, "delete", "", name, r.Store); err != nil {
		return nil, false, err
	}
	return r.Store.Delete(ctx, name, r.deletable(admit), opts)
}

// DeleteCollection is the store's, with the Definition's own validation after admission.
func (r *keptREST[T]) DeleteCollection(ctx context.Context, admit rest.ValidateObjectFunc, opts *metav1.DeleteOptions, list *internalversion.ListOptions) (runtime.Object, error) {
	admit, err := r.naming.k.onlySeen(ctx, list, admit)
	if err != nil {
		return nil, err
	}
	return r.Store.DeleteCollection(ctx, r.deletable(admit), opts, list)
}

func (r *keptREST[T]) deletable(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	if r.validateDelete == nil {
		return admit
	}
	return func(ctx context.Context, obj runtime.Object) error {
		if admit != nil {
			if err := admit(ctx, obj); err != nil {
				return err
			}
		}
		o, ok := obj.(T)
		if !ok {
			return fmt.Errorf("deletion of %T", obj)
		}
		return r.validateDelete(ctx, o)
	}
}

func (s Kept[T]) storage(ctx context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error) {
	var none parent[T]
	if k.newList() == nil {
		return none, fmt.Errorf("scheme has no %sList", k.Kind)
	}
	main := newStrategy(k, s)
	store := &registry.Store{
		NewFunc:                   k.newObject,
		NewListFunc:               k.newList,
		DefaultQualifiedResource:  k.Resource.GroupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: k.Resource.Group, Resource: k.Singular},
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            k.table,
	}
	if s.TTL > 0 {
		store.TTLFunc = func(runtime.Object, uint64, bool) (uint64, error) { return uint64(s.TTL / time.Second), nil }
	}
	if s.AfterCreate != nil {
		store.AfterCreate = func(obj runtime.Object, opts *metav1.CreateOptions) {
			if o, ok := obj.(T); ok && (opts == nil || !dryrun.IsDryRun(opts.DryRun)) {
				s.AfterCreate(o)
			}
		}
	}
	if s.AfterDelete != nil {
		store.AfterDelete = func(obj runtime.Object, opts *metav1.DeleteOptions) {
			if o, ok := obj.(T); ok && (opts == nil || !dryrun.IsDryRun(opts.DryRun)) {
				s.AfterDelete(ctx, o)
			}
		}
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: k.RESTOptions, AttrFunc: k.attrs}); err != nil {
		return none, err
	}
	paths[k.Resource.Resource] = &keptREST[T]{Store: store, naming: naming[T]{k}, validateDelete: s.ValidateDelete}
	p := parent[T]{get: getter[T](store), update: updater[T](store)}
	if main.hasStatus() {
		st := *store
		st.UpdateStrategy = statusStrategy[T]{main}
		paths[k.Resource.Resource+"/status"] = &statusREST[T]{store: &st, k: k}
		p.update = updater[T](&st)
	}
	return p, nil
}

func getter[T Object](g rest.Getter) func(context.Context, string) (T, error) {
	return func(ctx context.Context, name string) (T, error) {
		obj, err := g.Get(ctx, name, &metav1.GetOptions{})
		if err != nil {
			var none T
			return none, err
		}
		return obj.(T), nil
	}
}

// updater gives a read-modify-write that is retried by the store until it meets no other writer.
func updater[T Object](s *registry.Store) func(context.Context, string, func(T) error) (T, error) {
	return func(ctx context.Context, name string, mutate func(T) error) (T, error) {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			obj := old.DeepCopyObject().(T)
			return obj, mutate(obj)
		})
		out, _, err := s.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if err != nil {
			var none T
			return none, err
		}
		return out.(T), nil
	}
}
