// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/install"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/apiserver"
	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/pkg/host"
	"github.com/platform-ai/platform/pkg/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// server is the host alone, served over TLS from a folder, with plain kept
// tasks beside it.
type server struct {
	t     *testing.T
	dir   string
	clock clock.WithTicker
	host  *host.Host
	url   string
	stop  func()
}

// tasks are stored like any other kind; what makes them tasks is not of
// interest here.
func tasks() resource.Resource {
	return &resource.Definition[*v1alpha1.Task]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("tasks"),
		Kind:     "Task", Singular: "task",
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
	e := must(engine.Open(ctx, engine.Options{Dir: filepath.Join(s.dir, "store")}))(t)
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

// restart serves the same folder again, on another port.
func (s *server) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// admin is the administrator's configuration.
func (s *server) admin() *rest.Config {
	c := s.host.PKI().AdminConfig(s.url)
	c.QPS = -1
	return c
}

// bearer is the configuration of somebody with a token.
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
