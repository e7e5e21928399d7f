// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// TestCoolDown: the controller waits for the end of a cool-down, ends it once, and does not touch one that goes on.
func TestCoolDown(t *testing.T) {
	now := time.Unix(1000, 0)
	v := validate{now: func() time.Time { return now }, secret: func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
		return &corev1.Secret{Data: map[string][]byte{"api-key": []byte("k")}}, nil
	}}
	p := &v1alpha1.Provider{Status: v1alpha1.ProviderStatus{CoolDownUntil: &metav1.Time{Time: now.Add(40 * time.Second)}}}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonModelRateLimited}}
	if w, ok := errors.AsType[step.Wait](v.do(t.Context(), p)); !ok || w.After != 40*time.Second || p.Status.CoolDownUntil == nil || meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionAvailable) {
		t.Errorf("wait %+v, status %+v", w, p.Status)
	}
	now = now.Add(40 * time.Second)
	if w, ok := errors.AsType[step.Wait](v.do(t.Context(), p)); !ok || w.After != recheckReady || p.Status.CoolDownUntil != nil || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionAvailable) {
		t.Errorf("wait %+v, status %+v", w, p.Status)
	}
}

func TestValidate(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s")
	for _, tc := range []struct {
		name    string
		spec    v1alpha1.ProviderSpec
		data    map[string][]byte
		err     error
		message string
		wait    time.Duration
	}{
		{"default key", v1alpha1.ProviderSpec{}, map[string][]byte{"api-key": []byte("k")}, nil, "", recheckReady},
		{"other key", v1alpha1.ProviderSpec{SecretRef: v1alpha1.ProviderSecretReference{Key: "x"}}, map[string][]byte{"x": []byte("k")}, nil, "", recheckReady},
		{"no key", v1alpha1.ProviderSpec{SecretRef: v1alpha1.ProviderSecretReference{Name: "s"}}, map[string][]byte{"x": []byte("k")}, nil, `Secret "s" has no key "api-key"`, recheckNotReady},
		{"empty key", v1alpha1.ProviderSpec{SecretRef: v1alpha1.ProviderSecretReference{Name: "s"}}, map[string][]byte{"api-key": nil}, nil, `Secret "s" has no key "api-key"`, recheckNotReady},
		{"no secret", v1alpha1.ProviderSpec{SecretRef: v1alpha1.ProviderSecretReference{Name: "s"}}, nil, gone, `Secret "s" does not exist`, recheckNotReady},
		{"azure", v1alpha1.ProviderSpec{Type: v1alpha1.ProviderAzureOpenAI}, map[string][]byte{"api-key": []byte("k")}, nil, "[spec.baseURL: Required value: type azure-openai needs it, spec.azure: Required value: type azure-openai needs it]", recheckNotReady},
		{"unknown", v1alpha1.ProviderSpec{}, nil, errors.New("away"), "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			v := validate{now: func() time.Time { return now }, secret: func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
				return &corev1.Secret{Data: tc.data}, tc.err
			}}
			p := &v1alpha1.Provider{Spec: tc.spec}
			p.Generation = 4
			err := v.do(t.Context(), p)
			w, ok := errors.AsType[step.Wait](err)
			if ok != (tc.wait > 0) || w.After != tc.wait {
				t.Fatalf("outcome = %v", err)
			}
			if !ok {
				return
			}
			ready := tc.message == ""
			c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
			if p.Status.Ready != ready || p.Status.Message != tc.message || p.Status.ObservedGeneration != 4 || c == nil ||
				c.Reason != map[bool]string{true: "ValidationSucceeded", false: "ValidationFailed"}[ready] {
				t.Errorf("status = %+v", p.Status)
			}
			before := p.Status.DeepCopy()
			now = now.Add(time.Hour)
			_ = v.do(t.Context(), p)
			if !before.LastValidated.Equal(p.Status.LastValidated) {
				t.Error("a look that found nothing new changed the status")
			}
		})
	}
}

// TestSecretHosts: a key is not sent, not even to find out whether it works, where its Secret does not permit that.
func TestSecretHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		require     bool
		baseURL     string
		reason      string // empty if the endpoint is asked
	}{
		"no rule":           {baseURL: "https://evil.example/v1"},
		"required":          {require: true, reason: v1alpha1.ReasonSecretHostNotAllowed},
		"permitted":         {annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: "api.openai.com"}, require: true},
		"elsewhere":         {annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: "api.openai.com"}, baseURL: "https://evil.example/v1", reason: v1alpha1.ReasonSecretHostNotAllowed},
		"a wrong rule":      {annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: "a/b"}, reason: v1alpha1.ReasonSecretHostNotAllowed},
		"no usable address": {annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: "*"}, baseURL: "x", reason: v1alpha1.ReasonValidationFailed},
	} {
		asked := false
		v := validate{now: time.Now, requireHosts: tc.require, secret: func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Data: map[string][]byte{"api-key": []byte("the-value")}}, nil
		}, probe: func(context.Context, *v1alpha1.Provider, string, string) answer {
			asked = true
			return answer{found: "fine"}
		}}
		p := &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, BaseURL: tc.baseURL, Probe: true}}
		_ = v.do(t.Context(), p) // a wait
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if asked != (tc.reason == "") || p.Status.Ready != asked || !asked && c.Reason != tc.reason || strings.Contains(c.Message, "the-value") {
			t.Errorf("%s: asked %t, %+v", name, asked, c)
		}
	}
}
