// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregated tests platform-apiserver as a process behind a real kube-apiserver: identities, permissions,
// admission, priority and fairness, outages and restarts. It also compares the platform's kinds with custom resources of the same types.
package aggregated

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/kit/host"
)

const (
	system     = "platform-system"
	service    = "platform-apiserver"
	apiService = "v1alpha1.core.platform.ai"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	tasks       = schema.GroupVersionResource{Group: "core.platform.ai", Version: "v1alpha1", Resource: "tasks"}
)

// registration lets a control plane without nodes reach a process on loopback.
const registration = `
apiVersion: v1
kind: Namespace
metadata: {name: platform-system}
---
apiVersion: v1
kind: Service
metadata: {name: platform-apiserver, namespace: platform-system}
spec: {type: ExternalName, externalName: localhost, ports: [{name: https, port: PORT}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: platform-apiserver-ca, namespace: platform-system}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.core.platform.ai}
spec:
  group: core.platform.ai
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {namespace: platform-system, name: platform-apiserver, port: PORT}
`

// at returns manifests with the port of a server.
func at(manifests, port string) string { return strings.ReplaceAll(manifests, "PORT", port) }

// Server is a platform-apiserver on a folder and a port of its own, registered with the cluster for its group.
type Server struct {
	*kit.Process
	host.Host // kube-apiserver
	t         testing.TB
	c         *cluster.Cluster
	DataDir   string
	args      []string
	port      string
}

// Start starts a server and waits until the cluster finds it available. It is stopped at the end of the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := New(t, args...)
	s.Run()
	s.AwaitAvailable("True")
	s.AwaitDiscovered("Current")
	return s
}

// shared is what all servers of this test binary have in common: a port, and the roles of the manifests.
var shared struct {
	once, roles sync.Once
	port        string
}

// port is the port of the servers of this test binary.
func port(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.port = kit.FreePort(t) })
	return shared.port
}

// New registers a server and does not start it. The servers of a test binary run one after the other and share one folder
// and one port, so the cluster's controllers, which watch, see one server that is sometimes away.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	c := cluster.Control(t)
	return newServer(t, c, filepath.Join(c.Dir, "aggregated"), port(t), args...)
}

// newServer is like New, with a folder and a port of its own.
func newServer(t testing.TB, c *cluster.Cluster, dir, port string, args ...string) *Server {
	t.Helper()
	s := &Server{Host: c.Host, t: t, c: c, DataDir: dir, port: port}
	s.apply(at(registration, s.port))
	shared.roles.Do(func() {
		manifests := filepath.Join("..", "..", "manifests", "base")
		s.c.Kubectl(t, "apply", "-f", filepath.Join(manifests, "apiserver-rbac.yaml"), "-f", filepath.Join(manifests, "clusterroles.yaml"))
	})
	s.args = append([]string{
		"--data-dir", s.DataDir, "--bind-address", "127.0.0.1", "--secure-port", s.port, "--namespace", system,
		"--kubeconfig", host.Kubeconfig(t, s.account(system, service), ""),
	}, args...)
	return s
}

// Run starts the process and waits until it is ready; it may have been stopped or killed before.
func (s *Server) Run() {
	s.t.Helper()
	s.Process = kit.Start(s.t, nil, kit.Bin(s.t, "platform-apiserver"), s.args...)
	s.Await(s.t, "is ready after")
}

// AwaitAvailable waits until the cluster reports the server's availability as given, True or False, and acts on it.
func (s *Server) AwaitAvailable(status string) {
	s.t.Helper()
	s.await(apiServices, "", apiService, func(u *unstructured.Unstructured) bool { return condition(u, "Available") == status })
	kit.Await(s.t, "availability "+status+" in effect", func() bool {
		code, _ := s.get(s.Admin, "/apis/core.platform.ai/v1alpha1")
		return (code == http.StatusOK) == (status == "True")
	})
}

// AwaitDiscovered waits until discovery reports the group's resources as Current or Stale.
func (s *Server) AwaitDiscovered(freshness string) {
	s.t.Helper()
	kit.Await(s.t, "discovery "+freshness, func() bool {
		_, body := s.get(s.Admin, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		var groups apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal([]byte(body), &groups); err != nil {
			s.t.Fatal(err)
		}
		return slices.ContainsFunc(groups.Items, func(g apidiscovery.APIGroupDiscovery) bool {
			return g.Name == tasks.Group && len(g.Versions) == 1 && string(g.Versions[0].Freshness) == freshness
		})
	})
}

// await waits until an object exists and is as wanted.
func (s *Server) await(gvr schema.GroupVersionResource, namespace, name string, wanted func(*unstructured.Unstructured) bool) {
	s.t.Helper()
	c := s.Dynamic(s.t).Resource(gvr).Namespace(namespace)
	one := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		return o
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, one(o)) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, one(o))
		},
	}
	_, err := watchtools.UntilWithSync(s.t.Context(), lw, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		return ok && e.Type != watch.Deleted && wanted(u), nil
	})
	if err != nil {
		s.t.Fatalf("%s %s: %v", gvr.Resource, name, err)
	}
}

// awaitGone waits until an object no longer exists.
func (s *Server) awaitGone(gvr schema.GroupVersionResource, namespace, name string) {
	s.t.Helper()
	args := []string{"wait", "--for=delete", "--timeout=3m", gvr.GroupResource().String(), name}
	s.c.Kubectl(s.t, append(args, "--namespace="+namespace)...)
}

// servedSerial returns the serial number of the certificate that the server presents.
func (s *Server) servedSerial() string {
	s.t.Helper()
	c, err := tls.Dial("tcp", "127.0.0.1:"+s.port, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// condition returns the status of one of an object's conditions.
func condition(u *unstructured.Unstructured, name string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == name {
			return c["status"].(string)
		}
	}
	return "Unknown"
}

// apply applies objects as the administrator.
func (s *Server) apply(objects string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.c.Kubectl(s.t, "apply", "-f", file)
}

// dynamic returns a client of somebody for any kind.
func (s *Server) dynamic(c *rest.Config) dynamic.Interface {
	s.t.Helper()
	return kit.Must[*dynamic.DynamicClient](s.t)(dynamic.NewForConfig(c))
}

// get requests a path; header has pairs of names and values.
func (s *Server) get(c *rest.Config, path string, header ...string) (code int, body string) {
	s.t.Helper()
	a := s.Ask(s.t, c, http.MethodGet, path, "", header...)
	return a.Code, a.Body
}

// namespace makes a namespace that is deleted at the end of the test.
func (s *Server) namespace(name string) {
	s.t.Helper()
	namespaces := s.Kubernetes(s.t).CoreV1().Namespaces()
	if _, err := namespaces.Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := namespaces.Delete(context.WithoutCancel(s.t.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.t.Errorf("delete namespace %s: %v", name, err)
		}
	})
}

// task returns a container task that nobody runs.
func task(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Task", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"type": "container", "command": []any{"true"}},
	}}
}

func serverTLS(t testing.TB, certPEM, keyPEM []byte) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}
