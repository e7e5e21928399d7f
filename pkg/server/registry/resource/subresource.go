// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Subresource is served below one object, at .../tasks/NAME/SUB. Set Get, Create, both of these, or Connect; no other
// combination is valid. The object is loaded first, so that an unknown one is a 404 before any func runs.
type Subresource[T Object] struct {
	// Name is the path segment.
	Name string
	// New makes an empty object of the kind that is read and written. With Connect it may be nil, which means the
	// parent's kind.
	New func() runtime.Object
	// Kind is set if New's kind belongs to another group version than the resource (for example a TokenRequest).
	Kind schema.GroupVersionKind
	// Get answers GET.
	Get func(ctx context.Context, p Parent[T]) (runtime.Object, error)
	// Create answers POST. obj has been decoded into New's kind.
	Create func(ctx context.Context, p Parent[T], obj runtime.Object) (runtime.Object, error)
	// Prepare changes the posted object before admission policies see it, so that they can rely on what it sets.
	Prepare func(ctx context.Context, p Parent[T], obj runtime.Object) error
	// Connect returns the raw handler of a request, which reads and writes bytes freely. A returned error becomes a
	// Status. respond writes a Status for an error that occurs later, but before anything was written.
	Connect func(ctx context.Context, p Parent[T], respond rest.Responder) (http.Handler, error)
	// Methods are the HTTP methods of Connect; each is authorized as its usual verb (POST is create).
	Methods []string
	// Subpath makes Connect also serve the paths below the subresource; see Parent.Path.
	Subpath bool
	// MaxBody is the maximum length of a request's body in bytes, if it differs from that of an object.
	MaxBody int64
	// Readers and Creators are the default roles that may get the subresource and create it. Users may define other
	// roles themselves.
	Readers, Creators []Role
}

// Parent is the object that a subresource request is about.
type Parent[T Object] struct {
	// Object is the object as stored when the request arrived. It must not be modified.
	Object T
	// Path is the rest of the URL path below the subresource, without a leading slash.
	Path string
	// DryRun is set for a create that must not have side effects.
	DryRun bool

	resource schema.GroupResource
	get      func(ctx context.Context, name string) (T, error)
	update   func(ctx context.Context, name string, mutate func(T) error, dryRun ...string) (T, error)
	// allowed asks the definition's guard about the request again; nil if the guard does not restrict the caller.
	allowed func(ctx context.Context) error
}

// Allowed checks again whether the caller may make the request. Long-running answers call it, because the permissions
// of a credential may end meanwhile. The error is an API error. The check is free for a caller whom no guard
// restricts.
func (p Parent[T]) Allowed(ctx context.Context) error {
	if p.allowed == nil {
		return nil
	}
	return p.allowed(request.WithNamespace(ctx, p.Object.GetNamespace()))
}

// Names returns an API error if the metadata of a posted object, of the same kind or of another one, belongs to another object
// than the parent, whose path the request was authorized for: 400 for another name or namespace, 409 for another UID.
func (p Parent[T]) Names(posted runtime.Object) error {
	m, ok := posted.(metav1.Object)
	if !ok {
		return nil
	}
	for _, f := range []struct{ name, got, want string }{
		{"name", m.GetName(), p.Object.GetName()}, {"namespace", m.GetNamespace(), p.Object.GetNamespace()},
	} {
		if f.got != "" && f.got != f.want {
			return apierrors.NewBadRequest(fmt.Sprintf("metadata.%s: %.253q: the path says %q", f.name, f.got, f.want))
		}
	}
	if uid := m.GetUID(); uid != "" && uid != p.Object.GetUID() {
		return apierrors.NewConflict(p.resource, p.Object.GetName(), fmt.Errorf("metadata.uid: %.64q: the object has the UID %s", uid, p.Object.GetUID()))
	}
	return nil
}

// Reload reads the parent again. If the object is gone, or was deleted and created again, the error is a 404.
func (p Parent[T]) Reload(ctx context.Context) (T, error) {
	// The context of a connected request lacks the namespace.
	obj, err := p.get(request.WithNamespace(ctx, p.Object.GetNamespace()), p.Object.GetName())
	if err == nil && obj.GetUID() != p.Object.GetUID() {
		return obj, apierrors.NewNotFound(p.resource, obj.GetName())
	}
	return obj, err
}

// Update changes the stored parent: its Status if the resource has a status subresource, otherwise the whole object.
// mutate may run several times, each time on a fresh copy, until no other writer interferes; an error from it ends
// the update. If the object was deleted and created again meanwhile, the error is a conflict. In a dry run nothing is stored.
func (p Parent[T]) Update(ctx context.Context, mutate func(T) error) (T, error) {
	uid := p.Object.GetUID()
	var dryRun []string
	if p.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	return p.update(ctx, p.Object.GetName(), func(obj T) error {
		if obj.GetUID() != uid {
			return apierrors.NewConflict(p.resource, obj.GetName(), fmt.Errorf("the object was replaced meanwhile"))
		}
		return mutate(obj)
	}, dryRun...)
}

func (s Subresource[T]) storage(k *kind[T], p parent[T]) (rest.Storage, error) {
	base := subBase[T]{k: k, s: s, p: p}
	switch {
	case s.Name == "":
		return nil, fmt.Errorf("no name")
	case s.Prepare != nil && s.Create == nil:
		return nil, fmt.Errorf("set Prepare with Create only")
	case p.get == nil:
		return nil, fmt.Errorf("the resource cannot be read")
	case s.Connect != nil && s.Get == nil && s.Create == nil && len(s.Methods) > 0:
		return &subConnect[T]{base}, nil
	case s.Connect != nil || s.New == nil:
		return nil, fmt.Errorf("set New with Get or Create, or Connect with Methods")
	case s.Get != nil && s.Create != nil:
		return &struct {
			subBase[T]
			subGet[T]
			subCreate[T]
		}{base, subGet[T]{&base}, subCreate[T]{&base}}, nil
	case s.Get != nil:
		return &struct {
			subBase[T]
			subGet[T]
		}{base, subGet[T]{&base}}, nil
	case s.Create != nil:
		return &struct {
			subBase[T]
			subCreate[T]
		}{base, subCreate[T]{&base}}, nil
	}
	return nil, fmt.Errorf("set Get, Create or Connect")
}

type subBase[T Object] struct {
	k *kind[T]
	s Subresource[T]
	p parent[T]
}

func (b subBase[T]) New() runtime.Object {
	if b.s.New == nil {
		return b.k.newObject()
	}
	return b.s.New()
}

func (subBase[T]) Destroy() {}

// GroupVersionKind returns the kind for discovery and decoding.
func (b subBase[T]) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	if !b.s.Kind.Empty() {
		return b.s.Kind
	}
	obj := b.New()
	kinds, _, err := b.k.Scheme.ObjectKinds(obj)
	if err != nil || len(kinds) == 0 {
		return gv.WithKind(b.k.Kind)
	}
	return gv.WithKind(kinds[0].Kind)
}

func (b subBase[T]) load(ctx context.Context, verb, name string) (Parent[T], error) {
	obj, err := b.p.get(ctx, name)
	if err != nil {
		return Parent[T]{}, b.k.statusError(name, err)
	}
	if err := b.k.allowed(ctx, verb, b.s.Name, obj); err != nil {
		return Parent[T]{}, err
	}
	p := Parent[T]{Object: obj, Path: subpath(ctx), resource: b.k.Resource.GroupResource(), get: b.p.get, update: b.p.update}
	if b.k.held(ctx) {
		p.allowed = func(ctx context.Context) error {
			now, err := p.Reload(ctx)
			if apierrors.IsNotFound(err) { // a deleted object ends the answer in another way; the guard does not decide on it
				return nil
			}
			if err != nil {
				return b.k.statusError(name, err)
			}
			return b.k.allowed(ctx, verb, b.s.Name, now)
		}
	}
	return p, nil
}

// subpath returns the part of the request's path after resource, name and subresource.
func subpath(ctx context.Context) string {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || len(info.Parts) < 4 {
		return ""
	}
	return strings.Join(info.Parts[3:], "/")
}

type subGet[T Object] struct{ b *subBase[T] }

func (g subGet[T]) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	p, err := g.b.load(ctx, "get", name)
	if err != nil {
		return nil, err
	}
	out, err := g.b.s.Get(ctx, p)
	if err != nil {
		return nil, g.b.k.statusError(name, err)
	}
	return out, nil
}

type subCreate[T Object] struct{ b *subBase[T] }

func (c subCreate[T]) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	p, err := c.b.load(ctx, "create", name)
	if err != nil {
		return nil, err
	}
	p.DryRun = opts != nil && dryrun.IsDryRun(opts.DryRun)
	if err := p.Names(obj); err != nil {
		return nil, err
	}
	if c.b.s.Prepare != nil {
		if err := c.b.s.Prepare(ctx, p, obj); err != nil {
			return nil, c.b.k.statusError(name, err)
		}
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	out, err := c.b.s.Create(ctx, p, obj)
	if err != nil {
		return nil, c.b.k.statusError(name, err)
	}
	return out, nil
}

type subConnect[T Object] struct{ subBase[T] }

func (c *subConnect[T]) NewConnectOptions() (runtime.Object, bool, string) {
	return nil, c.s.Subpath, "path"
}

func (c *subConnect[T]) ConnectMethods() []string { return slices.Clone(c.s.Methods) }

func (c *subConnect[T]) Connect(ctx context.Context, name string, _ runtime.Object, r rest.Responder) (http.Handler, error) {
	p, err := c.load(ctx, connectVerb(ctx), name)
	if err != nil {
		return nil, err
	}
	h, err := c.s.Connect(ctx, p, responder[T]{Responder: r, k: c.k, name: name})
	if err != nil {
		return nil, c.k.statusError(name, err)
	}
	return h, nil
}

// responder maps the errors of a handler in the same way as those of every other verb.
type responder[T Object] struct {
	rest.Responder
	k    *kind[T]
	name string
}

func (r responder[T]) Error(err error) { r.Responder.Error(r.k.statusError(r.name, err)) }

var (
	_ rest.Connecter    = &subConnect[Object]{}
	_ rest.NamedCreater = &struct {
		subBase[Object]
		subCreate[Object]
	}{}
	_ rest.GroupVersionKindProvider = subBase[Object]{}
)
