// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

func TestMain(m *testing.M) { Main(m) }

// A ServiceAccount may do what RBAC allows, and nothing else.
func TestRBAC(t *testing.T) {
	c := Control(t)
	ctx, ns := t.Context(), c.Namespace(t)
	reader, err := kubernetes.NewForConfig(c.ServiceAccountConfig(t, ns, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list without a role: %v, want forbidden", err)
	}
	admin := c.Client(t).RbacV1()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}
	if _, err := admin.Roles(ns).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "reader"}},
	}
	if _, err := admin.RoleBindings(ns).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The authorizer learns of roles by a watch, so kubectl asks until it knows the new one.
	c.MustShell(t, "until kubectl auth can-i list configmaps -n "+ns+" --as system:serviceaccount:"+ns+":reader; do :; done")
	if _, err := reader.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("list with the role: %v", err)
	}
	if err := reader.CoreV1().ConfigMaps(ns).Delete(ctx, "kube-root-ca.crt", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete: %v, want forbidden", err)
	}
	kubeconfig := c.ServiceAccountKubeconfig(t, ns, "reader")
	who := c.MustShell(t, "kubectl --kubeconfig "+kubeconfig+" auth whoami -o jsonpath={.status.userInfo.username}")
	if want := "system:serviceaccount:" + ns + ":reader"; who != want {
		t.Errorf("the kubeconfig is for %q, want %q", who, want)
	}
}

// The controllers run: a Job makes its Pod, and the Pod is deleted with the Job.
func TestJob(t *testing.T) {
	c := Control(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "-n", ns, "create", "job", "work", "--image=platform.ai/test-shell:dev")
	c.Kubectl(t, "-n", ns, "wait", "--for=create", "pod", "--selector=job-name=work", "--timeout=60s")
	pod := strings.Fields(c.Kubectl(t, "-n", ns, "get", "pods", "-o", `jsonpath={.items[0].metadata.name} {.items[0].metadata.ownerReferences[0].name}`))
	if len(pod) != 2 || pod[1] != "work" {
		t.Fatalf("pod and owner: %q", pod)
	}
	c.Kubectl(t, "-n", ns, "delete", "job", "work", "--cascade=background")
	c.Kubectl(t, "-n", ns, "wait", "--for=delete", "pod/"+pod[0], "--timeout=60s")
}

// A server of the test becomes part of kube-apiserver's API, for its users.
func TestRegister(t *testing.T) {
	c := Control(t)
	ca, port := serve(t, c, "whoami.aggregated.svc")
	name := c.Register(t, APIService{Group: "test.platform.ai", Version: "v1", Namespace: "aggregated", Service: "whoami", Port: port, CABundle: ca})
	c.AwaitAvailable(t, name)
	if got := c.Kubectl(t, "get", "--raw", "/apis/test.platform.ai/v1/me"); got != "kubernetes-admin" {
		t.Errorf("the aggregated server was asked by %q", got)
	}
	if out := c.Kubectl(t, "api-resources", "--api-group=test.platform.ai", "-o", "name"); strings.TrimSpace(out) != "things.test.platform.ai" {
		t.Errorf("resources of the group: %q", out)
	}
}

// serve starts a server that answers only kube-apiserver's aggregator, with the name of the caller.
func serve(t *testing.T, c *Cluster, host string) (ca []byte, port int) {
	t.Helper()
	crt, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	front, err := os.ReadFile(filepath.Join(c.Dir, "pki", "front-proxy-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(front)
	server := httptest.NewUnstartedServer(http.HandlerFunc(whoami))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	tcp, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("no port in %s", server.Listener.Addr())
	}
	return crt, tcp.Port
}

func whoami(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis/test.platform.ai/v1" {
		_, _ = w.Write([]byte(r.Header.Get("X-Remote-User")))
		return
	}
	body, err := json.Marshal(metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "test.platform.ai/v1",
		APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Verbs: []string{"get"}}},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
