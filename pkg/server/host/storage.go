// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/host/garbage"
	"github.com/platform-ai/platform/pkg/server/host/rbac"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

var (
	namespacesResource      = schema.GroupResource{Resource: "namespaces"}
	serviceAccountsResource = schema.GroupResource{Resource: "serviceaccounts"}
	secretsResource         = schema.GroupResource{Resource: "secrets"}
	tasksResource           = schema.GroupResource{Group: "core.platform.ai", Resource: "tasks"}
	eventsResource          = corev1.SchemeGroupVersion.WithResource("events")
	gatewayEventsResource   = schema.GroupVersionResource{Group: "core.platform.ai", Version: "v1alpha1", Resource: "gatewayevents"}
	deliveriesResource      = schema.GroupVersionResource{Group: "core.platform.ai", Version: "v1alpha1", Resource: "gatewaydeliveries"}
)

// storages holds the built storages of all resources of the server, so that the
// host can read objects without sending requests to itself. They are filled in
// while the server is built and only read afterwards.
type storages struct {
	byResource map[schema.GroupResource]rest.Storage
	// kept are those whose objects are stored, and kinds are their kinds.
	kept  []kept
	kinds garbage.Kinds
	// finalize is the storage of namespaces/finalize, status that of
	// namespaces/status.
	finalize, status rest.Updater
	// admission holds the administrator's policies; it may be nil.
	admission admission.Interface
	objects   admission.ObjectInterfaces
}

// kept is a resource whose objects are stored.
type kept struct {
	rest.StandardStorage
	resource   schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
}

func newStorages() *storages {
	return &storages{byResource: map[schema.GroupResource]rest.Storage{}, kinds: garbage.Kinds{}}
}

// seen is a resource whose storage is recorded when it is built.
type seen struct {
	resource.Resource
	s *storages
}

// Storage returns the resource's own storage.
func (r seen) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	c.Owners = r.s.kinds.Check
	paths, err := r.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	r.s.admission, r.s.objects = c.Admission, admission.NewObjectInterfacesFromScheme(c.Scheme)
	if err := r.s.keep(r.GroupVersionResource(), paths, c.Scheme); err != nil {
		return nil, err
	}
	gr := r.GroupVersionResource().GroupResource()
	for path, st := range paths {
		if !strings.Contains(path, "/") {
			r.s.byResource[gr] = st
		}
	}
	if gr == namespacesResource {
		r.s.finalize, _ = paths["namespaces/finalize"].(rest.Updater)
		r.s.status, _ = paths["namespaces/status"].(rest.Updater)
	}
	return paths, nil
}

// keep records a resource whose objects are stored.
func (s *storages) keep(gvr schema.GroupVersionResource, paths map[string]rest.Storage, scheme *runtime.Scheme) error {
	st, ok := paths[gvr.Resource].(rest.StandardStorage)
	scope, scoped := paths[gvr.Resource].(rest.Scoper)
	if !ok || !scoped {
		return nil
	}
	kinds, _, err := scheme.ObjectKinds(st.New())
	if err != nil {
		return fmt.Errorf("resource %s: %w", gvr.Resource, err)
	}
	for _, k := range kinds {
		if k.GroupVersion() == gvr.GroupVersion() {
			s.kept, s.kinds[k] = append(s.kept, kept{st, gvr, k, scope.NamespaceScoped()}), scope.NamespaceScoped()
		}
	}
	return nil
}

// as returns a resource's storage as an interface that it must implement.
func as[T any](s *storages, gr schema.GroupResource) (T, error) {
	st, ok := s.byResource[gr].(T)
	if !ok {
		return st, fmt.Errorf("storage of %s is %T, which is not %T", gr, s.byResource[gr], (*T)(nil))
	}
	return st, nil
}

// asAdmin makes the host itself the user of its operations on the storage, for
// cluster-scoped objects.
func asAdmin(ctx context.Context) context.Context {
	ctx = request.WithNamespace(ctx, metav1.NamespaceNone)
	return request.WithUser(ctx, &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}})
}

// uid returns a func that looks up the UID of an object; "" if the object does
// not exist or is not wanted.
func (s *storages) uid(gr schema.GroupResource, wanted func(metav1.Object) bool) func(context.Context, string, string) (types.UID, error) {
	return func(ctx context.Context, namespace, name string) (types.UID, error) {
		g, err := as[rest.Getter](s, gr)
		if err != nil {
			return "", err
		}
		obj, err := g.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		m, err := meta.Accessor(obj)
		if err != nil || wanted != nil && !wanted(m) {
			return "", err
		}
		return m.GetUID(), nil
	}
}

// taskOfRun returns a func that looks up the UID of the task that a token is to be bound to. The holder of the token acts as the worker of
// the task's run, so only controllers get one, whoever may make tokens of the ServiceAccount.
func (s *storages) taskOfRun(a authorizer.Authorizer) func(context.Context, string, string) (types.UID, error) {
	return func(ctx context.Context, namespace, name string) (types.UID, error) {
		ok, err := guard.MayControl(ctx, a, namespace)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", apierrors.NewForbidden(tasksResource, name, errors.New("only controllers make tokens that are bound to a task"))
		}
		return s.uid(tasksResource, nil)(ctx, namespace, name)
	}
}

// run returns the current run of a task; "" if it has none.
func (s *storages) run(ctx context.Context, namespace string, ref *authenticationv1.BoundObjectReference) (string, error) {
	g, err := as[rest.Getter](s, tasksResource)
	if err != nil {
		return "", err
	}
	obj, err := g.Get(request.WithNamespace(ctx, namespace), ref.Name, &metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	t, ok := obj.(*v1alpha1.Task)
	if !ok || t.UID != ref.UID || t.Status.Phase.Terminal() {
		return "", nil
	}
	return string(t.Status.JobUID), nil
}

func notDeleting(m metav1.Object) bool { return m.GetDeletionTimestamp() == nil }

// ensure creates an object unless one of its name exists.
func (s *storages) ensure(ctx context.Context, gr schema.GroupResource, obj runtime.Object) error {
	st, err := as[rest.StandardStorage](s, gr)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if _, err := st.Get(ctx, m.GetName(), &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	_, err = st.Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// listsFirst makes reflectors list and then watch, because here a list costs no
// more than a streamed one.
type listsFirst struct{}

// IsWatchListSemanticsUnSupported is the method by which reflectors detect that
// streamed lists are not supported.
func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

// source lists and watches a resource in all namespaces, for a reflector.
func (s *storages) source(gr schema.GroupResource) (cache.ListerWatcher, error) {
	st, err := as[rest.StandardStorage](s, gr)
	if err != nil {
		return nil, err
	}
	return reads(st, func(list runtime.Object) (runtime.Object, error) { return list, nil }, unwrap), nil
}

// reads lists and watches a resource in all namespaces. What it reads goes through list and event.
func reads(st rest.StandardStorage, list func(runtime.Object) (runtime.Object, error), event watch.FilterFunc) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			opts, err := internalOptions(o)
			if err != nil {
				return nil, err
			}
			obj, err := st.List(request.WithNamespace(ctx, ""), opts)
			if err != nil {
				return nil, err
			}
			return list(obj)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			opts, err := internalOptions(o)
			if err != nil {
				return nil, err
			}
			w, err := st.Watch(request.WithNamespace(ctx, ""), opts)
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, event), nil
		},
	}, listsFirst{})
}

// unwrap returns the object inside the wrapper with which the storage lets all
// watches share an encoding.
func unwrap(e watch.Event) (watch.Event, bool) {
	if shared, ok := e.Object.(runtime.CacheableObject); ok {
		e.Object = shared.GetObject()
	}
	return e, true
}

func internalOptions(o metav1.ListOptions) (*metainternal.ListOptions, error) {
	var opts metainternal.ListOptions
	err := metainternal.Convert_v1_ListOptions_To_internalversion_ListOptions(&o, &opts, nil)
	return &opts, err
}

func (s *storages) rbacSources() (rbac.Sources, error) {
	var out rbac.Sources
	for name, dst := range map[string]*cache.ListerWatcher{
		"roles": &out.Roles, "rolebindings": &out.RoleBindings,
		"clusterroles": &out.ClusterRoles, "clusterrolebindings": &out.ClusterRoleBindings,
	} {
		src, err := s.source(rbacv1.Resource(name))
		if err != nil {
			return out, err
		}
		*dst = src
	}
	return out, nil
}

func (s *storages) rbacClients() (roles rbac.Client[*rbacv1.ClusterRole], bindings rbac.Client[*rbacv1.ClusterRoleBinding], err error) {
	r, err := as[rest.StandardStorage](s, rbacv1.Resource("clusterroles"))
	if err != nil {
		return roles, bindings, err
	}
	b, err := as[rest.StandardStorage](s, rbacv1.Resource("clusterrolebindings"))
	return client[*rbacv1.ClusterRole](r), client[*rbacv1.ClusterRoleBinding](b), err
}

// client uses a storage for objects of one kind.
func client[T resource.Object](st rest.StandardStorage) rbac.Client[T] {
	to := func(obj runtime.Object, err error) (T, error) {
		o, _ := obj.(T)
		return o, err
	}
	return rbac.Client[T]{
		Get: func(ctx context.Context, name string) (T, error) {
			return to(st.Get(ctx, name, &metav1.GetOptions{}))
		},
		Create: func(ctx context.Context, obj T) (T, error) {
			return to(st.Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}))
		},
		Update: func(ctx context.Context, obj T) (T, error) {
			out, _, err := st.Update(ctx, obj.GetName(), rest.DefaultUpdatedObjectInfo(obj),
				rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			return to(out, err)
		},
		Delete: func(ctx context.Context, name string) error {
			_, _, err := st.Delete(ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			return err
		},
	}
}
