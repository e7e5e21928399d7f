// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/scriptedmodel/script"
	"github.com/platform-ai/platform/test/tokenservice"
)

const talking = `
models: [m]
turns:
- match: {lastRole: tool}
  reply: {text: "[goal: reached]\nThe tool said {{ index .Results.create_container_task \"errorType\" }}."}
- match: {contains: run it}
  reply: {toolCalls: [{name: create_container_task, arguments: {name: made, command: ["true"]}}]}
- match: {contains: hello}
  reply: {text: "[goal: reached]\nHello."}
`

// TestChat: chats in a cluster are answered natively through kube-apiserver, and on the server's own listener through REST and
// the vendors' APIs. Its tools act with what the cluster's RBAC gives the caller.
func TestChat(t *testing.T) {
	parsed, err := script.Parse([]byte(talking))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(script.New(parsed, io.Discard))
	t.Cleanup(model.Close)
	tts := tokenservice.New(t)
	s := Start(t, "--oidc-issuer="+tts.URL, "--oidc-audience=platform", "--oidc-jwks-url="+tts.URL+"/keys", "--oidc-allowed-subjects=ann", "--oidc-namespace=talks")
	s.namespace("talks")
	s.c.Kubectl(t, "--namespace", "talks", "create", "secret", "generic", "keys", "--from-literal=key=sk-of-the-vendor-0123456789")
	s.apply(fmt.Sprintf(`{apiVersion: core.platform.ai/v1alpha1, kind: Provider, metadata: {name: default, namespace: talks}, spec: {
		type: openai, baseURL: "%s/v1", defaultModel: m, secretRef: {name: keys, key: key}}}`, model.URL))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "talks-only"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{tasks.Group}, Resources: []string{"chats"}},
		{Verbs: []string{"list"}, APIGroups: []string{tasks.Group}, Resources: []string{"providers", "tasks"}},
	}}
	if _, err := s.Kubernetes(t).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.c.Kubectl(t, "delete", "clusterrole", "talks-only") })
	editor := s.direct(s.member("talks", "editor", "platform-editor", "create"))
	talker := s.direct(s.member("talks", "talker", "talks-only", "list"))

	file := filepath.Join(t.TempDir(), "chat.yaml")
	if err := os.WriteFile(file, []byte(`{apiVersion: core.platform.ai/v1alpha1, kind: Chat, metadata: {namespace: talks}, spec: {message: hello}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.c.MustShell(t, "kubectl create -f "+file+" -o yaml"); !strings.Contains(out, "Hello.") || !strings.Contains(out, "sessionId: ") {
		t.Errorf("kubectl create: %s", out)
	}

	// REST: a stream, and a turn in the background that is read twice, from its beginning and after its first frame.
	got := s.send(t, editor, http.MethodPost, "/api/v1/chat", `{"message":"hello"}`)
	if got.Want(t, http.StatusOK, "event: done").Want(t, http.StatusOK, "Hello."); !strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("a stream: %v", got.Header)
	}
	var started struct{ SessionID string }
	got = s.send(t, editor, http.MethodPost, "/api/v1/chat", `{"message":"hello","background":true}`, "Accept", "application/json")
	got.Want(t, http.StatusAccepted, `"outcome":"Running"`)
	if err := json.Unmarshal([]byte(got.Body), &started); err != nil {
		t.Fatal(err)
	}
	frames := func(after string) []string {
		got := s.send(t, editor, http.MethodGet, "/api/v1/chat/"+started.SessionID+"/stream"+after, "")
		got.Want(t, http.StatusOK, "event: done")
		return strings.SplitAfter(got.Body, "\n\n")
	}
	all := frames("")
	first, _, _ := strings.Cut(all[0][strings.Index(all[0], "id: ")+len("id: "):], "\n")
	if rest := frames("?after=" + first); strings.Join(rest, "") != strings.Join(all[1:], "") {
		t.Errorf("resumed after %s: %q, of %q", first, rest, all)
	}

	// The cluster's RBAC denies the talker a task, in a chat and through a vendor's API, and gives the editor one.
	const ask = `{"model":"default/m","messages":[{"role":"user","content":"run it"}]}`
	s.send(t, talker, http.MethodPost, "/api/v1/chat", `{"message":"run it"}`, "Accept", "application/json").Want(t, http.StatusOK, "The tool said permission_denied")
	got = s.send(t, talker, http.MethodPost, "/openai/v1/chat/completions", ask)
	if got.Want(t, http.StatusOK, "The tool said permission_denied"); got.Header.Get("X-Platform-Tools") != "enabled" {
		t.Errorf("the server's tools: %v", got.Header)
	}
	s.send(t, editor, http.MethodPost, "/openai/v1/chat/completions", ask).Want(t, http.StatusOK, "The tool said")
	if out := s.c.MustShell(t, "kubectl --namespace talks get tasks -o name"); strings.Count(out, "proxy-") != 1 || strings.Count(out, "\n") != 1 {
		t.Errorf("tasks: %s", out)
	}

	// A person of the OpenID provider.
	token, err := tts.Sign("JWT", tokenservice.Claims{"sub": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	person := s.direct(s.Anonymous())
	s.send(t, person, http.MethodGet, "/api/v1/auth/whoami", "", "Authorization", "Bearer "+token).Want(t, http.StatusOK, "oidc").Want(t, http.StatusOK, "ann")
	s.send(t, person, http.MethodPost, "/api/v1/chat", `{"message":"hello"}`, "Authorization", "Bearer "+token).Want(t, http.StatusForbidden, "chats")
}
