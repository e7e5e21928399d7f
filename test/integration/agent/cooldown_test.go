// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// TestCoolDownOutlivesOldRequests: a vendor that answers a request which began before it refused another one does not end the
// cool-down. A request that begins during the cool-down does.
func TestCoolDownOutlivesOldRequests(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	ahead := &quickclock.Ahead{}
	p, model := standalone.WithModel(t, `
turns:
- {times: 1, match: {contains: unlucky}, fault: {status: 429, retryAfter: '600', message: slow down}}
- {reply: {text: Hello.}}`, func(o *standalone.Options) { o.Clock = ahead })
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if bytes.Contains(body, []byte("slowly")) {
			<-held
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(vendor.Close)
	t.Cleanup(release)
	providers := p.API().Providers("default")
	get := func() *v1alpha1.Provider {
		return kit.Must[*v1alpha1.Provider](t)(providers.Get(t.Context(), "model", metav1.GetOptions{}))
	}
	kit.Await(t, "the Provider to be changed", func() bool {
		provider := get()
		provider.Spec.BaseURL = vendor.URL + "/v1"
		_, err := providers.Update(t.Context(), provider, metav1.UpdateOptions{})
		return err == nil
	})
	withBackup(p)

	p.OnModel("old", func(s *v1alpha1.TaskSpec) { s.Prompt = "Work slowly." })
	kit.Await(t, "the request that is held", func() bool { return len(p.EventsOf("old", v1alpha1.EventModelRequestStarted)) == 1 })
	p.OnModel("refused", func(s *v1alpha1.TaskSpec) {
		s.AI, s.AgentRef, s.Prompt = nil, &v1alpha1.NamespacedReference{Name: "careful"}, "Be unlucky."
	})
	p.AwaitPhase("refused", v1alpha1.TaskSucceeded)
	kit.Await(t, "the cool-down", func() bool { return get().Status.CoolDownUntil != nil })
	ahead.By.Store(int64(10 * time.Second)) // after which the end of a cool-down is written at once

	release()
	p.AwaitPhase("old", v1alpha1.TaskSucceeded)
	if s := get().Status; s.CoolDownUntil == nil {
		t.Errorf("a request that began before the refusal ended the cool-down: %+v", s)
	}
	p.OnModel("new", func(*v1alpha1.TaskSpec) {})
	p.AwaitPhase("new", v1alpha1.TaskSucceeded)
	if s := get().Status; s.CoolDownUntil != nil {
		t.Errorf("a request that began after the refusal did not end the cool-down: %+v", s)
	}
}
