// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
)

// limit creates a Budget of a namespace.
func (s *server) limit(ns, name string, spec v1alpha1.BudgetSpec) {
	s.t.Helper()
	b := &v1alpha1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := s.admin.Budgets(ns).Create(s.t.Context(), b, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) balance(ns, name string) v1alpha1.BudgetStatus {
	s.t.Helper()
	b, err := s.admin.Budgets(ns).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return b.Status
}

// costly is an answer that used 1,000 tokens.
var costly = strings.Replace(strings.Replace(chatAnswer, `"prompt_tokens":11`, `"prompt_tokens":990`, 1), `"completion_tokens":7`, `"completion_tokens":10`, 1)

const question = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"h"}]}`

// 1,000 first requests of an identity that was never seen are sent at once, under a Budget that is the default for each
// identity, and with one ID, as a client may choose it. The Budget is not exceeded, it outlives the server, and another
// identity and another namespace have theirs.
func TestBudgetOfEachIdentity(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := start(t)
	v := newVendor(t, says(http.StatusOK, jsonKind, costly))
	for _, ns := range []string{"team", "rival"} {
		s.namespace(ns)
		s.provider(ns, "default", v1alpha1.ProviderOpenAI, v.URL, "m")
		s.limit(ns, "each", v1alpha1.BudgetSpec{Limit: v1alpha1.BudgetLimit{Tokens: new(int64(9500))}, Window: v1alpha1.BudgetMonth, PerIdentity: true})
	}
	token := s.Token(t, "team", "client", "chat")
	codes := map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			got := s.post("/openai/v1/chat/completions", question, "Authorization", "Bearer "+token, "X-Request-Id", "6f1d0a9e-0000-4000-8000-000000000001")
			mu.Lock()
			defer mu.Unlock()
			codes[got.Code]++
		})
	}
	all.Wait()
	_, asked := v.last()
	status := s.balance("team", "each")
	if asked < 1 || codes[http.StatusOK] != asked || status.Spent != int64(asked)*1000 || status.Spent > 9500 || status.Reserved != 0 || codes[http.StatusOK]+codes[http.StatusTooManyRequests] != 1000 {
		t.Fatalf("%d requests reached the vendor, answers %v, status %+v", asked, codes, status)
	}
	for s.post("/openai/v1/chat/completions", question, "Authorization", "Bearer "+token).Code == http.StatusOK { // until nothing is left
	}
	check := func(when string) {
		t.Helper()
		_, before := v.last()
		got := s.post("/openai/v1/chat/completions", question, "Authorization", "Bearer "+token)
		after, _ := strconv.Atoi(got.Header.Get("Retry-After"))
		if got.Code != http.StatusTooManyRequests || after < 1 || !strings.Contains(got.Body, `"code":"BudgetExhausted"`) || !strings.Contains(got.Body, "begins again at ") {
			t.Errorf("%s: %d %v %s", when, got.Code, got.Header, got.Body)
		}
		got = s.post("/anthropic/v1/messages", question, "x-api-key", token)
		if got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body, `"rate_limit_error"`) || !strings.Contains(got.Body, "BudgetExhausted: Budget each of system:serviceaccount:team:client") {
			t.Errorf("%s: %d %s", when, got.Code, got.Body)
		}
		if _, n := v.last(); n != before {
			t.Errorf("%s: the vendor was asked", when)
		}
	}
	check("when it is exhausted")
	if got := s.balance("rival", "each"); got.Spent != 0 || len(got.Identities) != 0 {
		t.Errorf("another namespace is charged: %+v", got)
	}
	s.Restart(t)
	check("after a restart")
	if got := s.post("/openai/v1/chat/completions", question, "Authorization", "Bearer "+s.Token(t, "team", "another", "chat")); got.Code != http.StatusOK {
		t.Errorf("another identity: %d %s", got.Code, got.Body)
	}
	config := rest.AnonymousClientConfig(s.Admin)
	config.BearerToken = s.Token(t, "rival", "viewer", "platform-viewer")
	rival, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rival.CoreV1alpha1().Budgets("team").Get(t.Context(), "each", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another tenant reads a Budget: %v", err)
	}
}

// rateLimit of a Provider holds for the vendors' APIs, with the time after which to try again.
func TestRateLimitOfProvider(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	v := newVendor(t, says(http.StatusOK, jsonKind, chatAnswer))
	s.provider("team", "default", v1alpha1.ProviderOpenAI, v.URL, "m")
	patch := []byte(`{"spec":{"rateLimit":{"requestsPerMinute":2}}}`)
	if _, err := s.admin.Providers("team").Patch(t.Context(), "default", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"one", "two", "three"} {
		got := s.post("/openai/v1/chat/completions", question, "Authorization", "Bearer "+s.Token(t, "team", name, "chat"))
		if i < 2 && got.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
		after, _ := strconv.Atoi(got.Header.Get("Retry-After"))
		if i == 2 && (got.Code != http.StatusTooManyRequests || after < 1 || !strings.Contains(got.Body, `"code":"RateLimited"`)) {
			t.Errorf("%s: %d %v %s", name, got.Code, got.Header, got.Body)
		}
	}
}

// Limits that select by the Agent of a request hold with the server's tools as without them: its rateLimit, and Budgets. What
// refuses is said in the same words.
func TestLimitsOfAgent(t *testing.T) {
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {}, reply: {text: "[goal: reached] Done.", usage: {input: 49990, output: 10}}}]}`)
	token := s.Token(t, "team", "client", "chat-agents")
	for path, provider := range map[string]string{"/openai/v1/chat/completions": "openai", "/anthropic/v1/messages": "claude"} {
		for _, tools := range []string{"enabled", "disabled"} {
			rated, charged := provider+"-rated-"+tools, provider+"-charged-"+tools
			for name, rate := range map[string]*v1alpha1.RateLimit{rated: {RequestsPerMinute: new(int32(2))}, charged: nil} {
				agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
					ProviderRef: &v1alpha1.NamespacedReference{Name: provider}, Model: &v1alpha1.AgentModel{Name: "m"}, RateLimit: rate,
				}}
				if _, err := s.admin.Agents("team").Create(t.Context(), agent, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			s.limit("team", charged, v1alpha1.BudgetSpec{
				Limit: v1alpha1.BudgetLimit{Tokens: new(int64(100_000))}, Window: v1alpha1.BudgetMonth, Selector: &v1alpha1.BudgetSelector{Agents: []string{charged}},
			})
			for name, reason := range map[string]string{rated: v1alpha1.ReasonRateLimited, charged: v1alpha1.ReasonBudgetExhausted} {
				_, before := v.last()
				var got host.Answer
				for range 5 {
					if got = s.post(path+"?agent="+name, question, "Authorization", "Bearer "+token, "X-Platform-Tools", tools); got.Code != http.StatusOK {
						break
					}
				}
				_, after := v.last()
				wait, _ := strconv.Atoi(got.Header.Get("Retry-After"))
				if got.Code != http.StatusTooManyRequests || wait < 1 || after-before != 2 || !strings.Contains(got.Body, `"rate_limit_error"`) {
					t.Errorf("%s, tools %s: after %d answers %d %v %s", name, tools, after-before, got.Code, got.Header, got.Body)
				}
				if strings.Contains(path, "openai") != strings.Contains(got.Body, `"code":"`+reason+`"`) {
					t.Errorf("%s, tools %s: %s", name, tools, got.Body)
				}
			}
			if status := s.balance("team", charged); status.Spent != 100_000 || status.Reserved != 0 {
				t.Errorf("%s: %+v", charged, status)
			}
		}
	}
}
