// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestReadsOfStrangers: whoever has no token of a gateway does not have its Secret read at will, be the Secret there or not, seen by the
// controller or not. Whoever has the token is not affected by them.
func TestReadsOfStrangers(t *testing.T) {
	t.Parallel()
	const many = 100
	g := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "chat", UID: "u"}, Spec: v1alpha1.GatewaySpec{InboundAuthRef: v1alpha1.KeyReference{Name: "in", Key: "token"}}}
	secret := func(version, value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "in", ResourceVersion: version, Labels: map[string]string{v1alpha1.LabelGatewayInboundAuth: "true"},
				Annotations: map[string]string{v1alpha1.AnnotationGatewayName: "chat"},
			},
			Data: map[string][]byte{"token": []byte(value)},
		}
	}
	host, c := fake.NewClientset(), clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	h := &Hub{o: Options{Host: host, Clock: c}, tokens: newTokens(c)}
	ask := func(token string) error {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return h.check(r, g)
	}
	flood := func(when string, refused func(error) bool) {
		t.Helper()
		host.ClearActions()
		for i := range many {
			if err := ask([]string{"wrong", ""}[i%2]); err == nil || !refused(err) {
				t.Fatalf("%s: %v", when, err)
			}
		}
		if n := len(host.Actions()); n > readsPerSecond {
			t.Errorf("%s: the Secret was read %d times for %d strangers", when, n, many)
		}
		c.SetTime(c.Now().Add(time.Second))
	}
	known := func(err error) bool { return !apierrors.IsServiceUnavailable(err) }
	flood("without a Secret", apierrors.IsServiceUnavailable)
	if err := host.Tracker().Add(secret("1", "first")); err != nil {
		t.Fatal(err)
	}
	if err := ask("first"); err != nil {
		t.Errorf("before the controller has seen the Secret: %v", err)
	}
	flood("before the controller has seen the Secret", known)
	g.Status.ObservedInboundAuthSecretVersion = "1"
	flood("with a known Secret", known)
	if err := host.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), secret("2", "second"), "default"); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"second", "first"} {
		if err := ask(token); err != nil {
			t.Errorf("after the Secret was changed, %s: %v", token, err)
		}
	}
	flood("after the Secret was changed", known)
	for _, token := range []string{"second", "first"} {
		if err := ask(token); err != nil {
			t.Errorf("after a flood, %s: %v", token, err)
		}
	}
	g.Status.ObservedInboundAuthSecretVersion = "2"
	if err := ask("first"); err == nil || !known(err) {
		t.Errorf("the old token, after the controller has seen the new one: %v", err)
	}
	if err := ask("second"); err != nil {
		t.Error(err)
	}
}
