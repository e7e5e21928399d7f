// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentruntime

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

var (
	token = strings.Repeat("token-", 6)
	key   = strings.Repeat("key+/", 8)
)

// secrets are those of the namespace.
func secrets(_ context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	s := &corev1.Secret{Data: map[string][]byte{"token": []byte(token + "\n"), "key": []byte(key), "short": []byte("x"), "other": []byte(strings.Repeat("other", 9))}}
	s.ResourceVersion = "7"
	switch name.Name {
	case "gone":
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name.Name)
	case "failing":
		return nil, errors.New("the API does not answer")
	case "limited":
		s.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: "elsewhere.example"}
	}
	return s, nil
}

func registered(endpoint string) *v1alpha1.AgentRuntime {
	r := &v1alpha1.AgentRuntime{Spec: v1alpha1.AgentRuntimeSpec{
		ContractVersion: v1alpha1.HarnessV2, Deployment: v1alpha1.AgentRuntimeDeployment{Mode: v1alpha1.RuntimeExternalEndpoint, Endpoint: endpoint},
		ClientAuth: v1alpha1.AgentRuntimeAuth{
			ControllerBearerTokenSecretRef: &v1alpha1.KeyReference{Name: "auth", Key: "token"}, OperationCapabilitySecretRef: &v1alpha1.KeyReference{Name: "auth", Key: "key"},
		},
	}}
	r.Namespace, r.Name, r.Generation = "team", "own", 3
	return r
}

// at returns a probe that trusts the certificate of a server.
func at(s *httptest.Server) probe {
	transport := egress.Guard{Private: true}.Transport()
	if s.TLS != nil {
		inner, _ := s.Client().Transport.(*http.Transport) // as httptest makes it
		transport.TLSClientConfig = inner.TLSClientConfig
	}
	return probe{now: func() time.Time { return time.Unix(1000, 0) }, transport: transport, secret: secrets}
}

// TestProbe asks a real runtime, as administrators register it.
func TestProbe(t *testing.T) {
	reference, err := runtime.New(runtime.Options{Instance: "i-1", Token: token, Key: []byte(key), Dir: t.TempDir(), MinLease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(reference)
	defer s.Close()
	p := at(s)
	type edit func(spec *v1alpha1.AgentRuntimeSpec)
	declared := func(c v1alpha1.AgentRuntimeCapabilities) edit {
		return func(spec *v1alpha1.AgentRuntimeSpec) { spec.Capabilities = &c }
	}
	n := func(i int64) *int64 { return &i }
	for name, tc := range map[string]struct {
		edit         edit
		reason, says string
	}{
		"fine": {func(*v1alpha1.AgentRuntimeSpec) {}, v1alpha1.ReasonValidationSucceeded, "the runtime referenceruntime answers as instance i-1"},
		"all declared": {declared(v1alpha1.AgentRuntimeCapabilities{
			RuntimeInstanceID: "i-1", SupportsDrain: true, SupportsPublicationFinalization: true,
			WorkspaceGovernance: &v1alpha1.AgentRuntimeGovernance{Mode: v1alpha1.GovernanceStrict, Guarantees: harness.Guarantees()[:2]},
			McpPolicy:           &v1alpha1.AgentRuntimeToolPolicy{AllowedTools: []string{"read"}},
			Limits:              &v1alpha1.AgentRuntimeLimits{MaxResidentSessions: n(8), MinPromptLeaseMillis: n(1000), MaxPromptLeaseMillis: n(60_000)},
		}), v1alpha1.ReasonValidationSucceeded, "can do what spec.capabilities declares"},
		"another instance": {declared(v1alpha1.AgentRuntimeCapabilities{RuntimeInstanceID: "i-2"}), v1alpha1.ReasonCapabilitiesDiffer, "spec.capabilities.runtimeInstanceID: the instance is i-1"},
		"another profile":  {declared(v1alpha1.AgentRuntimeCapabilities{Profile: &v1alpha1.RuntimeProfile{Digest: "sha256:x"}}), v1alpha1.ReasonCapabilitiesDiffer, "spec.capabilities.profile.digest"},
		"another mode": {
			declared(v1alpha1.AgentRuntimeCapabilities{WorkspaceGovernance: &v1alpha1.AgentRuntimeGovernance{Mode: v1alpha1.GovernanceTrusted, Trusted: true}}),
			v1alpha1.ReasonCapabilitiesDiffer, "spec.capabilities.workspaceGovernance.mode: the runtime is strict-governed",
		},
		"unknown guarantee": {
			declared(v1alpha1.AgentRuntimeCapabilities{WorkspaceGovernance: &v1alpha1.AgentRuntimeGovernance{Mode: v1alpha1.GovernanceStrict, Guarantees: []string{"magic"}}}),
			v1alpha1.ReasonCapabilitiesDiffer, "does not guarantee magic",
		},
		"more sessions":   {declared(v1alpha1.AgentRuntimeCapabilities{Limits: &v1alpha1.AgentRuntimeLimits{MaxResidentSessions: n(9)}}), v1alpha1.ReasonCapabilitiesDiffer, "spec.capabilities.limits.maxResidentSessions: 9 is declared, and the runtime has 8"},
		"shorter lease":   {declared(v1alpha1.AgentRuntimeCapabilities{Limits: &v1alpha1.AgentRuntimeLimits{MinPromptLeaseMillis: n(999)}}), v1alpha1.ReasonCapabilitiesDiffer, "limits.minPromptLeaseMillis: 999 is declared"},
		"first version":   {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ContractVersion = v1alpha1.HarnessV1 }, v1alpha1.ReasonNotSupported, "spec.contractVersion"},
		"no Secret":       {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ClientAuth.ControllerBearerTokenSecretRef.Name = "gone" }, v1alpha1.ReasonValidationFailed, `spec.clientAuth.controllerBearerTokenSecretRef: Secret "gone" does not exist`},
		"no key":          {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ClientAuth.OperationCapabilitySecretRef.Key = "none" }, v1alpha1.ReasonValidationFailed, `spec.clientAuth.operationCapabilitySecretRef: the key "none" of Secret "auth" is missing`},
		"short key":       {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ClientAuth.OperationCapabilitySecretRef.Key = "short" }, v1alpha1.ReasonValidationFailed, "fewer than 32 bytes"},
		"another token":   {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ClientAuth.ControllerBearerTokenSecretRef.Key = "other" }, v1alpha1.ReasonValidationFailed, "the runtime refuses the token"},
		"not to be sent":  {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ClientAuth.ControllerBearerTokenSecretRef.Name = "limited" }, v1alpha1.ReasonSecretHostNotAllowed, "may not be sent to"},
		"key is not sent": {func(spec *v1alpha1.AgentRuntimeSpec) { spec.ClientAuth.OperationCapabilitySecretRef.Name = "limited" }, v1alpha1.ReasonValidationSucceeded, ""},
		"nobody there":    {func(spec *v1alpha1.AgentRuntimeSpec) { spec.Deployment.Endpoint = "https://127.0.0.1:1/" }, v1alpha1.ReasonEndpointUnreachable, "spec.deployment.endpoint: the runtime cannot be reached"},
		"metadata":        {func(spec *v1alpha1.AgentRuntimeSpec) { spec.Deployment.Endpoint = "https://169.254.169.254/" }, v1alpha1.ReasonEndpointUnreachable, "address not allowed"},
		"another path":    {func(spec *v1alpha1.AgentRuntimeSpec) { spec.Deployment.Endpoint += "/elsewhere" }, v1alpha1.ReasonProtocolViolated, "NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			r := registered(s.URL)
			tc.edit(&r.Spec)
			err := p.do(t.Context(), r)
			ready := tc.reason == v1alpha1.ReasonValidationSucceeded
			wait, ok := errors.AsType[step.Wait](err)
			if !ok || ready != (wait.After == recheckReady) {
				t.Errorf("outcome %v", err)
			}
			st := r.Status
			c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
			if c == nil || c.Reason != tc.reason || st.Ready != ready || !strings.Contains(st.Message, tc.says) || st.ObservedGeneration != 3 || st.LastValidated == nil {
				t.Errorf("%+v", st)
			}
			if ready && (st.ObservedCapabilities == nil || *st.ObservedCapabilities.Limits.MaxResidentSessions != 8 || st.ObservedSecretVersions["auth"] != "7") {
				t.Errorf("%+v", st)
			}
		})
	}
	r := registered(s.URL)
	r.Spec.ClientAuth.ControllerBearerTokenSecretRef.Name = "failing"
	if err := p.do(t.Context(), r); err == nil || r.Status.Message != "" {
		t.Errorf("a Secret that cannot be read says nothing about the runtime: %v, %+v", err, r.Status)
	}
}

// TestGeneration: nothing of a former runtime stays when the endpoint changes, and a runtime that is away for a while keeps what was
// observed.
func TestGeneration(t *testing.T) {
	reference, err := runtime.New(runtime.Options{Instance: "i-1", Token: token, Key: []byte(key), Dir: t.TempDir(), MinLease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(reference)
	p := at(s)
	r := registered(s.URL)
	_ = p.do(t.Context(), r)
	if !r.Status.Ready {
		t.Fatal(r.Status.Message)
	}
	s.Close()
	_ = p.do(t.Context(), r)
	if r.Status.Ready || r.Status.ObservedCapabilities == nil {
		t.Errorf("away: %+v", r.Status)
	}
	r.Generation, r.Spec.Deployment.Endpoint = 4, "https://127.0.0.1:1/"
	_ = p.do(t.Context(), r)
	if r.Status.Ready || r.Status.ObservedCapabilities != nil || r.Status.ObservedGeneration != 4 {
		t.Errorf("another endpoint: %+v", r.Status)
	}
}

// TestHostile: what a runtime says does not get into the status as it is, and no secret does.
func TestHostile(t *testing.T) {
	for name, body := range map[string]string{
		"the token":        `{"error":{"code":500,"reason":"` + token + `","message":"` + token + `"}}`,
		"a long text":      `{"protocol":"` + strings.Repeat("x", 3<<20) + `"}`,
		"a terminal's":     "{\"error\":{\"code\":409,\"reason\":\"Busy\",\"message\":\"\\u001b[2J" + token + "\"}}",
		"a page":           "<html>" + token,
		"unhealthy":        `{"protocol":"platform.harness.v2","instance":"i","status":"unhealthy"}`,
		"another instance": `{"protocol":"platform.harness.v2","instance":"` + token[:20] + `","status":"ok"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(body, "error") {
					w.WriteHeader(http.StatusConflict)
				}
				_, _ = io.WriteString(w, body)
			}))
			defer s.Close()
			r := registered(s.URL)
			_ = at(s).do(t.Context(), r)
			m := r.Status.Message
			if r.Status.Ready || m == "" || len(m) > maxMessage || strings.Contains(m, token) || strings.Contains(m, "\x1b") {
				t.Errorf("%q", m)
			}
		})
	}
}
