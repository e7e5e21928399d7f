// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/pkg/console"
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

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		code := cli.Main(ctx, "platform", []string{"--kubeconfig", s.kubeconfig(ann), "-n", "console-a", "console", "--no-open"}, cli.Streams{In: strings.NewReader(""), Out: out, Err: io.Discard})
		_ = out.Close()
		done <- code
	}()
	var link []string
	for lines := bufio.NewScanner(in); link == nil && lines.Scan(); {
		link = regexp.MustCompile(`(http://\S+)/console/login#once=(\S+)`).FindStringSubmatch(lines.Text())
	}
	if link == nil {
		t.Fatalf("platform console ended with %d", <-done)
	}
	direct := s.direct(ann)
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(direct))
	if err != nil {
		t.Fatal(err)
	}
	rules := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"console-a"}}`
	for name, send := range map[string]func(method, path, body string) (int, string){
		"through kube-apiserver": login(t, http.DefaultClient, link[1], "Once "+link[2]),
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
	code, _, text := page(t, http.DefaultClient, http.MethodPost, link[1]+"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules, nil)
	if code != http.StatusUnauthorized {
		t.Errorf("without a session: %d %s", code, text)
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, in) }()
	if code := <-done; code != 0 {
		t.Errorf("platform console ended with %d", code)
	}
}
