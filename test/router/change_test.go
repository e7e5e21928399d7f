// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/server/router"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// The same tests with tokens of the real kube-apiserver, whose ServiceAccounts are deleted during the test.
func TestRealCluster(t *testing.T) {
	c := cluster.Control(t)
	h := &issuer{Host: c.Host, cached: true}
	testTokenSelectsInstallation(t, h)
	testRefusals(t, h)
	testDeletedAccount(t, h)
}

// The router has a token reviewed once in 60 seconds; changes of its account take effect after that.
func TestAuthenticationCache(t *testing.T) { testDeletedAccount(t, issuing(t)) }

func testDeletedAccount(t *testing.T, h *issuer) {
	t.Helper()
	in := newInstallation(t, "installation-a")
	now := clocktesting.NewFakeClock(time.Now())
	s := start(t, h, map[string]string{"team-a": in.URL}, func(o *router.Options) {
		o.Clock, o.WriteTimeout = now, 24*time.Hour // deadlines are real, but are counted from a clock that stands still
	})
	token := h.token(t, "team-a", "leaver")
	ask := func(want int) {
		t.Helper()
		if got := s.call(t, "GET", "/openai/v1/models", "", "Authorization", "Bearer "+token); got.code != want {
			t.Errorf("%d %s, want %d", got.code, got.body, want)
		}
	}
	reviews := func(result string, want int) {
		t.Helper()
		if m := s.metrics(t); !strings.Contains(m, fmt.Sprintf("platform_router_token_reviews_total{result=%q} %d\n", result, want)) {
			t.Errorf("want %d %s reviews: %s", want, result, m)
		}
	}
	ask(200)
	ask(200)
	reviews("accepted", 1)
	if err := h.Kubernetes(t).CoreV1().ServiceAccounts("team-a").Delete(t.Context(), "leaver", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	now.Step(59 * time.Second)
	ask(200)
	reviews("accepted", 1)
	now.Step(2 * time.Second)
	if h.cached { // the API server itself caches valid tokens for some seconds
		kit.Await(t, "the end of the token", func() bool {
			now.Step(61 * time.Second)
			return s.call(t, "GET", "/openai/v1/models", "", "Authorization", "Bearer "+token).code == 401
		})
		return
	}
	ask(401)
	ask(401)
	reviews("refused", 1)
	now.Step(6 * time.Second)
	ask(401)
	reviews("refused", 2)
}

// Routes are read only at start unless the operator enables reloading. Then a change applies to later requests, and an
// invalid file changes nothing.
func TestRoutesFileChanges(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	a, b := newInstallation(t, "installation-a"), newInstallation(t, "installation-b")
	now := clocktesting.NewFakeClock(time.Now())
	fixed := start(t, h, map[string]string{"team-a": a.URL})
	followed := start(t, h, map[string]string{"team-a": a.URL}, func(o *router.Options) {
		o.Clock, o.WriteTimeout, o.RoutesReloadInterval = now, 24*time.Hour, 10*time.Second
	})
	token := h.token(t, "team-a", "client")
	ask := func(s *shared) reply {
		return s.call(t, "GET", "/openai/v1/models", "", "Authorization", "Bearer "+token)
	}
	awaitAnswer := func(what string, ok func(reply) bool) {
		t.Helper()
		kit.Await(t, what, func() bool {
			now.Step(10 * time.Second)
			return ok(ask(followed))
		})
	}
	awaitMetric := func(line string) {
		t.Helper()
		kit.Await(t, line, func() bool {
			now.Step(10 * time.Second)
			return strings.Contains(followed.metrics(t), line+"\n")
		})
	}
	for _, s := range []*shared{fixed, followed} {
		s.writeRoutes(t, map[string]string{"team-a": b.URL})
	}
	awaitAnswer("the new route", func(r reply) bool { return strings.Contains(r.body, "installation-b") })
	for _, wrong := range []string{"namespaces: [", "namespaces: {team-a: 'https://user:canary-password@host'}", "namespaces: {}\nother: {}"} {
		followed.secrets = append(followed.secrets, "canary-password")
		followed.writeFile(t, wrong)
		awaitMetric("platform_router_routes_current 0")
		if got := ask(followed); !strings.Contains(got.body, "installation-b") {
			t.Errorf("with a wrong file: %d %s", got.code, got.body)
		}
		followed.writeRoutes(t, map[string]string{"team-a": b.URL})
		awaitMetric("platform_router_routes_current 1")
	}
	if n := strings.Count(followed.logs(), "Cannot read the routes; keeping the previous ones"); n != 3 {
		t.Errorf("wrong files were told of %d times, want once each", n)
	}
	followed.writeRoutes(t, map[string]string{})
	awaitAnswer("the removal", func(r reply) bool { return r.code == 403 })
	if got := ask(fixed); !strings.Contains(got.body, "installation-a") {
		t.Errorf("the router that reads its file at start: %d %s", got.code, got.body)
	}
}
