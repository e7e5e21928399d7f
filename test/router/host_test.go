// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router tests the shared router from outside: over real HTTP, with tokens that a real API server issued and
// reviews, and with the vendors' own clients. Only the installations behind it are stand-ins: servers that speak both APIs.
package router

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/test/integration"
)

// host is an API server that issues and reviews tokens.
type host struct {
	admin  *rest.Config
	client kubernetes.Interface
	cached bool // it caches valid tokens itself, for some seconds
}

func newHost(t *testing.T, admin *rest.Config) *host {
	t.Helper()
	admin = rest.CopyConfig(admin)
	admin.QPS = -1
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	return &host{admin: admin, client: client}
}

// standalone returns our own standalone host.
func standalone(t *testing.T) *host {
	t.Helper()
	return newHost(t, integration.Start(t).Admin)
}

// account makes a ServiceAccount and returns its name.
func (h *host) account(t *testing.T, namespace, name string) string {
	t.Helper()
	_, err := h.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err = h.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return name
}

// token makes a ServiceAccount and a token of it.
func (h *host) token(t *testing.T, namespace, name string, audiences ...string) string {
	t.Helper()
	h.account(t, namespace, name)
	out, err := h.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To[int64](3600)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Status.Token
}

// kubeconfig returns the router's kubeconfig, of a ServiceAccount whose only permission is the one that the router needs.
func (h *host) kubeconfig(t *testing.T) string {
	t.Helper()
	const namespace, name = "platform-system", "platform-router"
	token := h.token(t, namespace, name)
	_, err := h.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "platform:router-test"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err = h.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "platform:router-test"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform:router-test"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return h.kubeconfigOf(t, token)
}

// kubeconfigOf is a kubeconfig file with a token.
func (h *host) kubeconfigOf(t *testing.T, token string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	ca := h.admin.CAData
	if len(ca) == 0 && h.admin.CAFile != "" {
		data, err := os.ReadFile(h.admin.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		ca = data
	}
	c.Clusters["host"] = &clientcmdapi.Cluster{Server: h.admin.Host, CertificateAuthorityData: ca}
	c.AuthInfos["router"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["router"] = &clientcmdapi.Context{Cluster: "host", AuthInfo: "router"}
	c.CurrentContext = "router"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitReviews waits until the host lets the router review tokens: authorizers learn of a new binding by a watch.
func (h *host) awaitReviews(t *testing.T, kubeconfig string) {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the router's permission", func(t *testing.T) bool {
		_, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: "a.b.c"},
		}, metav1.CreateOptions{})
		return err == nil
	})
}

// await polls until a condition holds, for a state of another process or goroutine that cannot be watched.
func await(t *testing.T, what string, ok func(t *testing.T) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); !ok(t); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s did not come", what)
		}
	}
}

// forgedToken has the form of a token but no valid signature.
func forgedToken(namespace, name string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"RS256","kid":"forged"}`) + "." +
		part(fmt.Sprintf(`{"iss":"https://kubernetes.default.svc","sub":"system:serviceaccount:%s:%s"}`, namespace, name)) + "." + part("forged")
}
