// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource turns one Definition into served REST storage.
//
// A resource is a struct literal; a nil func means the default:
//
//	var Definition = &resource.Definition[*v1alpha1.Skill]{
//		Resource: v1alpha1.SchemeGroupVersion.WithResource("skills"),
//		Kind:     "Skill", Singular: "skill",
//		Fields:  fields,
//		Columns: columns,
//		Guard:   guard,
//		Shape:   resource.Kept[*v1alpha1.Skill]{Validate: validate},
//	}
//
// Shape is one of five; each serves only its verbs, so discovery is honest:
//
//   - Kept: every verb over the object store, with a status subresource where the type has a Status field.
//     metadata.generation grows only when Spec changes.
//   - Ledger: create, get, list and watch by funcs; an entry is never updated or deleted through the API.
//   - View: get, list and (with a Watch func) watch, computed by funcs.
//   - Action: create only; the answer is the same object, filled in. Nothing is stored.
//   - Subresource: get, create or connect below a Kept, View or Ledger object, listed in Definition.Subresources.
//
// Funcs of a namespaced resource find the namespace with request.NamespaceValue(ctx) and the caller with
// request.UserFrom(ctx), both of k8s.io/apiserver/pkg/endpoints/request. They return plain errors of the storage
// layers or apierrors; the kit maps the former by the table in errors.go.
//
// What a role allows on all objects of a namespace, a Guard may narrow to some for callers whose credential is for less. It
// is part of the Definition, and the kit asks it for every verb and subresource, so none can forget it.
//
// Types of other groups (core/v1, rbac/v1, coordination/v1) are served by the same kit. Every type must be in the
// scheme twice, as its version and as runtime.APIVersionInternal, together with its list type (Kind + "List").
// Single-field rules are declarative validation tags; a type with a status subresource that has generated
// validation needs +k8s:supportsSubresource="/status" on it.
package resource

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// Object is an API object with metadata: the pointer type of every kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Config is what a Definition needs from the server to become storage.
type Config struct {
	// Scheme knows every served type as its version and as internal.
	Scheme *runtime.Scheme
	// RESTOptions gives the object store; only Kept uses it.
	RESTOptions generic.RESTOptionsGetter
	// Clock tells ages in tables.
	Clock clock.PassiveClock
	// GarbageCollector tells that a collector follows owner references, as in a cluster. Without one, a deletion that
	// asks to wait for it (foreground, orphan) would wait forever, so it is then an ordinary deletion.
	GarbageCollector bool
	// Admission are the policies, webhooks and quotas of the server, for what a resource stores of another one. Nil for none.
	Admission admission.Interface
}

// Resource is any Definition, whatever its type.
type Resource interface {
	// GroupVersionResource names the resource as served.
	GroupVersionResource() schema.GroupVersionResource
	// Register adds to the scheme what decoding requests needs: the selectable fields. Call before serving.
	Register(scheme *runtime.Scheme) error
	// BodyLimits are the paths ("tasks/events") whose request bodies may have another length than an object, in bytes.
	BodyLimits() map[string]int64
	// Grants are those of the subresources, in their order.
	Grants() []Grant
	// Storage builds the storage by path ("tasks", "tasks/status"). Hooks that outlive a request run under ctx,
	// which should end when the server does.
	Storage(ctx context.Context, c Config) (map[string]rest.Storage, error)
}

// Definition describes one resource. T is the pointer type of its kind.
type Definition[T Object] struct {
	// Resource is the group, version and plural as served.
	Resource schema.GroupVersionResource
	// Kind is the kind in the scheme; its list is Kind + "List" (not needed for an Action).
	Kind string
	// Singular is the lower-case singular name.
	Singular string
	// ShortNames and Categories are for kubectl; both may be empty.
	ShortNames, Categories []string
	// ClusterScoped is set for resources outside namespaces.
	ClusterScoped bool
	// Fields can be used in field selectors beside metadata.name and metadata.namespace; any other is refused with 400.
	Fields []Field[T]
	// Columns are the table columns between Name and Age, which the kit adds.
	Columns []Column[T]
	// WholeTable makes Columns the whole table, for objects whose name tells nothing.
	WholeTable bool
	// Shape says which verbs exist and what they do.
	Shape Shape[T]
	// Subresources are served below the object; not below an Action.
	Subresources []Subresource[T]
	// Guard is asked for every verb and subresource. A resource that is for all whom their roles allow says Unguarded.
	Guard     Guard[T]
	Unguarded bool

	get atomic.Pointer[func(context.Context, string) (T, error)] // nil until Storage was called
}

// Shape is Kept, Ledger, View or Action.
type Shape[T Object] interface {
	storage(ctx context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error)
}

// kind is a Definition bound to a Config: what all shapes share.
type kind[T Object] struct {
	*Definition[T]
	Config
	table tableConvertor[T]
}

// parent loads and changes the object a subresource hangs on. update is nil where the shape cannot be updated.
type parent[T Object] struct {
	get    func(ctx context.Context, name string) (T, error)
	update func(ctx context.Context, name string, mutate func(T) error) (T, error)
}

// GroupVersionResource names the resource as served.
func (d *Definition[T]) GroupVersionResource() schema.GroupVersionResource { return d.Resource }

// BodyLimits are those of the subresources that have one.
func (d *Definition[T]) BodyLimits() map[string]int64 {
	limits := map[string]int64{}
	for _, s := range d.Subresources {
		if s.MaxBody > 0 {
			limits[d.Resource.Resource+"/"+s.Name] = s.MaxBody
		}
	}
	return limits
}

// Get reads an object of the context's namespace from the store, for the server itself: no guard is asked. Errors are API
// errors.
func (d *Definition[T]) Get(ctx context.Context, name string) (T, error) {
	get := d.get.Load()
	if get == nil || *get == nil {
		var none T
		return none, apierrors.NewServiceUnavailable(d.Resource.Resource + " are not served yet")
	}
	return (*get)(ctx, name)
}

// Storage builds the resource's storage by path. It fails on a Definition that does not match its type or scheme.
func (d *Definition[T]) Storage(ctx context.Context, c Config) (map[string]rest.Storage, error) {
	k := &kind[T]{Definition: d, Config: c}
	if err := k.check(); err != nil {
		return nil, fmt.Errorf("resource %s: %w", d.Resource.Resource, err)
	}
	k.table = tableConvertor[T]{columns: d.Columns, whole: d.WholeTable, clock: c.Clock}
	paths := map[string]rest.Storage{}
	p, err := d.Shape.storage(ctx, k, paths)
	if err != nil {
		return nil, fmt.Errorf("resource %s: %w", d.Resource.Resource, err)
	}
	d.get.Store(&p.get)
	for _, s := range d.Subresources {
		st, err := s.storage(k, p)
		if err != nil {
			return nil, fmt.Errorf("resource %s/%s: %w", d.Resource.Resource, s.Name, err)
		}
		paths[d.Resource.Resource+"/"+s.Name] = st
	}
	return paths, nil
}

func (k *kind[T]) check() error {
	switch {
	case k.Shape == nil:
		return fmt.Errorf("no shape")
	case k.Kind == "" || k.Singular == "" || k.Resource.Resource == "":
		return fmt.Errorf("resource, kind and singular are needed")
	case (k.Guard == nil) != k.Unguarded:
		return fmt.Errorf("set Guard, or Unguarded where everybody may do what roles allow")
	}
	for _, gv := range []schema.GroupVersion{k.Resource.GroupVersion(), {Group: k.Resource.Group, Version: runtime.APIVersionInternal}} {
		obj, err := k.Scheme.New(gv.WithKind(k.Kind))
		if err != nil {
			return err
		}
		if _, ok := obj.(T); !ok {
			return fmt.Errorf("scheme has %T for %s", obj, gv.WithKind(k.Kind))
		}
	}
	return nil
}

// newObject makes an empty object; check has proved that it can.
func (k *kind[T]) newObject() runtime.Object { return k.create(k.Kind) }

func (k *kind[T]) newList() runtime.Object { return k.create(k.Kind + "List") }

func (k *kind[T]) create(name string) runtime.Object {
	obj, err := k.Scheme.New(schema.GroupVersionKind{Group: k.Resource.Group, Version: runtime.APIVersionInternal, Kind: name})
	if err != nil {
		return nil
	}
	return obj
}

// names carries the discovery facts every shape's storage shares.
type naming[T Object] struct{ k *kind[T] }

// New makes an empty object of the kind.
func (n naming[T]) New() runtime.Object { return n.k.newObject() }

// Destroy has nothing to release: the object store is closed by its owner.
func (naming[T]) Destroy() {}

// NamespaceScoped says whether the resource lives in namespaces.
func (n naming[T]) NamespaceScoped() bool { return !n.k.ClusterScoped }

// GetSingularName is the singular for discovery.
func (n naming[T]) GetSingularName() string { return n.k.Singular }

// ShortNames is for discovery.
func (n naming[T]) ShortNames() []string { return n.k.Definition.ShortNames }

// Categories is for discovery.
func (n naming[T]) Categories() []string { return n.k.Definition.Categories }
