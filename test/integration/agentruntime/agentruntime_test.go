// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentruntime

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/referenceruntime/runtime"
)

// TestRegistered: an administrator registers a runtime and reads by REST what it can do; another endpoint is another generation, of which
// nothing is known yet; and no secret is anywhere in the object.
func TestRegistered(t *testing.T) {
	t.Parallel()
	token, key := strings.Repeat("token-", 6), strings.Repeat("key+/", 8)
	reference := kit.Must[*runtime.Runtime](t)(runtime.New(runtime.Options{Instance: "i-1", Token: token, Key: []byte(key), Dir: t.TempDir(), MinLease: time.Second}))
	s := httptest.NewTLSServer(reference)
	t.Cleanup(s.Close)
	p := standalone.NewPlatform(t, "exit 0")
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "own"}, StringData: map[string]string{"token": token, "key": key},
	}, metav1.CreateOptions{}))
	runtimes := p.API().AgentRuntimes("default")
	kit.Must[*v1alpha1.AgentRuntime](t)(runtimes.Create(t.Context(), &v1alpha1.AgentRuntime{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1alpha1.AgentRuntimeSpec{
		ContractVersion: v1alpha1.HarnessV2, Deployment: v1alpha1.AgentRuntimeDeployment{Mode: v1alpha1.RuntimeExternalEndpoint, Endpoint: s.URL},
		ClientAuth: v1alpha1.AgentRuntimeAuth{
			ControllerBearerTokenSecretRef: &v1alpha1.KeyReference{Name: "own", Key: "token"}, OperationCapabilitySecretRef: &v1alpha1.KeyReference{Name: "own", Key: "key"},
		},
		Capabilities: &v1alpha1.AgentRuntimeCapabilities{SupportsDrain: true},
	}}, metav1.CreateOptions{}))
	reader := p.REST(t, "default", "vi", "view").At(p.RESTURL)
	get := func() (r v1alpha1.AgentRuntime) {
		t.Helper()
		answer := reader.Get("/api/v1/agent-runtimes/own")
		if answer.Code != http.StatusOK || strings.Contains(answer.Body, token) || strings.Contains(answer.Body, key) {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		if err := json.Unmarshal([]byte(answer.Body), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	kit.Await(t, "the runtime to be ready", func() bool { return get().Status.Ready })
	st := get().Status
	if c := st.ObservedCapabilities; c == nil || c.RuntimeInstanceID != "i-1" || c.Limits == nil || *c.Limits.MaxConcurrentPrompts != 4 || st.ObservedGeneration != 1 {
		t.Errorf("%+v", st)
	}
	kit.Must[*v1alpha1.AgentRuntime](t)(runtimes.Patch(t.Context(), "own", types.MergePatchType, []byte(`{"spec":{"deployment":{"endpoint":"https://127.0.0.1:1/"}}}`), metav1.PatchOptions{}))
	kit.Await(t, "the other endpoint to be asked", func() bool { return get().Status.ObservedGeneration == 2 })
	if st := get().Status; st.Ready || st.ObservedCapabilities != nil || !strings.Contains(st.Message, "cannot be reached") {
		t.Errorf("%+v", st)
	}
}
