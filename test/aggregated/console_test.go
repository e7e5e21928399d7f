// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// page sends a request as the console's page does, and returns the answer.
func page(t *testing.T, client *http.Client, method, url, body string, cookie *http.Cookie, header ...string) (code int, cookies []*http.Cookie, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if cookie != nil {
		req.AddCookie(cookie)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Cookies(), string(text)
}

// login returns a func that sends requests of a new session.
func login(t *testing.T, client *http.Client, base, authorization string) func(method, path, body string) (int, string) {
	t.Helper()
	code, cookies, text := page(t, client, http.MethodPost, base+"/console/session", "", nil, "Authorization", authorization, console.HeaderKey, "new")
	var got struct{ Key string }
	if code != http.StatusCreated || json.Unmarshal([]byte(text), &got) != nil || len(cookies) != 1 {
		t.Fatalf("login: %d %s", code, text)
	}
	return func(method, path, body string) (int, string) {
		t.Helper()
		code, _, text := page(t, client, method, base+path, body, cookies[0], console.HeaderKey, got.Key)
		return code, text
	}
}

// The console works through kube-apiserver with the credentials of a kubeconfig, and on the server's own port with a token.
func TestConsole(t *testing.T) {
	s := Start(t)
	s.namespace("console-a")
	ann := s.member("console-a", "ann", "platform-viewer", "list")

	base, secret := scene.Console(t, "--kubeconfig", host.Kubeconfig(t, ann, ""), "-n", "console-a")
	direct := s.direct(ann)
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(direct))
	if err != nil {
		t.Fatal(err)
	}
	rules := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"console-a"}}`
	for name, send := range map[string]func(method, path, body string) (int, string){
		"through kube-apiserver": login(t, http.DefaultClient, base, "Once "+secret),
		"directly":               login(t, client, direct.Host, "Bearer "+ann.BearerToken),
	} {
		const mine, others = "/apis/core.platform.ai/v1alpha1/namespaces/console-a/tasks", "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks"
		if code, text := send(http.MethodGet, mine, ""); code != http.StatusOK {
			t.Errorf("%s: tasks: %d %s", name, code, text)
		}
		if code, text := send(http.MethodGet, others, ""); code != http.StatusForbidden {
			t.Errorf("%s: tasks of another namespace: %d %s", name, code, text)
		}
		task := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"a"},"spec":{"type":"container","command":["true"]}}`
		if code, text := send(http.MethodPost, mine, task); code != http.StatusForbidden {
			t.Errorf("%s: a viewer creates a task: %d %s", name, code, text)
		}
		code, text := send(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules)
		var review authorizationv1.SelfSubjectRulesReview
		if err := json.Unmarshal([]byte(text), &review); err != nil || code != http.StatusCreated {
			t.Errorf("%s: rules: %d %s", name, code, text)
		}
		for _, c := range []struct {
			verb, resource string
			want           bool
		}{{"list", "tasks", true}, {"create", "tasks", false}, {"create", "tasks/fork", false}, {"create", "approvals/decision", false}, {"get", "tasks/log", true}} {
			may := slices.ContainsFunc(review.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool {
				return slices.Contains(r.Verbs, c.verb) && slices.Contains(r.Resources, c.resource) && slices.Contains(r.APIGroups, "core.platform.ai")
			})
			if may != c.want {
				t.Errorf("%s: a viewer may %s %s: %v", name, c.verb, c.resource, may)
			}
		}
		if code, text := send(http.MethodGet, "/console/session", ""); code != http.StatusOK || !strings.Contains(text, `"namespace":"console-a"`) || !strings.Contains(text, "console-a:ann") {
			t.Errorf("%s: the session: %d %s", name, code, text)
		}
	}
	code, _, text := page(t, http.DefaultClient, http.MethodPost, base+"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules, nil)
	if code != http.StatusUnauthorized {
		t.Errorf("without a session: %d %s", code, text)
	}
}

// Each role, and somebody without any, is shown exactly the buttons that kube-apiserver permits it. The roles of the cluster
// that have those of the platform are among them.
func TestConsoleOfRoles(t *testing.T) {
	const root = "../.."
	kit.Needs(t, kit.NPM, kit.Browser)
	s := Start(t)
	s.namespace("console-b")
	sc := scene.New(t, root, s.Config(), "console-b")
	sc.Objects()
	approval := sc.Ask("asks", "remove the old files", map[string]string{"code": "rm -r old"})
	accounts := map[string]*rest.Config{"nobody": s.account("console-b", "nobody")}
	for _, role := range []string{"platform-viewer", "platform-editor", "platform-approver", "platform-operator", "view", "edit", "admin", "cluster-admin"} {
		accounts[role] = s.member("console-b", "as-"+role, role, "list")
	}
	links := map[string]string{}
	for role, c := range accounts {
		base, secret := scene.Console(t, "--kubeconfig", host.Kubeconfig(t, c, ""), "-n", "console-b")
		links[role] = base + "/console/login#once=" + secret
	}
	text, err := json.Marshal(links)
	if err != nil {
		t.Fatal(err)
	}
	sc.Drive("roles.mjs", "", 1, "KEYS="+string(text), "APPROVAL="+approval)
}
