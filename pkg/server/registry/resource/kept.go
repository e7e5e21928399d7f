// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// Kept is the shape of an object that is stored and served with every verb. Hooks must not retain the objects passed
// to them.
//
//large:fields each is a rule or a hook that a kind may set, and nearly all kinds set few of them
type Kept[T Object] struct {
	// Default fills in unset fields on create and on update, before anything else reads the object.
	Default func(obj T)
	// PrepareForCreate changes the object before validation. Its status has already been cleared.
	PrepareForCreate func(ctx context.Context, obj T)
	// PrepareForUpdate changes the new object before validation. Its status has already been set to that of the old
	// object.
	PrepareForUpdate func(ctx context.Context, obj, old T)
	// Validate reports errors that involve several fields. It is not called for an update that does not change Spec,
	// so that an object stored under older rules can still be labelled and finalized.
	Validate func(ctx context.Context, obj T) field.ErrorList
	// ValidateUpdate reports changes that are not allowed, in addition to those of Frozen fields.
	ValidateUpdate func(ctx context.Context, obj, old T) field.ErrorList
	// Status sets the status of an object from its spec and generation, at each write, whoever writes. Set it where nothing else says
	// what the status is.
	Status func(obj T)
	// PrepareForStatus changes the new object of a write to the status subresource before validation.
	PrepareForStatus func(ctx context.Context, obj, old T)
	// StatusFinalizer is a finalizer that a write to the status subresource may add to an object, although it changes
	// nothing else outside of the status. This lets a controller take up an object in one commit.
	StatusFinalizer string
	// ValidateStatus checks a write to the status subresource.
	ValidateStatus func(ctx context.Context, obj, old T) field.ErrorList
	// AfterStatus runs after a write to the status subresource was stored. It is not part of the write, so a crash may prevent it.
	AfterStatus func(obj T)
	// Frozen lists the fields that cannot change after create.
	Frozen []Frozen[T]
	// Warnings are shown to the writer of an accepted object. old is nil on create.
	Warnings func(ctx context.Context, obj, old T) []string
	// ValidateName checks metadata.name; the default is a DNS subdomain.
	ValidateName func(name string, prefix bool) []string
	// NoStatus serves a type that has a Status field without a status subresource; Status is then an ordinary field.
	NoStatus bool
	// UnconditionalUpdate accepts a PUT without resourceVersion, as the older kinds of core Kubernetes do.
	UnconditionalUpdate bool
	// Show completes an object that is about to be answered, for example with a status that is computed and not stored.
	// The object is a copy. What the server reads for itself, and what writes start from, is not completed.
	Show func(obj T)
	// Reduce returns what removes from an object, which is a copy, the members that the caller of the request may not see; it
	// returns nil for a caller who sees all of them. Callers for whom it returns a func select by name and labels only.
	Reduce func(ctx context.Context) func(obj T)
	// TTL is how long after its last write an object is removed, in whole seconds; zero keeps it forever.
	TTL time.Duration
	// Deleting changes an object that is being deleted but waits for finalizers. For example, it sets the phase.
	Deleting func(obj T)
	// ValidateDelete refuses a deletion by returning an API error. It is called for every object to be deleted,
	// including those of a collection and of a namespace that is being emptied. The namespace controller then tries
	// again.
	ValidateDelete func(ctx context.Context, obj T) error
	// Begin is called before an object is created, with the object as the client sent it, after the guard. Its error, an
	// API error, refuses the create. The context that it returns is that of the other hooks. done, if it is not nil, is
	// called when the create is over, and told whether the object was stored.
	Begin func(ctx context.Context, obj T, dryRun bool) (next context.Context, done func(created bool), err error)
	// Admitted is called with an object that is about to be created, after all admission and right before the object is stored. Its
	// error, an API error, refuses the create. done of Begin is called later.
	Admitted func(ctx context.Context, obj T) error
	// AfterCreate runs after the object was stored. It is not part of the write, so a crash may prevent it.
	AfterCreate func(obj T)
	// BeforeDelete runs after everything has accepted a deletion, and before it is stored. Its error, an API error,
	// refuses the deletion.
	BeforeDelete func(ctx context.Context, obj T) error
	// AfterDelete runs once, after the object has left the store, even when the removal of its last finalizer caused that. It
	// is not part of the write, so a crash may prevent it: it must be something that can also be done later.
	AfterDelete func(ctx context.Context, obj T)

	// validateNew reports errors of a new object, ttl is TTL by object, and indexes are indexed by the store besides Fields. All may be
	// nil; a StateLedger sets them.
	validateNew func(obj T) field.ErrorList
	ttl         func(obj T) time.Duration
	indexes     map[string]func(obj T) string
}

// Frozen is a field that cannot change after create.
type Frozen[T Object] struct {
	// Path is the field's path, for example field.NewPath("spec", "type").
	Path *field.Path
	// Value returns the field's value; values are compared deeply.
	Value func(T) any
}

// keptREST adds what discovery needs, and the guard, to the generic store.
type keptREST[T Object] struct {
	*registry.Store
	naming         naming[T]
	validateDelete func(context.Context, T) error // may be nil
	beforeDelete   func(context.Context, T) error // may be nil
	begin          func(context.Context, T, bool) (context.Context, func(bool), error)
	admitted       func(context.Context, T) error
	answers        answers[T]
}

var (
	_ rest.StandardStorage    = &keptREST[Object]{}
	_ rest.ShortNamesProvider = &keptREST[Object]{}
	_ rest.CategoriesProvider = &keptREST[Object]{}
)

// ShortNames returns the short names for discovery.
func (r *keptREST[T]) ShortNames() []string { return r.naming.ShortNames() }

// Categories returns the categories for discovery.
func (r *keptREST[T]) Categories() []string { return r.naming.Categories() }

// Revision returns the current revision of the whole store, which is at least that of every acknowledged write.
func (r *keptREST[T]) Revision(ctx context.Context) (uint64, error) {
	return r.Storage.Storage.GetCurrentResourceVersion(ctx)
}

// Get reads from the store, if the guard allows it.
func (r *keptREST[T]) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.Store.Get(ctx, name, opts)
	if err == nil {
		err = r.naming.k.allowed(ctx, "get", "", obj)
	}
	if err != nil {
		return nil, err
	}
	return r.answers.to(ctx).one(obj), nil
}

// List lists the objects of the store that the guard lets the caller see.
func (r *keptREST[T]) List(ctx context.Context, opts *internalversion.ListOptions) (runtime.Object, error) {
	if err := r.answers.selectable(ctx, opts); err != nil {
		return nil, err
	}
	list, err := r.naming.k.list(ctx, opts, r.Store.List)
	if err != nil {
		return nil, err
	}
	return r.answers.to(ctx).list(list)
}

// Watch watches the objects of the store that the guard lets the caller see.
func (r *keptREST[T]) Watch(ctx context.Context, opts *internalversion.ListOptions) (watch.Interface, error) {
	if err := r.answers.selectable(ctx, opts); err != nil {
		return nil, err
	}
	w, err := r.naming.k.watch(ctx, opts, r.Store.Watch)
	if err != nil {
		return nil, err
	}
	return r.answers.to(ctx).watch(w), nil
}

// Create creates the object in the store, if the guard allows it.
func (r *keptREST[T]) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := ctx.Err(); err != nil { // the client has left meanwhile
		return nil, err
	}
	if err := r.naming.k.allowed(ctx, "create", "", obj); err != nil {
		return nil, err
	}
	if r.begin == nil {
		out, err := r.Store.Create(ctx, obj, admit, opts)
		return r.answers.to(ctx).written(out), err
	}
	o, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("creation of %T", obj)
	}
	next, done, err := r.begin(ctx, o, opts != nil && dryrun.IsDryRun(opts.DryRun))
	if err != nil {
		return nil, err
	}
	created := false
	if done != nil {
		defer func() { done(created) }()
	}
	out, err := r.Store.Create(next, obj, r.thenAdmitted(admit), opts)
	created = err == nil
	return r.answers.to(ctx).written(out), err
}

// thenAdmitted returns admission that is followed by the hook Admitted.
func (r *keptREST[T]) thenAdmitted(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	if r.admitted == nil {
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
			return fmt.Errorf("creation of %T", obj)
		}
		return r.admitted(ctx, o)
	}
}

// Update updates the object in the store, if the guard allows it. An apply of an object that does not exist is a create, with all that
// belongs to one.
func (r *keptREST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc, force bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if err := ctx.Err(); err != nil { // the client has left meanwhile
		return nil, false, err
	}
	if force {
		switch out, err := r.applyNew(ctx, name, info, onCreate, opts); {
		case err == nil && out != nil:
			return out, true, nil
		case err != nil && !apierrors.IsAlreadyExists(err): // otherwise somebody was faster, and it is an update
			return nil, false, err
		}
	}
	if err := r.naming.k.allowedStored(ctx, "update", "", name, r.Store); err != nil {
		return nil, false, err
	}
	if opts != nil && opts.FieldManager != "" {
		info = agreeing{info, opts.FieldManager, r.UpdateStrategy.PrepareForUpdate}
	}
	out, created, err := r.Store.Update(ctx, name, info, onCreate, onUpdate, force, opts)
	return r.answers.to(ctx).written(out), created, err
}

// applyNew creates an object that is applied, unless it exists, or the caller says that it should.
func (r *keptREST[T]) applyNew(ctx context.Context, name string, info rest.UpdatedObjectInfo, admit rest.ValidateObjectFunc, opts *metav1.UpdateOptions) (runtime.Object, error) {
	if pre := info.Preconditions(); pre != nil && (pre.UID != nil || pre.ResourceVersion != nil) {
		return nil, nil //nolint:nilnil // not created
	}
	if _, err := r.Store.Get(ctx, name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return nil, err
	}
	obj, err := info.UpdatedObject(ctx, r.New())
	if err != nil {
		return nil, err
	}
	o, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("creation of %T", obj)
	}
	if o.GetName() != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: %q is not the name of the request, %q", o.GetName(), name))
	}
	created := &metav1.CreateOptions{}
	if opts != nil {
		created.DryRun, created.FieldManager, created.FieldValidation = opts.DryRun, opts.FieldManager, opts.FieldValidation
	}
	return r.Create(ctx, o, admit, created)
}

// Delete deletes from the store. The Definition's ValidateDelete runs after admission.
func (r *keptREST[T]) Delete(ctx context.Context, name string, admit rest.ValidateObjectFunc, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if err := r.naming.k.allowedStored(ctx, "delete", "", name, r.Store); err != nil {
		return nil, false, err
	}
	return r.Store.Delete(ctx, name, r.deletable(admit, opts), opts)
}

// DeleteCollection deletes from the store. The Definition's ValidateDelete runs for each object, after admission.
func (r *keptREST[T]) DeleteCollection(ctx context.Context, admit rest.ValidateObjectFunc, opts *metav1.DeleteOptions, list *internalversion.ListOptions) (runtime.Object, error) {
	admit, err := r.naming.k.onlySeen(ctx, list, admit)
	if err != nil {
		return nil, err
	}
	return r.Store.DeleteCollection(ctx, r.deletable(admit, opts), opts, list)
}

func (r *keptREST[T]) deletable(admit rest.ValidateObjectFunc, opts *metav1.DeleteOptions) rest.ValidateObjectFunc {
	before := r.beforeDelete
	if opts != nil && dryrun.IsDryRun(opts.DryRun) {
		before = nil
	}
	if r.validateDelete == nil && before == nil {
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
		if r.validateDelete != nil {
			if err := r.validateDelete(ctx, o); err != nil {
				return err
			}
		}
		if before != nil {
			return before(ctx, o)
		}
		return nil
	}
}

// Stage prepares an update of a stored object that is committed together with other changes. mutate changes a copy; its
// error ends the update. The part is nil if nothing changes. It is for the server itself: nothing else is called.
func (r *keptREST[T]) Stage(ctx context.Context, name string, mutate func(T) error) (engine.Part, error) {
	key, err := r.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	return object.Stage(ctx, r.Storage.Storage, key, func(obj runtime.Object) error {
		o, ok := obj.(T)
		if !ok {
			return fmt.Errorf("stage %T", obj)
		}
		return mutate(o)
	})
}

// StageNew prepares a new object that is committed together with other changes. It is for the server itself: nothing else is called.
func (r *keptREST[T]) StageNew(ctx context.Context, obj T) (engine.Part, error) {
	rest.FillObjectMetaSystemFields(obj)
	obj.SetGeneration(1)
	obj.GetObjectKind().SetGroupVersionKind(r.naming.k.Resource.GroupVersion().WithKind(r.naming.k.Kind))
	key, err := r.KeyFunc(ctx, obj.GetName())
	if err != nil {
		return nil, err
	}
	var ttl uint64
	if r.TTLFunc != nil {
		if ttl, err = r.TTLFunc(obj, 0, false); err != nil {
			return nil, err
		}
	}
	return object.StageNew(ctx, r.Storage.Storage, key, obj, ttl)
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
		s.ttl = func(T) time.Duration { return s.TTL }
	}
	if s.ttl != nil {
		store.TTLFunc = func(obj runtime.Object, _ uint64, _ bool) (uint64, error) {
			return uint64(s.ttl(obj.(T)) / time.Second), nil
		}
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
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: k.RESTOptions, AttrFunc: k.attrs, TriggerFunc: k.indexers(s.indexes)}); err != nil {
		return none, err
	}
	kept := &keptREST[T]{Store: store, naming: naming[T]{k}, validateDelete: s.ValidateDelete, beforeDelete: s.BeforeDelete, begin: s.Begin, admitted: s.Admitted, answers: answers[T]{s.Show, s.Reduce}}
	paths[k.Resource.Resource] = kept
	p := parent[T]{get: getter[T](store), kept: kept, update: updater[T](store)}
	if main.hasStatus() {
		st := *store
		st.UpdateStrategy = statusStrategy[T]{main}
		if s.AfterStatus != nil {
			st.AfterUpdate = func(obj runtime.Object, opts *metav1.UpdateOptions) {
				if o, ok := obj.(T); ok && (opts == nil || !dryrun.IsDryRun(opts.DryRun)) {
					s.AfterStatus(o)
				}
			}
		}
		paths[k.Resource.Resource+"/status"] = &statusREST[T]{store: &st, k: k, answers: kept.answers}
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

// updater returns a func that reads, modifies and writes an object. The store retries it if another writer
// interferes.
func updater[T Object](s *registry.Store) func(context.Context, string, func(T) error, ...string) (T, error) {
	return func(ctx context.Context, name string, mutate func(T) error, dryRun ...string) (T, error) {
		out, _, err := s.Update(ctx, name, mutated(mutate), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
		if err != nil {
			var none T
			return none, err
		}
		return out.(T), nil
	}
}

// mutated is a change of a copy of the stored object.
func mutated[T Object](mutate func(T) error) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject().(T)
		return obj, mutate(obj)
	})
}
