// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// A client reaches a model through the router and a real installation, and the installation's errors pass unchanged.
func TestRealInstallation(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Hello."}}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"}}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	in := standalone.Start(t)
	h := &issuer{Host: in.Host}
	ctx := t.Context()
	token, nobody := h.talker(t, "team-a"), h.token(t, "team-a", "nobody")
	h.provider(t, "team-a", model.URL)
	h.key(t, "team-a", "sk-key-of-the-vendor")
	s := start(t, h, map[string]string{"team-a": in.RESTURL})
	s.secrets = append(s.secrets, token, nobody)

	c := openai.NewClient(option.WithBaseURL(s.url+"/openai/v1"), option.WithAPIKey(token), option.WithMaxRetries(0), option.WithHeader("X-Platform-Tools", "disabled"))
	chat := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}
	whole, err := c.Chat.Completions.New(ctx, chat)
	if err != nil || whole.Choices[0].Message.Content != "Hello." {
		t.Fatalf("chat completion: %v, %v", whole, err)
	}
	stream := c.Chat.Completions.NewStreaming(ctx, chat)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || all.Choices[0].Message.Content != "Hello." {
		t.Errorf("streamed chat completion: %v, %v", all.Choices, err)
	}
	models, err := c.Models.List(ctx)
	if err != nil || len(models.Data) != 2 || models.Data[0].ID != "default/m" {
		t.Errorf("models: %v, %v", models, err)
	}
	refused := s.call(t, "POST", "/anthropic/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"h"}]}`, "X-Api-Key", nobody)
	if refused.code != http.StatusForbidden || !strings.Contains(refused.body, `"permission_error"`) || !strings.Contains(refused.body, "chats") {
		t.Errorf("who may not chat: %d %s", refused.code, refused.body)
	}
}

// talker makes a ServiceAccount that may chat in its namespace, and a token of it.
func (h *issuer) talker(t *testing.T, namespace string) string {
	t.Helper()
	token := h.token(t, namespace, "client")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "chat"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"chats"}, Verbs: []string{"create"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"providers"}, Verbs: []string{"list"}},
	}}
	if _, err := h.Kubernetes(t).RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "chat"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "chat"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "client", Namespace: namespace}},
	}
	if _, err := h.Kubernetes(t).RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return token
}

// provider gives a namespace the Provider "default", whose key is to be in the Secret "key".
func (h *issuer) provider(t *testing.T, namespace, address string) {
	t.Helper()
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: address, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "key"},
	}}
	if _, err := h.Core(t).Providers(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// key makes the Secret with the key of a namespace's Provider.
func (h *issuer) key(t *testing.T, namespace, value string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": value}}
	if _, err := h.Kubernetes(t).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
