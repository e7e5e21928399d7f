// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// A page cannot use the administrator's certificate, which a browser sends by itself, natively or on REST, with or without a
// Content-Type. Its preflight of the native API is not answered.
func TestPagesHaveNoCertificate(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := start(t, i.options(external.ModeOff))
	s.Namespaces(t, "team")
	const native = "/apis/core.platform.ai/v1alpha1/namespaces/team/tasks"
	const body = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"NAME"},"spec":{"type":"container","command":["true"]}}`
	for n, header := range [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "https://evil.example", "Content-Type", "a.Body/plain"},
		{"Origin", "https://evil.example", "Content-Type", "application/json"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Origin", "https://evil.example", "Authorization", "Bearer x"},
	} {
		for _, r := range []struct{ method, path string }{{"POST", native}, {"POST", native + "?dryRun=All"}, {"GET", native}, {"DELETE", native}, {"POST", "/api/v1/tasks?namespace=team"}, {"GET", "/backup"}} {
			a := s.Ask(t, s.Admin, r.method, r.path, strings.Replace(body, "NAME", fmt.Sprint("page-", n), 1), header...)
			if a.Code != http.StatusUnauthorized && a.Code != http.StatusForbidden {
				t.Errorf("%s %s with %v: %d %s", r.method, r.path, header, a.Code, a.Body)
			}
		}
	}
	if list := must(s.Core(t).Tasks("team").List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 0 {
		t.Errorf("pages created %d tasks", len(list.Items))
	}
	a := s.Ask(t, s.Admin, http.MethodOptions, native, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
	if a.Header.Get("Access-Control-Allow-Origin") != "" || a.Code < 400 {
		t.Errorf("preflight: %d %s", a.Code, a.Body)
	}
	if a := s.Ask(t, s.Admin, http.MethodPost, native, strings.Replace(body, "NAME", "own", 1)); a.Code != http.StatusCreated {
		t.Errorf("without a page: %d %s", a.Code, a.Body)
	}
}

// Pages may send a transaction token in each header that is configured, to REST and to the vendors' APIs, and there what the
// vendors' SDKs send.
func TestPagesMaySendTransactionTokens(t *testing.T) {
	t.Parallel()
	o := newIssuer(t).options(external.ModeOff)
	o.ContextToken.Headers = []string{"X-Own-Token", "Authorization:Bearer"}
	s := start(t, o)
	for path, more := range map[string][]string{
		"/api/v1/tasks": nil, "/openai/v1/chat/completions": {"User-Agent", "X-Stainless-Poll-Helper", "X-Stainless-Custom-Poll-Interval"}, "/anthropic/v1/messages": {"Anthropic-Beta"},
	} {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodOptions, s.RESTURL+path, nil))(t)
		req.Header.Set("Origin", "https://page.example")
		req.Header.Set("Access-Control-Request-Method", "POST")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		allowed := strings.Split(resp.Header.Get("Access-Control-Allow-Headers"), ", ")
		for _, name := range append([]string{"Authorization", "Content-Type", "X-Own-Token", "Txn-Token"}, more...) {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s: header %s is not allowed: %d %v", path, name, resp.StatusCode, allowed)
			}
		}
		if slices.ContainsFunc(allowed, func(name string) bool { return strings.Contains(name, ":") }) {
			t.Errorf("%s: %v", path, allowed)
		}
	}
}

// Odd requests get the answer that they deserve.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := start(t, i.options(external.ModeOff))
	for _, path := range []string{"/api/v1/proxy", "/api/v1/watch", "/apis/core.platform.ai/v1alpha1/proxy"} {
		if a := s.Ask(t, s.Admin, http.MethodGet, path, ""); a.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
	}
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	tasks := s.Core(t).Tasks("default")
	must(tasks.Create(t.Context(), task, metav1.CreateOptions{}))(t)
	for _, e := range []v1alpha1.EventType{v1alpha1.EventModelMessage, v1alpha1.EventTaskSucceeded} { // which closes the stream
		must(tasks.AppendEvent(t.Context(), "a", &v1alpha1.ExecutionEvent{Type: e}, metav1.CreateOptions{}))(t)
	}
	for _, path := range []string{"/api/v1/tasks/a/stream?after=", "/api/v1/tasks/a/events?after="} {
		a := s.Ask(t, s.Admin, http.MethodGet, path+fmt.Sprint(math.MaxInt64), "")
		if a.Code != http.StatusOK || !strings.Contains(a.Body, `"reason":"ahead"`) || !strings.Contains(a.Body, string(v1alpha1.EventTaskSucceeded)) {
			t.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
	}
	if a := s.Ask(t, s.Admin, http.MethodPost, "/apis/core.platform.ai/v1alpha1/namespaces/default/tasks", strings.Repeat("x", 4<<20)); a.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: %d %s", a.Code, a.Body)
	}
	for host, want := range map[string]int{"localhost:7080": 200, "a.localhost": 200, "127.0.0.1": 200, "[::1]:7080": 200, "evil.example": 421, "localhost.evil.example:7080": 421} {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.RESTURL+"/healthz", nil))(t)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: %s", host, resp.Status)
		}
	}
}
