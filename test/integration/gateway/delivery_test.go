// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestAttempts: an attempt counts only when bytes may have left. A delivery that may have been posted says so.
func TestAttempts(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo, func(o *standalone.Options) { o.Gateways.Limits.DeliveryTimeout = time.Second })
	reset := func(_ http.ResponseWriter, d *protocol.Delivery) bool {
		if x.adapter.Attempts(d.ThreadID) == 1 {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	mute := func(_ http.ResponseWriter, d *protocol.Delivery) bool {
		if x.adapter.Attempts(d.ThreadID) == 1 {
			x.adapter.Post(d) // it is posted, and nobody is told
			panic(http.ErrAbortHandler)
		}
		return false
	}
	enough := make(chan struct{})
	slow := func(_ http.ResponseWriter, d *protocol.Delivery) bool {
		if x.adapter.Attempts(d.ThreadID) == 1 {
			<-enough
			panic(http.ErrAbortHandler)
		}
		return false
	}
	unreadable := func(w http.ResponseWriter, d *protocol.Delivery) bool {
		if x.adapter.Attempts(d.ThreadID) == 1 {
			_, _ = w.Write([]byte(`{"status":"delivered"} {}`))
			return true
		}
		return false
	}
	faults := map[string]func(http.ResponseWriter, *protocol.Delivery) bool{"reset": reset, "mute": mute, "slow": slow, "unreadable": unreadable}
	x.adapter.Misbehave(func(w http.ResponseWriter, d *protocol.Delivery) bool {
		fault := faults[d.ThreadID]
		return fault != nil && fault(w, d)
	})
	events := map[string]string{}
	for thread := range faults {
		events[thread] = x.accept(chatadapter.Event("e-"+thread, thread, "hello"))
	}
	for thread, name := range events {
		x.delivery(name, func(d *v1alpha1.GatewayDelivery) bool {
			return d.Status.State == v1alpha1.GatewayDeliveryRetryScheduled && d.Status.OutcomeUnknown && d.Status.AttemptCount == 1 || delivered(d)
		})
		d := x.delivery(name, delivered)
		if d.Status.AttemptCount != 2 || d.Status.OutcomeUnknown || x.adapter.Attempts(thread) != 2 || len(x.adapter.Said(thread)) != 1 {
			t.Errorf("%s: %+v; %d attempts, %q", thread, d.Status, x.adapter.Attempts(thread), x.adapter.Said(thread))
		}
	}
	close(enough)
	// Nobody listens: nothing is spent, however often it is tried, and it goes on when somebody does.
	x.adapter.Leave()
	away := x.accept(chatadapter.Event("away", "away", "are you there"))
	d := x.delivery(away, func(d *v1alpha1.GatewayDelivery) bool { return d.Status.UnreachedCount > 0 })
	if d.Status.AttemptCount != 0 || d.Status.State == v1alpha1.GatewayDeliveryDeadLettered || d.Status.Reason != "" && d.Status.Reason != v1alpha1.ReasonNotReached {
		t.Errorf("away: %+v", d.Status)
	}
	x.adapter.Back(t)
	if d = x.delivery(away, delivered); d.Status.AttemptCount != 1 || d.Status.OutcomeUnknown {
		t.Errorf("back: %+v", d.Status)
	}
	// Its Secret is gone: the same.
	secrets := x.Kubernetes(t).CoreV1().Secrets("default")
	out := kit.Must[*corev1.Secret](t)(secrets.Get(t.Context(), "out", metav1.GetOptions{}))
	if err := secrets.Delete(t.Context(), "out", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sealed := x.accept(chatadapter.Event("sealed", "sealed", "hello"))
	if d = x.delivery(sealed, func(d *v1alpha1.GatewayDelivery) bool { return d.Status.UnreachedCount > 0 }); d.Status.AttemptCount != 0 || !strings.Contains(d.Status.LastError, `"out"`) {
		t.Errorf("without a Secret: %+v", d.Status)
	}
	out.ResourceVersion, out.UID = "", ""
	kit.Must[*corev1.Secret](t)(secrets.Create(t.Context(), out, metav1.CreateOptions{}))
	if d = x.delivery(sealed, delivered); d.Status.AttemptCount != 1 {
		t.Errorf("with its Secret again: %+v", d.Status)
	}
}

// TestHeadOfLine: an answer that waits holds those after it in its session, and no other session.
func TestHeadOfLine(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	var open atomic.Bool
	x.adapter.Misbehave(func(w http.ResponseWriter, d *protocol.Delivery) bool {
		if d.ThreadID != "held" || open.Load() {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	var held []string
	for i := range 3 {
		held = append(held, x.accept(chatadapter.Event(fmt.Sprint("held-", i), "held", fmt.Sprint("message ", i))))
	}
	first := x.delivery(held[0], func(d *v1alpha1.GatewayDelivery) bool {
		return d.Status.State == v1alpha1.GatewayDeliveryRetryScheduled
	})
	if first.Status.Reason != v1alpha1.ReasonSendFailed || first.Status.OutcomeUnknown || first.Status.AttemptCount != 1 {
		t.Errorf("held back: %+v", first.Status)
	}
	x.awaitEvent(held[2], v1alpha1.GatewayEventCompleted) // the Agent goes on meanwhile
	x.delivery(x.accept(chatadapter.Event("free", "free", "hello")), delivered)
	if d := x.delivery(held[1], func(*v1alpha1.GatewayDelivery) bool { return true }); d.Status.State != v1alpha1.GatewayDeliveryPending {
		t.Errorf("behind it: %+v", d.Status)
	}
	open.Store(true)
	x.delivery(held[2], delivered)
	if got := x.adapter.Said("held"); !slices.Equal(got, []string{"You said: message 0", "You said: message 1", "You said: message 2"}) {
		t.Errorf("%q", got)
	}
}

// TestDeadLetter: what an adapter can never deliver ends, does not hold what follows, and is delivered when a person has it tried again.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	x.adapter.Misbehave(func(w http.ResponseWriter, _ *protocol.Delivery) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	first := x.accept(chatadapter.Event("a", "t", "one"))
	d := x.delivery(first, func(d *v1alpha1.GatewayDelivery) bool { return d.Status.State == v1alpha1.GatewayDeliveryDeadLettered })
	if d.Status.Reason != v1alpha1.ReasonNotDeliverable || d.Status.AttemptCount != 1 {
		t.Errorf("%+v", d.Status)
	}
	x.adapter.Misbehave(nil)
	x.delivery(x.accept(chatadapter.Event("b", "t", "two")), delivered)
	retry := func() (int, string) {
		a := x.REST(t, "default", "operator", "platform-operator").Post("/api/v1/gateway-deliveries/"+d.Name+"/retry?namespace=default", "")
		return a.Code, a.Body
	}
	if code, body := retry(); code != http.StatusAccepted || !strings.Contains(body, `"manualRetryCount":1`) || !strings.Contains(body, `"state":"Pending"`) {
		t.Errorf("retry: %d %s", code, body)
	}
	x.delivery(first, delivered)
	if code, body := retry(); code != http.StatusConflict {
		t.Errorf("retry of what was delivered: %d %s", code, body)
	}
	if got := x.adapter.Said("t"); !slices.Equal(got, []string{"You said: two", "You said: one"}) {
		t.Errorf("%q", got)
	}
}

// TestLate: an answer that could not be delivered for long says so, or is not delivered any more, as its binding wants.
func TestLate(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	x.bind("fresh", func(s *v1alpha1.GatewayBindingSpec) {
		s.LateAnswers = v1alpha1.GatewayLateAnswers{Policy: v1alpha1.GatewayLateExpire, After: v1alpha1.DurationOf(time.Hour)}
	})
	x.adapter.Leave()
	marked := x.accept(chatadapter.Event("a", "t", "hello"))
	fresh := chatadapter.Event("b", "t", "hello")
	fresh.ContextID = "fresh"
	expiring := x.accept(fresh)
	kit.Await(t, "one of them was tried", func() bool {
		unreached := 0
		for _, name := range []string{marked, expiring} {
			x.delivery(name, func(d *v1alpha1.GatewayDelivery) bool { unreached += int(d.Status.UnreachedCount); return true })
		}
		return unreached > 0
	})
	x.clock.By.Store(int64(15 * time.Hour))
	x.adapter.Back(t)
	d := x.delivery(marked, delivered)
	if !d.Status.Late {
		t.Errorf("%+v", d.Status)
	}
	if got := x.adapter.Said(""); len(got) != 1 || !strings.HasPrefix(got[0], "[late: written at ") || !strings.HasSuffix(got[0], "\nYou said: hello") {
		t.Errorf("%q", got)
	}
	d = x.delivery(expiring, func(d *v1alpha1.GatewayDelivery) bool { return d.Status.State == v1alpha1.GatewayDeliveryExpired })
	if d.Status.AttemptCount != 0 || d.Status.Reason != v1alpha1.ReasonGatewayExpired {
		t.Errorf("%+v", d.Status)
	}
}
