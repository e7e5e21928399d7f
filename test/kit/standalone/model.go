// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"io"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// scripted starts a vendor whose answers a script gives.
func scripted(t *testing.T, text string) (model *script.Server, url string) {
	t.Helper()
	model = script.New(kit.Must[*script.Script](t)(script.Parse([]byte(text))), io.Discard)
	vendor := httptest.NewServer(model)
	t.Cleanup(vendor.Close)
	return model, vendor.URL
}

// WithModel returns a server whose real workers use a scripted model, by the Provider "model".
func WithModel(t *testing.T, text string, configure ...func(*Options)) (*Platform, *script.Server) {
	t.Helper()
	model, url := scripted(t, text)
	worker := kit.Bin(t, "platform-worker")
	workers := func(o *Options) { o.Controllers, o.WorkerBinary = nil, worker }
	p := &Platform{T: t, Server: Start(t, append([]func(*Options){workers}, configure...)...)}
	p.provider("default", "model", url)
	return p, model
}

// WithChat returns a server without controllers whose namespace default has a Provider "default" on a scripted model.
func WithChat(t *testing.T, text string, configure ...func(*Options)) (*Platform, *script.Server) {
	t.Helper()
	model, url := scripted(t, text)
	p := &Platform{T: t, Server: Start(t, configure...)}
	p.Answers("default", url)
	return p, model
}

// Answers gives a namespace a Provider "default".
func (p *Platform) Answers(namespace, url string) {
	p.T.Helper()
	p.provider(namespace, "default", url)
}

// provider makes a Provider, and the Secret "key" with its key.
func (p *Platform) provider(namespace, name, url string) {
	p.T.Helper()
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	kit.Must[*corev1.Secret](p.T)(p.Kubernetes(p.T).CoreV1().Secrets(namespace).Create(p.T.Context(), key, metav1.CreateOptions{}))
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: url + "/v1", DefaultModel: "scripted-1",
		SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}
	kit.Must[*v1alpha1.Provider](p.T)(p.API().Providers(namespace).Create(p.T.Context(), provider, metav1.CreateOptions{}))
}

// Team makes the agents chief, clerk and stranger. The chief may delegate to the clerk and to itself.
func (p *Platform) Team() {
	p.T.Helper()
	for name, c := range map[string]*v1alpha1.AgentCoordination{
		"chief": {Enabled: true, AllowedAgents: []v1alpha1.NamespacedReference{{Name: "clerk"}, {Name: "chief"}}}, "clerk": nil, "stranger": nil,
	} {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Coordination: c}}
		kit.Must[*v1alpha1.Agent](p.T)(p.API().Agents("default").Create(p.T.Context(), a, metav1.CreateOptions{}))
	}
}

// Sessions is the administrator's client of sessions.
func (p *Platform) Sessions() typed.SessionInterface {
	p.T.Helper()
	return p.API().Sessions("default")
}

// Session returns a session.
func (p *Platform) Session(name string) *v1alpha1.Session {
	p.T.Helper()
	return kit.Must[*v1alpha1.Session](p.T)(p.Sessions().Get(p.T.Context(), name, metav1.GetOptions{}))
}

// Transcript reads a transcript page by page.
func (p *Platform) Transcript(session string, limit int) []v1alpha1.SessionMessage {
	p.T.Helper()
	var all []v1alpha1.SessionMessage
	for token := ""; ; {
		req := p.API().RESTClient().Get().Namespace("default").Resource("sessions").Name(session).SubResource("transcript").
			Param("limit", fmt.Sprint(limit))
		if token != "" {
			req = req.Param("continue", token)
		}
		var page v1alpha1.SessionTranscript
		if err := req.Do(p.T.Context()).Into(&page); err != nil {
			p.T.Fatal(err)
		}
		if len(page.Items) > limit {
			p.T.Errorf("a page of %d", len(page.Items))
		}
		all = append(all, page.Items...)
		if token = page.Continue; token == "" {
			return all
		}
	}
}
