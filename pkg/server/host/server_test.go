// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/server/apiserver"
	"github.com/platform-ai/platform/pkg/server/host"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/object"
	"github.com/platform-ai/platform/test/kit"
)

// server is the host alone, served over TLS from a directory, together with
// plain stored tasks.
type server struct {
	t     *testing.T
	dir   string
	clock clock.WithTicker
	host  *host.Host
	url   string
	stop  func()
}

// tasks are stored like any other kind. Their other behaviour does not matter
// here.
func tasks() resource.Resource {
	return &resource.Definition[*v1alpha1.Task]{
		Unguarded: true,
		Resource:  v1alpha1.SchemeGroupVersion.WithResource("tasks"),
		Kind:      "Task", Singular: "task",
		Roles: resource.Roles{Readers: resource.Users(resource.Worker), Writers: resource.Writers()},
		Shape: resource.Kept[*v1alpha1.Task]{},
	}
}

func start(t *testing.T, dir string, c clock.WithTicker) *server {
	t.Helper()
	s := &server{t: t, dir: dir, clock: c}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (s *server) start() {
	t := s.t
	t.Helper()
	_, base := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(base)
	e := must(local.Open(ctx, local.Options{Dir: filepath.Join(s.dir, "store")}))(t)
	db := must(object.Open(ctx, e, object.Options{}))(t)
	s.host = must(host.New(host.Config{Dir: filepath.Join(s.dir, "pki"), Clock: s.clock}))(t)
	scheme := must(apiserver.NewScheme(host.Install, install.Install))(t)

	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.url = "https://" + l.Addr().String()
	g := apiserver.NewGeneric(scheme)
	certFile, keyFile := s.host.PKI().ServingFiles()
	cert := must(dynamiccertificates.NewDynamicServingContentFromFiles("serving", certFile, keyFile))(t)
	g.SecureServing = &genericapiserver.SecureServingInfo{Listener: l, Cert: cert}
	g.ExternalAddress = l.Addr().String()
	g.LoopbackClientConfig = &rest.Config{
		Host: s.url, BearerToken: string(uuid.NewUUID()), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.host.PKI().CAPEM()},
	}
	g.RESTOptionsGetter = object.NewRESTOptionsGetter(object.RESTOptions{
		DB: db, Scheme: scheme, Codecs: apiserver.Codecs(scheme), Transformers: s.host.Transformers(),
	})
	if err := s.host.Apply(g); err != nil {
		t.Fatal(err)
	}
	c := apiserver.Config{
		Generic: g, Scheme: scheme, Resources: s.host.Resources(tasks()), Immortal: host.Namespaces(),
		Definitions: []common.GetOpenAPIDefinitions{openapi.GetOpenAPIDefinitions},
		Admission:   must(s.host.Admission())(t),
	}
	srv := must(must(c.Complete())(t).New(ctx))(t)
	if err := s.host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- srv.Run(ctx) }()
	go func() { done <- s.host.Run(ctx, nil) }()
	s.stop = func() {
		s.stop = func() {}
		cancel()
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		db.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// restart serves the same directory again, on another port.
func (s *server) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// admin returns the administrator's configuration.
func (s *server) admin() *rest.Config {
	c := s.host.PKI().AdminConfig(s.url)
	c.QPS = -1
	return c
}

// bearer returns the configuration of a user with a token.
func (s *server) bearer(token string) *rest.Config {
	return &rest.Config{
		Host: s.url, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.host.PKI().CAPEM()},
	}
}

func (s *server) client(c *rest.Config) kubernetes.Interface {
	s.t.Helper()
	return must(kubernetes.NewForConfig(c))(s.t)
}

func (s *server) dynamic(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	s.t.Helper()
	return must(dynamic.NewForConfig(s.admin()))(s.t).Resource(gvr).Namespace(namespace)
}

// createTask creates a task with the given finalizers and returns its UID.
func (s *server) createTask(namespace, name string, finalizers ...string) types.UID {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "spec": map[string]any{"type": "ai"}}}
	o.SetName(name)
	o.SetFinalizers(finalizers)
	made := must(s.dynamic(v1alpha1.SchemeGroupVersion.WithResource("tasks"), namespace).Create(s.t.Context(), o, metav1.CreateOptions{}))(s.t)
	return made.GetUID()
}

// releaseTask removes the finalizers of a task.
func (s *server) releaseTask(namespace, name string) {
	s.t.Helper()
	must(s.dynamic(v1alpha1.SchemeGroupVersion.WithResource("tasks"), namespace).Patch(s.t.Context(), name,
		types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(s.t)
}

func (s *server) deleteTask(namespace, name string) {
	s.t.Helper()
	if err := s.dynamic(v1alpha1.SchemeGroupVersion.WithResource("tasks"), namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// left returns everything in a namespace, of all listable resources of the
// server.
func (s *server) left(namespace string) []string {
	s.t.Helper()
	lists := must(s.client(s.admin()).Discovery().ServerPreferredNamespacedResources())(s.t)
	var out []string
	for _, l := range lists {
		gv := must(schema.ParseGroupVersion(l.GroupVersion))(s.t)
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			items := must(s.dynamic(gv.WithResource(r.Name), namespace).List(s.t.Context(), metav1.ListOptions{}))(s.t)
			for _, i := range items.Items {
				out = append(out, r.Name+"/"+i.GetName())
			}
		}
	}
	return out
}

// awaitNamespace waits until a namespace satisfies ok.
func (s *server) awaitNamespace(k kubernetes.Interface, name string, ok func(*corev1.Namespace) bool) {
	s.t.Helper()
	w := must(k.CoreV1().Namespaces().Watch(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name}))(s.t)
	defer w.Stop()
	ctx, stop := context.WithTimeout(s.t.Context(), kit.Patience)
	defer stop()
	var last *corev1.Namespace
	for {
		select {
		case e := <-w.ResultChan():
			if ns, is := e.Object.(*corev1.Namespace); is {
				if last = ns; ok(ns) {
					return
				}
			}
		case <-ctx.Done():
			s.t.Fatalf("namespace %s is still %v", name, last)
		}
	}
}

// awaitDefaultAccount waits until a namespace has its ServiceAccount "default".
func (s *server) awaitDefaultAccount(k kubernetes.Interface, namespace string) {
	s.t.Helper()
	w := must(k.CoreV1().ServiceAccounts(namespace).Watch(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=default"}))(s.t)
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Added {
			return
		}
	}
	s.t.Fatalf("the watch of namespace %s ended", namespace)
}

// pool returns a pool with the server's authority.
func pool(t *testing.T, s *server) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(s.host.PKI().CAPEM()) {
		t.Fatal("no certificate")
	}
	return p
}

// get reads a path as the administrator.
func (s *server) get(path, accept string) (int, string) {
	s.t.Helper()
	c := must(rest.HTTPClientFor(s.admin()))(s.t)
	req := must(http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil))(s.t)
	req.Header.Set("Accept", accept)
	resp, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, string(must(io.ReadAll(resp.Body))(s.t))
}
