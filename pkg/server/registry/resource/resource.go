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
//		Roles:   resource.Roles{Readers: resource.Users(resource.Worker), Writers: resource.Writers()},
//		Guard:   guard,
//		Shape:   resource.Kept[*v1alpha1.Skill]{Validate: validate},
//	}
//
// Shape is one of the first six below. Each serves only its own verbs, so that discovery lists what really works:
//
//   - Kept: every verb over the object store, with a status subresource where the type has a Status field.
//     metadata.generation grows only when Spec changes.
//   - StateLedger: Kept for entries whose state follows a table, with leases, next attempts and retention.
//   - Ledger: create, get, list and watch by funcs. An entry is never updated or deleted through the API.
//   - View: get, list and (with a Watch func) watch, computed by funcs.
//   - Action: create only. The answer is the same object, filled in; nothing is stored.
//   - Exchange: an Action whose answer may take long and may be a stream.
//   - Subresource: get, create or connect below a Kept, View or Ledger object, listed in Definition.Subresources.
//
// Funcs of a namespaced resource get the namespace from request.NamespaceValue(ctx) and the caller from
// request.UserFrom(ctx), both in k8s.io/apiserver/pkg/endpoints/request. They return either apierrors or plain errors
// of the storage layers, which this package maps by the table in errors.go.
//
// A role covers all objects of a namespace. A Guard restricts callers whose credential is for only some of them. It
// is part of the Definition, and this package asks it for every verb and subresource, so no subresource can forget
// to. Whoever collects the definitions of a server gives the others a guard by CloseTo.
//
// Types of other groups (core/v1, rbac/v1, coordination/v1) are served in the same way. Every type must be in the
// scheme twice, as its version and as runtime.APIVersionInternal, together with its list type (Kind + "List"). Rules
// about a single field are declarative validation tags. A type that has both a status subresource and generated
// validation needs the tag +k8s:supportsSubresource="/status".
package resource

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	admissionregistrationv1 "k8s.io/client-go/listers/admissionregistration/v1"
	corev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// Object is an API object with metadata. Every kind's pointer type implements it.
type Object interface {
	runtime.Object
	metav1.Object
}

// Config is what a Definition needs from the server to build its storage.
type Config struct {
	// Scheme contains every served type, as its version and as internal.
	Scheme *runtime.Scheme
	// RESTOptions provides the object store; only Kept uses it.
	RESTOptions generic.RESTOptionsGetter
	// Clock is used to compute ages in tables.
	Clock clock.PassiveClock
	// Owners, if set, refuses references to owners that no garbage collector follows. old is nil for a new object.
	Owners func(obj, old metav1.Object) field.ErrorList
	// Admission holds the policies, webhooks and quotas of the server. A resource uses it for what it stores of
	// another one. May be nil.
	Admission admission.Interface
	// Policies reads the ValidatingAdmissionPolicies in force. May be nil.
	Policies admissionregistrationv1.ValidatingAdmissionPolicyLister
	// Namespaces reads namespaces. May be nil.
	Namespaces corev1.NamespaceLister
}

// Resource is a Definition of any type.
type Resource interface {
	// GroupVersionResource names the resource as served.
	GroupVersionResource() schema.GroupVersionResource
	// Register adds the selectable fields to the scheme, which decoding requests needs. Call it before serving.
	Register(scheme *runtime.Scheme) error
	// BodyLimits returns, by path ("tasks/events"), the maximum length of request bodies in bytes, where it differs
	// from that of an object.
	BodyLimits() map[string]int64
	// KindGrant returns the grant of the objects themselves.
	KindGrant() KindGrant
	// TokenScopes returns the Scopes of the Definition; nil if it has none.
	TokenScopes() *external.Scopes
	// Grants returns the grants of the subresources, in the order in which they are defined.
	Grants() []Grant
	// CloseTo makes a guard that decides about objects of any kind the guard of the resource, if its Definition neither has one
	// nor is Unguarded. Call it before Storage.
	CloseTo(g Guard[Object])
	// Creates returns the handler that answers creates in place of the generic one; nil means the generic one. Call it
	// after Storage.
	Creates() http.Handler
	// Storage builds the storage by path ("tasks", "tasks/status"). Hooks that outlive a request run under ctx,
	// which should end when the server does.
	Storage(ctx context.Context, c Config) (map[string]rest.Storage, error)
}

// Definition describes one resource. T is the pointer type of its kind.
type Definition[T Object] struct {
	// Resource is the group, version and plural as served.
	Resource schema.GroupVersionResource
	// Kind is the kind in the scheme. Its list is Kind + "List", which an Action does not need.
	Kind string
	// Singular is the lower-case singular name.
	Singular string
	// ShortNames and Categories are used by kubectl; both may be empty.
	ShortNames, Categories []string
	// ClusterScoped is set for resources outside namespaces.
	ClusterScoped bool
	// Fields can be used in field selectors, besides metadata.name and metadata.namespace. Any other field is refused
	// with 400.
	Fields []Field[T]
	// Columns are the table columns between Name and Age, which this package adds.
	Columns []Column[T]
	// WholeTable makes Columns the whole table, for objects whose name carries no information.
	WholeTable bool
	// Shape determines which verbs exist and what they do.
	Shape Shape[T]
	// Subresources are served below the object. An Action cannot have any.
	Subresources []Subresource[T]
	// Roles are the roles that may use the objects by default.
	Roles Roles
	// Scopes are what transaction tokens need for the objects. Nil, or an empty scope, is refused to them where scopes count.
	Scopes *external.Scopes
	// Guard is asked for every verb and subresource. A resource that needs no restriction beyond roles sets
	// Unguarded.
	Guard     Guard[T]
	Unguarded bool

	// Stored, if set, reads and changes what is stored for others, who have it before there is a Definition.
	Stored *Stored[T]

	reads   sync.Once
	creates atomic.Pointer[http.Handler] // of an Exchange; nil until Storage has been called
}

// Shape is Kept, StateLedger, Ledger, View, Action or Exchange.
type Shape[T Object] interface {
	storage(ctx context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error)
}

// kind is a Definition bound to a Config. All shapes share it.
type kind[T Object] struct {
	*Definition[T]
	Config
	table tableConvertor[T]
}

// parent loads and changes the object that a subresource belongs to. update is nil where the shape cannot be updated.
type parent[T Object] struct {
	get    func(ctx context.Context, name string) (T, error)
	kept   *keptREST[T] // nil unless the shape is Kept
	update func(ctx context.Context, name string, mutate func(T) error, dryRun ...string) (T, error)
	due    func(ctx context.Context, now time.Time, limit int) ([]T, error) // of a StateLedger
}

// GroupVersionResource returns the name of the resource as served.
func (d *Definition[T]) GroupVersionResource() schema.GroupVersionResource { return d.Resource }

// TokenScopes returns what transaction tokens need for the objects; nil if nothing is said.
func (d *Definition[T]) TokenScopes() *external.Scopes { return d.Scopes }

// BodyLimits returns the limits of the subresources that have one, by path.
func (d *Definition[T]) BodyLimits() map[string]int64 {
	limits := map[string]int64{}
	for _, s := range d.Subresources {
		if s.MaxBody > 0 {
			limits[d.Resource.Resource+"/"+s.Name] = s.MaxBody
		}
	}
	return limits
}

// reader returns Stored, or makes it.
func (d *Definition[T]) reader() *Stored[T] {
	d.reads.Do(func() {
		if d.Stored == nil {
			d.Stored = NewStored[T](d.Resource.GroupResource())
		}
	})
	return d.Stored
}

// Get is that of Stored.
func (d *Definition[T]) Get(ctx context.Context, name string) (T, error) {
	return d.reader().Get(ctx, name)
}

// List is that of Stored.
func (d *Definition[T]) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	return d.reader().List(ctx, opts)
}

// UpdateStored is that of Stored.
func (d *Definition[T]) UpdateStored(ctx context.Context, name string, mutate func(T) error) (T, error) {
	return d.reader().UpdateStored(ctx, name, mutate)
}

// Storage builds the resource's storage by path. It fails if the Definition does not match its type or scheme.
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
	d.reader().bound.Store(&bound[T]{p, c})
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

// newObject makes an empty object. It cannot fail, because check has made one before.
func (k *kind[T]) newObject() runtime.Object { return k.create(k.Kind) }

func (k *kind[T]) newList() runtime.Object { return k.create(k.Kind + "List") }

func (k *kind[T]) create(name string) runtime.Object {
	obj, err := k.Scheme.New(schema.GroupVersionKind{Group: k.Resource.Group, Version: runtime.APIVersionInternal, Kind: name})
	if err != nil {
		return nil
	}
	return obj
}

// naming carries what all shapes report to discovery.
type naming[T Object] struct{ k *kind[T] }

// New makes an empty object of the kind.
func (n naming[T]) New() runtime.Object { return n.k.newObject() }

// Destroy does nothing: the owner of the object store closes it.
func (naming[T]) Destroy() {}

// NamespaceScoped reports whether the resource is namespaced.
func (n naming[T]) NamespaceScoped() bool { return !n.k.ClusterScoped }

// GetSingularName returns the singular name for discovery.
func (n naming[T]) GetSingularName() string { return n.k.Singular }

// ShortNames returns the short names for discovery.
func (n naming[T]) ShortNames() []string { return n.k.Definition.ShortNames }

// Categories returns the categories for discovery.
func (n naming[T]) Categories() []string { return n.k.Definition.Categories }
