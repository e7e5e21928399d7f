// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExposeLoopback makes a Service, and its namespace if that is missing, for a server
// that the test runs at c.Address. It returns the port that an APIService must name.
// The server's certificate must be valid for NAME.NAMESPACE.svc. The Service is
// deleted after the test.
func (c *Cluster) ExposeLoopback(t testing.TB, namespace, name string, port int) int {
	t.Helper()
	ctx, client := context.WithoutCancel(t.Context()), c.Client(t)
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: name}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	if c.node {
		// kube-apiserver routes to endpoints itself there, and refuses names
		service.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}
	}
	if _, err := client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete service %s: %v", name, err)
		}
	})
	if !c.node {
		return port
	}
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{c.Address}}},
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port))}},
	}
	if _, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return 443
}

// APIService is the registration of an aggregated API server that the test runs.
type APIService struct {
	Group, Version     string
	Namespace, Service string // of the Service
	Port               int    // of the server, at Cluster.Address
	CABundle           []byte // PEM; empty when the server itself adds it
}

// Register exposes an aggregated API server and registers it, until the end of
// the test. It returns the name of the registration.
func (c *Cluster) Register(t testing.TB, s APIService) string {
	t.Helper()
	port := c.ExposeLoopback(t, s.Namespace, s.Service, s.Port)
	name := s.Version + "." + s.Group
	spec := map[string]any{
		"group": s.Group, "version": s.Version, "groupPriorityMinimum": 1000, "versionPriority": 15,
		"service": map[string]any{"namespace": s.Namespace, "name": s.Service, "port": port},
	}
	if len(s.CABundle) > 0 {
		spec["caBundle"] = s.CABundle
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/apiregistration.k8s.io/v1/apiservices"
	ctx, client := context.WithoutCancel(t.Context()), c.Client(t).CoreV1().RESTClient()
	if err := client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error(); err != nil {
		t.Fatalf("register %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := client.Delete().AbsPath(path, name).Do(ctx).Error(); err != nil {
			t.Errorf("delete apiservice %s: %v", name, err)
		}
	})
	return name
}

// AwaitAvailable waits until kube-apiserver can reach a registered server.
func (c *Cluster) AwaitAvailable(t testing.TB, name string) {
	t.Helper()
	c.Kubectl(t, "wait", "--for=condition=Available", "--timeout=300s", "apiservice/"+name)
}
