// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host is an API server as its administrator sees it: the standalone server of kit/standalone, the cluster of kit/cluster, or
// any other whose client configuration a test has.
package host

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// Host is an API server.
type Host struct {
	// Admin is the administrator's client configuration.
	Admin *rest.Config
	// RESTURL is the address of the listener without TLS; empty if there is none.
	RESTURL string
}

// Of returns the API server of an administrator.
func Of(admin *rest.Config, restURL string) Host {
	admin = rest.CopyConfig(admin)
	admin.QPS = -1 // tests are not slowed down by their own client
	return Host{Admin: admin, RESTURL: restURL}
}

// Config is a copy of the administrator's client configuration, which the caller may change.
func (h Host) Config() *rest.Config { return rest.CopyConfig(h.Admin) }

// Anonymous is a client configuration without credentials.
func (h Host) Anonymous() *rest.Config { return rest.AnonymousClientConfig(h.Admin) }

// With is the client configuration of the holder of a token.
func (h Host) With(token string) *rest.Config {
	c := h.Anonymous()
	c.BearerToken = token
	return c
}

// Kubernetes returns the administrator's client for the kinds of Kubernetes.
func (h Host) Kubernetes(t testing.TB) kubernetes.Interface {
	t.Helper()
	return kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(h.Config()))
}

// Core returns the administrator's client for the kinds of the platform.
func (h Host) Core(t testing.TB) core.CoreV1alpha1Interface {
	t.Helper()
	return CoreOf(t, h.Config())
}

// CoreOf returns a client for the kinds of the platform.
func CoreOf(t testing.TB, c *rest.Config) core.CoreV1alpha1Interface {
	t.Helper()
	return kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(c)).CoreV1alpha1()
}

// Dynamic returns the administrator's client for any kind.
func (h Host) Dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	return kit.Must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(h.Config()))
}

// Namespaces makes the namespaces that do not exist yet.
func (h Host) Namespaces(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := h.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// Kubeconfig writes the kubeconfig of a client configuration into a file that is deleted after the test. Namespace is that of its
// context.
func Kubeconfig(t testing.TB, c *rest.Config, namespace string) string {
	t.Helper()
	ca := c.CAData
	if len(ca) == 0 && c.CAFile != "" {
		ca = kit.Must[[]byte](t)(os.ReadFile(c.CAFile))
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["host"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: ca}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		Token:                 c.BearerToken,
		ClientCertificateData: c.CertData, ClientCertificate: c.CertFile, ClientKeyData: c.KeyData, ClientKey: c.KeyFile,
	}
	file.Contexts["host"] = &clientcmdapi.Context{Cluster: "host", AuthInfo: "user", Namespace: namespace}
	file.CurrentContext = "host"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}
