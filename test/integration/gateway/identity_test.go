// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestRecognised: an event is recognised however late it comes again, when its record is gone, after a restart, and when the clock is set back.
// Two events with equal texts are two.
func TestRecognised(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	name := x.accept(chatadapter.Event("a", "t", "hello"))
	x.delivery(x.accept(chatadapter.Event("b", "t", "hello")), delivered)
	x.clock.By.Store(int64(31 * 24 * time.Hour))
	kit.Await(t, "the record is not kept any more", func() bool {
		_, err := x.API().GatewayEvents("default").Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	again := func(when string) {
		t.Helper()
		if r := x.post(chatadapter.Event("a", "t", "hello")); r.Code != http.StatusAccepted || r.Status != protocol.ReplyDuplicate || r.EventID != name || r.State != "" {
			t.Errorf("%s: %+v", when, r)
		}
		if r := x.post(chatadapter.Event("a", "t", "something else")); r.Code != http.StatusConflict {
			t.Errorf("%s, something else: %+v", when, r)
		}
	}
	again("31 days later")
	x.clock.By.Store(0)
	x.Restart(t)
	again("after a restart")
	x.clock.By.Store(int64(-24 * time.Hour))
	again("the day before")
	if got := x.adapter.Said("t"); !slices.Equal(got, []string{"You said: hello", "You said: hello"}) {
		t.Errorf("%q", got)
	}
}

// TestAnotherGateway: a gateway that is deleted and made again under its name is another one. What was on its way to the first never reaches
// it, and its events are new.
func TestAnotherGateway(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	x.adapter.Leave()
	name := x.accept(chatadapter.Event("a", "t", "hello"))
	x.delivery(name, func(d *v1alpha1.GatewayDelivery) bool { return d.Status.UnreachedCount > 0 })
	if err := x.API().Gateways("default").Delete(t.Context(), "chat", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	x.delivery(name, func(d *v1alpha1.GatewayDelivery) bool {
		return d.Status.State == v1alpha1.GatewayDeliveryDeadLettered && d.Status.Reason == v1alpha1.ReasonGatewayGone
	})
	x.adapter.Back(t)
	x.gateway()
	other := x.accept(chatadapter.Event("a", "t", "hello"))
	x.delivery(other, delivered)
	if got := x.adapter.Said(""); other == name || len(got) != 1 {
		t.Errorf("%s, %s: %q", name, other, got)
	}
}

// TestRotation: while events flow, the token of the adapter is replaced. None is lost; the old token is refused once the controller has seen
// the new one.
func TestRotation(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo, func(o *standalone.Options) { o.Gateways.Limits.Pending, o.Gateways.Limits.Records = 1000, 10_000 })
	const after = "the-adapter-says-another-0123456"
	was := x.awaitGateway(func(g *v1alpha1.Gateway) bool { return g.Status.Ready }).Status.ObservedInboundAuthSecretVersion
	post := func(token string, n int) int {
		e := chatadapter.Event(fmt.Sprint("e-", n), fmt.Sprint("t-", n%7), "hello")
		c := x.Stranger(t).With("Authorization", "Bearer "+token).With("Content-Type", "application/json")
		return c.Do(http.MethodPost, "/api/v1/gateways/default/chat/events", string(encoded(t, e))).Code
	}
	const half = 60
	for n := range 2 * half {
		if n == half {
			s := kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("default").Get(t.Context(), "in", metav1.GetOptions{}))
			s.Data["token"] = []byte(after)
			kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("default").Update(t.Context(), s, metav1.UpdateOptions{}))
		}
		token := chatadapter.Inbound
		if n >= half && n%2 == 1 {
			token = after // the adapter has two processes, and one of them knows it already
		}
		if code := post(token, n); code != http.StatusAccepted && (token != chatadapter.Inbound || n < half || code != http.StatusUnauthorized) {
			t.Errorf("event %d: %d", n, code)
		}
	}
	x.touch() // the controller looks at the gateway
	x.awaitGateway(func(g *v1alpha1.Gateway) bool { return g.Status.ObservedInboundAuthSecretVersion != was })
	if code := post(chatadapter.Inbound, 2*half); code != http.StatusUnauthorized {
		t.Errorf("the old token: %d", code)
	}
	for n := range 2 * half { // whatever was refused comes again
		if code := post(after, n); code != http.StatusAccepted {
			t.Errorf("event %d again: %d", n, code)
		}
	}
}

// TestOrder: many connections deliver events of many sessions at once, some of them twice. Each has one place, that of its message in the
// transcript, and one task.
func TestOrder(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const all, sessions = 50_000, 200
	x := newConnected(t, chatadapter.Echo, func(o *standalone.Options) {
		o.Gateways.Limits.Pending, o.Gateways.Limits.Records = 1000, 100_000
	})
	unique := all * 7 / 10
	order := make([]int, 0, all)
	for i := range all {
		order = append(order, i%unique)
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var group sync.WaitGroup
	work := make(chan int)
	var mu sync.Mutex
	counts := map[string]int{}
	for range 16 {
		group.Go(func() {
			for n := range work {
				reply := x.post(chatadapter.Event(fmt.Sprint("e-", n), fmt.Sprint("t-", n%sessions), fmt.Sprint("message ", n)))
				for reply.Code == http.StatusTooManyRequests {
					reply = x.post(chatadapter.Event(fmt.Sprint("e-", n), fmt.Sprint("t-", n%sessions), fmt.Sprint("message ", n)))
				}
				mu.Lock()
				counts[fmt.Sprint(reply.Code, " ", reply.Status)]++
				mu.Unlock()
			}
		})
	}
	for _, n := range order {
		work <- n
	}
	close(work)
	group.Wait()
	if counts["202 accepted"] != unique || counts["202 duplicate"] != all-unique {
		t.Fatalf("%v", counts)
	}
	places := map[string]map[string]int64{} // of the events of each session
	for token := ""; ; {
		page := kit.Must[*v1alpha1.GatewayEventList](t)(x.API().GatewayEvents("default").List(t.Context(), metav1.ListOptions{Limit: 500, Continue: token}))
		for i := range page.Items {
			e := &page.Items[i]
			if places[e.Status.SessionName] == nil {
				places[e.Status.SessionName] = map[string]int64{}
			}
			places[e.Status.SessionName][e.Name] = e.Status.TranscriptOrder
		}
		if token = page.Continue; token == "" {
			break
		}
	}
	if len(places) != sessions {
		t.Errorf("%d sessions", len(places))
	}
	// The place of an event is the one that its message got when both were committed.
	for name, of := range places {
		said := 0
		for _, m := range x.Transcript(name, 500) {
			if m.Role != v1alpha1.RoleUser {
				continue
			}
			if said++; of[m.SourceRef] != m.Order {
				t.Errorf("session %s: the event %s is at %d, its message at %d", name, m.SourceRef, of[m.SourceRef], m.Order)
			}
		}
		if said != len(of) {
			t.Errorf("session %s: %d messages of %d events", name, said, len(of))
		}
	}
	tasks := map[string]string{} // by what they answer
	for token := ""; ; {
		page := kit.Must[*v1alpha1.TaskList](t)(x.API().Tasks("default").List(t.Context(), metav1.ListOptions{Limit: 500, Continue: token}))
		for i := range page.Items {
			e := page.Items[i].Annotations[v1alpha1.AnnotationGatewayEvent]
			if other := tasks[e]; other != "" || e == "" {
				t.Errorf("the event %q has the tasks %s and %s", e, page.Items[i].Name, other)
			}
			tasks[e] = page.Items[i].Name
		}
		if token = page.Continue; token == "" {
			break
		}
	}
	t.Logf("%d events of %d sessions, %d tasks so far", unique, sessions, len(tasks))
}
