// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
)

// Tokens of a real provider are accepted on the REST listener and by the Kubernetes API, with the rights of their groups,
// in one namespace.
func TestOpenIDProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := start(t, external.Options{OIDC: external.OIDC{Issuer: p.issuer, Audience: "platform", AllowedSubjects: []string{"user-?"}, Namespace: "team"}})
	s.Namespaces(t, "team", "other")
	ann := p.token("user-1", "urn:platform")
	s.awaitKeys(ann)

	code, body := s.send(http.MethodGet, "/api/v1/auth/whoami", "", "Authorization", "Bearer "+ann)
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
		t.Fatalf("whoami: %d %s", code, body)
	}
	want := map[string]any{
		"authenticated": true, "authType": "oidc", "username": "ann", "uid": "user-1", "subject": "user-1", "groups": []any{"dev"},
		"namespace": "team", "email": "ann@example.com", "issuer": p.issuer, "roles": []any{"r1", "r2"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("whoami (-want +got):\n%s", d)
	}

	const tasks = "/api/v1/tasks"
	status := func(path, token string) int {
		code, _ := s.send(http.MethodGet, path, "", "Authorization", "Bearer "+token)
		return code
	}
	if code := status(tasks, ann); code != http.StatusForbidden {
		t.Errorf("without a role: %d", code)
	}
	s.bind("", "platform-viewer", "oidc:dev") // everywhere, which does not count
	s.await(func() bool { return status(tasks, ann) == http.StatusOK })
	for path, want := range map[string]int{
		tasks: http.StatusOK, tasks + "?namespace=team": http.StatusOK, tasks + "?namespace=other": http.StatusForbidden,
		tasks + "?namespace=default": http.StatusForbidden, "/api/v1/agents?namespace=other": http.StatusForbidden,
	} {
		if code := status(path, ann); code != want && code != http.StatusNotFound {
			t.Errorf("GET %s: %d, want %d", path, code, want)
		}
	}
	if code := status(tasks, p.token("user-2", "urn:platform")); code != http.StatusForbidden {
		t.Errorf("a user of another group: %d", code)
	}
	if code, _ := s.send(http.MethodGet, tasks, "", "X-API-Key", ann); code != http.StatusOK {
		t.Errorf("the token in x-api-key: %d", code)
	}

	c := rest.AnonymousClientConfig(s.Admin)
	c.BearerToken = ann
	native, err := versioned.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := native.CoreV1alpha1().Tasks("team").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the Kubernetes API: %v", err)
	}
	for _, ns := range []string{"other", ""} {
		if _, err := native.CoreV1alpha1().Tasks(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("namespace %q of the Kubernetes API: %v", ns, err)
		}
	}
	if _, err := native.Discovery().ServerResourcesForGroupVersion("core.platform.ai/v1alpha1"); err != nil {
		t.Errorf("discovery: %v", err)
	}
	c.Impersonate = rest.ImpersonationConfig{UserName: "x"}
	if native, err = versioned.NewForConfig(c); err != nil {
		t.Fatal(err)
	}
	if _, err := native.CoreV1alpha1().Tasks("team").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("impersonation: %v", err)
	}

	// An administrator, who may impersonate anybody, cannot make up an identity of the provider.
	admin := rest.CopyConfig(s.Admin)
	admin.Impersonate = rest.ImpersonationConfig{UserName: "oidc:ann", Extra: map[string][]string{"core.platform.ai/auth-type": {"oidc"}, "core.platform.ai/auth-subject": {"user-1"}}}
	if native, err = versioned.NewForConfig(admin); err != nil {
		t.Fatal(err)
	}
	if _, err := native.CoreV1alpha1().Tasks("team").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("impersonation of an identity: %v", err)
	}
}

// Tokens that are not valid are refused, whatever made them look valid.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := start(t, external.Options{OIDC: external.OIDC{Issuer: p.issuer, Audience: "platform", AllowedSubjects: []string{"user-*"}}})
	whoami := func(header ...string) int {
		code, _ := s.send(http.MethodGet, "/api/v1/auth/whoami", "", header...)
		return code
	}
	valid := p.token("user-1", "urn:platform")
	s.awaitKeys(valid)
	parts := strings.Split(valid, ".")
	forge := func(header string, sign func(signed string) string) string {
		signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1]
		return signed + "." + sign(signed)
	}
	kid := p.keys().Keys[0].KeyID
	hmac := func() string {
		der, err := p.keys().Keys[0].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: der, KeyID: kid}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var claims map[string]any
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil {
			err = json.Unmarshal(payload, &claims)
		}
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.Signed(signer).Claims(claims).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for name, header := range map[string][]string{
		"not listed":      {"Authorization", "Bearer " + p.token("stranger", "urn:platform")},
		"wrong audience":  {"Authorization", "Bearer " + p.token("user-1", "urn:other")},
		"none":            {"Authorization", "Bearer " + forge(fmt.Sprintf(`{"alg":"none","kid":%q}`, kid), func(string) string { return "" })},
		"HS256":           {"Authorization", "Bearer " + hmac()},
		"unknown kid":     {"Authorization", "Bearer " + forge(`{"alg":"RS256","kid":"x"}`, func(string) string { return parts[2] })},
		"other signature": {"Authorization", "Bearer " + parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))},
		"100 kB":          {"Authorization", "Bearer " + valid + strings.Repeat("A", 100_000)},
		"two headers":     {"Authorization", "Bearer " + valid, "Authorization", "Bearer x"},
		"no fallback":     {"Authorization", "Bearer x.y.z", "X-API-Key", valid},
		"other header":    {"Txn-Token", valid},
		"with Txn-Token":  {"Authorization", "Bearer " + valid, "Txn-Token", "x"},
	} {
		if code := whoami(header...); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, code)
		}
	}
	short := p.token("user-1", "urn:short")
	s.await(func() bool { return whoami("Authorization", "Bearer "+short) == http.StatusUnauthorized })

	if code := whoami("Authorization", "Bearer "+valid); code != http.StatusOK {
		t.Errorf("a valid token before its key is withdrawn: %d", code)
	}
	p.rotate()
	if now := p.keys().Keys; len(now) != 1 || now[0].KeyID == kid {
		t.Fatalf("the provider did not replace its key %s: %v", kid, now)
	}
	fresh := p.token("user-1", "urn:platform")
	s.await(func() bool { return whoami("Authorization", "Bearer "+fresh) == http.StatusOK })
	if code := whoami("Authorization", "Bearer "+valid); code != http.StatusUnauthorized {
		t.Errorf("a token of a key that was withdrawn: %d", code)
	}
	p.stop()
	if code := whoami("Authorization", "Bearer "+fresh); code != http.StatusOK {
		t.Errorf("while the provider is away: %d", code)
	}
}

// keys returns the provider's public keys.
func (p *provider) keys() jose.JSONWebKeySet {
	p.t.Helper()
	resp, err := http.Get(p.issuer + "/jwks")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil || len(set.Keys) == 0 {
		p.t.Fatalf("keys: %v", err)
	}
	return set
}

// awaitKeys waits until a token is accepted, for which the keys of its issuer have to be read.
func (s *server) awaitKeys(token string) {
	s.t.Helper()
	s.await(func() bool {
		code, _ := s.send(http.MethodGet, "/api/v1/auth/whoami", "", "Authorization", "Bearer "+token)
		return code == http.StatusOK
	})
}

// await waits until a condition holds.
func (s *server) await(condition func() bool) {
	s.t.Helper()
	kit.Await(s.t, "the condition", condition)
}
