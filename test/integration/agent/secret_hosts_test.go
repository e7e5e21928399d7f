// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestSecretHosts: an editor, who may not read Secrets, makes Providers and Tools with a server of their own and uses them in
// every way that there is. The server gets no request, while the host that the Secret names is served.
func TestSecretHosts(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, body)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(thief.Close)
	door := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect)) // a permitted host that leads there
	t.Cleanup(door.Close)
	p, _ := standalone.WithModel(t, "turns: [{reply: {text: Hello.}}]", func(o *standalone.Options) {
		o.RequireSecretHosts, o.AllowHostCommands = true, true
		o.WebFetchAllow = []string{strings.TrimPrefix(thief.URL, "http://")}
	})
	ctx := t.Context()
	p.OnModel("unnamed", func(*v1alpha1.TaskSpec) {})
	if failed := p.AwaitPhase("unnamed", v1alpha1.TaskFailed); !refusedHost(failed, "the operator requires") {
		t.Errorf("%+v", failed.Status)
	}
	model := kit.Must[*v1alpha1.Provider](t)(p.API().Providers("default").Get(ctx, "model", metav1.GetOptions{}))
	origin := strings.TrimSuffix(model.Spec.BaseURL, "/v1")
	secrets := p.Kubernetes(t).CoreV1().Secrets("default")
	key := kit.Must[*corev1.Secret](t)(secrets.Get(ctx, "key", metav1.GetOptions{}))
	key.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: origin + ", api.openai.com, " + door.URL}
	kit.Must[*corev1.Secret](t)(secrets.Update(ctx, key, metav1.UpdateOptions{}))
	p.OnModel("named", func(*v1alpha1.TaskSpec) {})
	p.AwaitPhase("named", v1alpha1.TaskSucceeded)

	eve := p.As(t, "eve", "platform-editor")
	for name, spec := range map[string]v1alpha1.ProviderSpec{
		"openai":    {Type: v1alpha1.ProviderOpenAI, BaseURL: thief.URL + "/v1"},
		"anthropic": {Type: v1alpha1.ProviderAnthropic, BaseURL: thief.URL},
		"azure":     {Type: v1alpha1.ProviderAzureOpenAI, BaseURL: thief.URL, Azure: &v1alpha1.AzureProvider{DeploymentName: "d"}},
	} {
		spec.SecretRef, spec.DefaultModel, spec.Probe = v1alpha1.ProviderSecretReference{Name: "key"}, "m", true
		kit.Must[*v1alpha1.Provider](t)(eve.Providers("default").Create(ctx, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
		p.OnModel("by-"+name, func(s *v1alpha1.TaskSpec) { s.AI.ProviderRef.Name = name })
		if failed := p.AwaitPhase("by-"+name, v1alpha1.TaskFailed); !refusedHost(failed, "Provider default/"+name, `Secret "key"`, thief.URL, "api.openai.com") {
			t.Errorf("%s: %+v", name, failed.Status)
		}
		kit.Await(t, "the condition of the provider", func() bool {
			o, err := eve.Providers("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
			return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonSecretHostNotAllowed && strings.Contains(c.Message, thief.URL)
		})
	}
	for name, spec := range map[string]v1alpha1.ProviderSpec{
		"openai-door": {Type: v1alpha1.ProviderOpenAI, BaseURL: door.URL + "/v1"}, "anthropic-door": {Type: v1alpha1.ProviderAnthropic, BaseURL: door.URL},
	} {
		spec.SecretRef, spec.DefaultModel = v1alpha1.ProviderSecretReference{Name: "key"}, "m"
		kit.Must[*v1alpha1.Provider](t)(eve.Providers("default").Create(ctx, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
		p.OnModel("by-"+name, func(s *v1alpha1.TaskSpec) { s.AI.ProviderRef.Name = name })
		if failed := p.AwaitPhase("by-"+name, v1alpha1.TaskFailed); !strings.Contains(failed.Status.Message, "answered with a redirect") { // none is followed
			t.Errorf("%s: %+v", name, failed.Status)
		}
	}
	auth := &v1alpha1.KeyReference{Name: "key", Key: "api-key"}
	for name, spec := range map[string]v1alpha1.ToolSpec{
		"http-tool": {Description: "d", HTTP: &v1alpha1.ToolHTTP{URL: thief.URL, AuthSecretRef: auth}},
		"mcp-tool":  {Description: "d", HTTP: &v1alpha1.ToolHTTP{AuthSecretRef: auth}, MCP: &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: thief.URL + "/mcp"}}},
	} {
		kit.Must[*v1alpha1.Tool](t)(eve.Tools("default").Create(ctx, &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
		p.OnModel("with-"+name, func(s *v1alpha1.TaskSpec) { s.AI.Tools = []string{name} })
		if failed := p.AwaitPhase("with-"+name, v1alpha1.TaskFailed); !refusedHost(failed, "Tool default/"+name, thief.URL) {
			t.Errorf("%s: %+v", name, failed.Status)
		}
	}
	for name, optional := range map[string]bool{"variable": false, "optional-variable": true} {
		p.Run(name, func(s *v1alpha1.TaskSpec) {
			s.Command = []string{"sh", "-c", "echo $KEY"}
			s.Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: "api-key", Optional: &optional,
			}}}}
		})
		if failed := p.AwaitPhase(name, v1alpha1.TaskFailed); !refusedHost(failed, "spec.env", "a program could send it anywhere") {
			t.Errorf("%s: %+v", name, failed.Status)
		}
	}
	c := p.REST(t, "default", "editor", "platform-editor")
	if got := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"message":"hello","provider":"openai"}`); got.Code < 400 || !strings.Contains(got.Body, thief.URL) {
		t.Errorf("chat: %d %s", got.Code, got.Body)
	}
	for path, provider := range map[string]string{"/openai/v1/chat/completions": "openai", "/anthropic/v1/messages": "anthropic"} {
		body := `{"model":"` + provider + `/m","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}`
		if got := c.With("X-Platform-Tools", "disabled").Do(http.MethodPost, path, body); got.Code < 400 || !strings.Contains(got.Body, "may not be sent to") {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := c.With("X-Platform-Tools", "disabled").Do(http.MethodPost, "/openai/v1/chat/completions", `{"model":"model/m","messages":[{"role":"user","content":"hello"}]}`); got.Code != http.StatusOK {
		t.Errorf("the Provider that is permitted: %d %s", got.Code, got.Body)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests reached another host", n)
	}
}

// refusedHost reports whether a task failed because of a Secret's hosts, with a message that has the given parts and no key.
func refusedHost(task *v1alpha1.Task, parts ...string) bool {
	c := meta.FindStatusCondition(task.Status.Conditions, string(v1alpha1.ConditionFailed))
	if c == nil || c.Reason != v1alpha1.ReasonSecretHostNotAllowed || strings.Contains(c.Message, "k-1234567890") {
		return false
	}
	for _, part := range parts {
		if !strings.Contains(c.Message, part) {
			return false
		}
	}
	return true
}
