// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is the resources of gateways over a store on disk, without HTTP.
type world struct {
	t       *testing.T
	o       *Options
	codecs  serializer.CodecFactory
	storage map[string]rest.Storage
	clock   *clocktesting.FakeClock
	// may decides about users; nil allows everything.
	may func(authorizer.Attributes) bool
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, o: &o, storage: map[string]rest.Storage{}, clock: clocktesting.NewFakeClock(noon)}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	check(install.Install(scheme))
	w.codecs = serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	ctx, cancel := context.WithCancel(t.Context())
	e, err := local.Open(ctx, local.Options{Dir: t.TempDir()})
	check(err)
	objects, err := object.Open(ctx, e, object.Options{})
	check(err)
	o.Stored, o.Clock = NewStored(), w.clock
	o.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if w.may == nil || w.may(a) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	getter := object.NewRESTOptionsGetter(object.RESTOptions{DB: objects, Scheme: scheme, Codecs: w.codecs})
	for _, r := range guard.Close(&guard.Workers{}, Resources(o)) {
		check(r.Register(scheme))
		paths, err := r.Storage(ctx, resource.Config{Scheme: scheme, RESTOptions: getter, Clock: w.clock})
		check(err)
		maps.Copy(w.storage, paths)
	}
	t.Cleanup(func() {
		cancel()
		for _, s := range w.storage {
			s.Destroy()
		}
		objects.Close()
		if err := errors.Join(e.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// as is the context of a request of a user to a path of the namespace.
func (w *world) as(name, namespace, path string) context.Context {
	res, sub, _ := strings.Cut(path, "/")
	if res == "gatewayclasses" {
		namespace = ""
	}
	ctx := request.WithUser(request.WithNamespace(w.t.Context(), namespace), &user.DefaultInfo{Name: name})
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, APIGroup: v1alpha1.GroupName, APIVersion: "v1alpha1", Resource: res, Subresource: sub, Namespace: namespace,
	})
}

func (w *world) create(path string, obj runtime.Object) (runtime.Object, error) {
	namespace := "default"
	if m, ok := obj.(metav1.Object); ok && m.GetNamespace() != "" {
		namespace = m.GetNamespace()
	}
	return w.storage[path].(rest.Creater).Create(w.as("ada", namespace, path), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

// post posts an empty object of its kind to a subresource.
func (w *world) post(path, name string, o metav1.CreateOptions) (runtime.Object, error) {
	s := w.storage[path].(rest.NamedCreater)
	return s.Create(w.as("ada", "default", path), name, s.New(), rest.ValidateAllObjectFunc, &o)
}

// update changes an object; with force it is created if it is not there, as by server-side apply.
func (w *world) update(path, name string, force bool, change func(runtime.Object)) (runtime.Object, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		change(obj)
		return obj, nil
	})
	out, _, err := w.storage[path].(rest.Updater).Update(w.as("ada", "default", path), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, force, &metav1.UpdateOptions{})
	return out, err
}

// decode reads an object with its defaults.
func (w *world) decode(kind, spec string) runtime.Object {
	w.t.Helper()
	obj, err := runtime.Decode(w.codecs.UniversalDecoder(v1alpha1.SchemeGroupVersion), []byte("apiVersion: core.platform.ai/v1alpha1\nkind: "+kind+"\nmetadata: {generateName: x-}\nspec: "+spec+"\n"))
	if err != nil {
		w.t.Fatal(spec, err)
	}
	return obj
}
