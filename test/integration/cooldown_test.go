// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// aheadClock is the real clock, set forward.
type aheadClock struct {
	clock.RealClock

	by atomic.Int64
}

func (c *aheadClock) Now() time.Time                  { return c.RealClock.Now().Add(time.Duration(c.by.Load())) }
func (c *aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestCoolDownOutlivesOldRequests: a vendor that answers a request which began before it refused another one does not end the
// cool-down. A request that begins during the cool-down does.
func TestCoolDownOutlivesOldRequests(t *testing.T) {
	t.Parallel()
	ahead := &aheadClock{}
	p, model := withModel(t, `
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
	providers := p.api().Providers("default")
	get := func() *v1alpha1.Provider {
		return must[*v1alpha1.Provider](t)(providers.Get(t.Context(), "model", metav1.GetOptions{}))
	}
	p.poll("the Provider to be changed", func() bool {
		provider := get()
		provider.Spec.BaseURL = vendor.URL + "/v1"
		_, err := providers.Update(t.Context(), provider, metav1.UpdateOptions{})
		return err == nil
	})
	p.withBackup()

	p.onModel("old", func(s *v1alpha1.TaskSpec) { s.Prompt = "Work slowly." })
	p.poll("the request that is held", func() bool { return len(p.eventsOf("old", v1alpha1.EventModelRequestStarted)) == 1 })
	p.onModel("refused", func(s *v1alpha1.TaskSpec) {
		s.AI, s.AgentRef, s.Prompt = nil, &v1alpha1.NamespacedReference{Name: "careful"}, "Be unlucky."
	})
	p.awaitPhase("refused", v1alpha1.TaskSucceeded)
	p.poll("the cool-down", func() bool { return get().Status.CoolDownUntil != nil })
	ahead.by.Store(int64(10 * time.Second)) // after which the end of a cool-down is written at once

	release()
	p.awaitPhase("old", v1alpha1.TaskSucceeded)
	if s := get().Status; s.CoolDownUntil == nil {
		t.Errorf("a request that began before the refusal ended the cool-down: %+v", s)
	}
	p.onModel("new", func(*v1alpha1.TaskSpec) {})
	p.awaitPhase("new", v1alpha1.TaskSucceeded)
	if s := get().Status; s.CoolDownUntil != nil {
		t.Errorf("a request that began after the refusal did not end the cool-down: %+v", s)
	}
}
