// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router tests the shared router from outside: over real HTTP, with tokens that a real API server issued and
// reviews, and with the vendors' own clients. Only the installations behind it are stand-ins: servers that speak both APIs.
package router

import (
	"encoding/base64"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// issuer is an API server that issues and reviews tokens.
type issuer struct {
	host.Host
	cached bool // it caches valid tokens itself, for some seconds
}

// issuing returns our own standalone server.
func issuing(t *testing.T) *issuer {
	t.Helper()
	return &issuer{Host: standalone.Start(t).Host}
}

// token makes a ServiceAccount and a token of it.
func (h *issuer) token(t *testing.T, namespace, name string, audiences ...string) string {
	t.Helper()
	h.ServiceAccount(t, namespace, name)
	return h.TokenOf(t, namespace, name, authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To[int64](3600)})
}

// kubeconfig returns the router's kubeconfig, of a ServiceAccount whose only permission is the one that the router needs.
func (h *issuer) kubeconfig(t *testing.T) string {
	t.Helper()
	const namespace, name, role = "platform-system", "platform-router", "platform:router-test"
	token := h.token(t, namespace, name)
	h.Role(t, role, rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}})
	h.Bind(t, "", role, host.Account(namespace, name))
	return host.Kubeconfig(t, h.With(token), "")
}

// awaitReviews waits until the host lets the router review tokens: authorizers learn of a new binding by a watch.
func (h *issuer) awaitReviews(t *testing.T, kubeconfig string) {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the router's permission", func() bool {
		_, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: "a.b.c"},
		}, metav1.CreateOptions{})
		return err == nil
	})
}

// forgedToken has the form of a token but no valid signature.
func forgedToken(namespace, name string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"RS256","kid":"forged"}`) + "." +
		part(fmt.Sprintf(`{"iss":"https://kubernetes.default.svc","sub":"system:serviceaccount:%s:%s"}`, namespace, name)) + "." + part("forged")
}
