// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// connected is a server with the gateway chat, which is ready, and the binding room: of the account bot, the context room, each thread is a
// session of the Agent talker, who says what it was told.
type connected struct {
	*standalone.Platform
	t       *testing.T
	adapter *chatadapter.Adapter
	clock   *quickclock.Ahead
}

func newConnected(t *testing.T, script string, configure ...func(*standalone.Options)) *connected {
	t.Helper()
	x := &connected{t: t, adapter: chatadapter.New(t), clock: &quickclock.Ahead{}}
	x.Platform, _ = standalone.WithModel(t, script, append([]func(*standalone.Options){standalone.OnAPort(t), func(o *standalone.Options) {
		o.Gateways.Allow, o.Clock = []string{x.adapter.Host()}, x.clock
	}}, configure...)...)
	kit.Must[*v1alpha1.Agent](t)(x.API().Agents("default").Create(t.Context(), x.adapter.Talker(), metav1.CreateOptions{}))
	kit.Must[*v1alpha1.GatewayClass](t)(x.API().GatewayClasses().Create(t.Context(), x.adapter.Class(), metav1.CreateOptions{}))
	for _, s := range x.adapter.Secrets() {
		kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}))
	}
	x.gateway()
	x.bind("room", func(*v1alpha1.GatewayBindingSpec) {})
	return x
}

// gateway makes the gateway chat, and waits until it is ready.
func (x *connected) gateway() *v1alpha1.Gateway {
	x.t.Helper()
	kit.Must[*v1alpha1.Gateway](x.t)(x.API().Gateways("default").Create(x.t.Context(), x.adapter.Gateway(), metav1.CreateOptions{}))
	return x.awaitGateway(func(g *v1alpha1.Gateway) bool { return g.Status.Ready })
}

func (x *connected) awaitGateway(wanted func(*v1alpha1.Gateway) bool) (g *v1alpha1.Gateway) {
	x.t.Helper()
	last := ""
	defer func() {
		if x.t.Failed() {
			x.t.Log("gateway: " + last)
		}
	}()
	kit.Await(x.t, "the gateway", func() bool {
		g = kit.Must[*v1alpha1.Gateway](x.t)(x.API().Gateways("default").Get(x.t.Context(), "chat", metav1.GetOptions{}))
		last = g.Status.Message
		return wanted(g)
	})
	return g
}

// bind makes a binding of the gateway, and waits until it is ready.
func (x *connected) bind(name string, change func(*v1alpha1.GatewayBindingSpec)) {
	x.t.Helper()
	b := x.adapter.Binding(name)
	change(&b.Spec)
	kit.Must[*v1alpha1.GatewayBinding](x.t)(x.API().GatewayBindings("default").Create(x.t.Context(), b, metav1.CreateOptions{}))
	defer func() {
		if x.t.Failed() {
			x.t.Log("binding: " + b.Status.Message)
		}
	}()
	kit.Await(x.t, "the binding "+name, func() bool {
		b = kit.Must[*v1alpha1.GatewayBinding](x.t)(x.API().GatewayBindings("default").Get(x.t.Context(), name, metav1.GetOptions{}))
		return b.Status.Ready
	})
}

// replied is what the door answers.
type replied struct {
	protocol.Reply
	Code  int
	Error struct {
		Code    int
		Message string
	}
}

// post sends an event as the adapter.
func (x *connected) post(e *protocol.Event) replied {
	x.t.Helper()
	return x.send(string(encoded(x.t, e)))
}

func encoded(t *testing.T, e *protocol.Event) []byte {
	t.Helper()
	return kit.Must[[]byte](t)(json.Marshal(e))
}

// touch has the controller look at the gateway.
func (x *connected) touch() {
	x.t.Helper()
	const touched = `{"spec":{"metadata":{"touched":"yes"}}}`
	kit.Must[*v1alpha1.Gateway](x.t)(x.API().Gateways("default").Patch(x.t.Context(), "chat", types.MergePatchType, []byte(touched), metav1.PatchOptions{}))
}

func (x *connected) send(body string) (r replied) {
	x.t.Helper()
	c := x.Stranger(x.t).With("Authorization", "Bearer "+chatadapter.Inbound).With("Content-Type", "application/json")
	a := c.Do(http.MethodPost, "/api/v1/gateways/default/chat/events", body)
	r.Code = a.Code
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		x.t.Fatalf("%d %s", a.Code, a.Body)
	}
	r.Code = a.Code
	return r
}

// accept sends an event that must be accepted, and returns the name of its record.
func (x *connected) accept(e *protocol.Event) string {
	x.t.Helper()
	r := x.post(e)
	if r.Code != http.StatusAccepted || r.Status != protocol.ReplyAccepted || r.EventID == "" {
		x.t.Fatalf("%s: %+v", e.ExternalEventID, r)
	}
	return r.EventID
}

func (x *connected) event(name string) *v1alpha1.GatewayEvent {
	x.t.Helper()
	return kit.Must[*v1alpha1.GatewayEvent](x.t)(x.API().GatewayEvents("default").Get(x.t.Context(), name, metav1.GetOptions{}))
}

func (x *connected) awaitEvent(name string, state v1alpha1.GatewayEventState) *v1alpha1.GatewayEvent {
	x.t.Helper()
	var e *v1alpha1.GatewayEvent
	defer func() {
		if x.t.Failed() && e != nil {
			x.t.Logf("event: %+v", e.Status)
		}
	}()
	kit.Await(x.t, fmt.Sprintf("the event %s is %s", name, state), func() bool {
		e = x.event(name)
		return e.Status.State == state
	})
	return e
}

// delivery returns the delivery of an event that fits, once there is one.
func (x *connected) delivery(event string, fits func(*v1alpha1.GatewayDelivery) bool) (found *v1alpha1.GatewayDelivery) {
	x.t.Helper()
	var all *v1alpha1.GatewayDeliveryList
	defer func() {
		if x.t.Failed() && all != nil {
			for i := range all.Items {
				x.t.Logf("delivery: %+v", all.Items[i].Status)
			}
		}
	}()
	kit.Await(x.t, "the delivery of "+event, func() bool {
		all = kit.Must[*v1alpha1.GatewayDeliveryList](x.t)(x.API().GatewayDeliveries("default").List(x.t.Context(), metav1.ListOptions{FieldSelector: "spec.eventId=" + event}))
		i := slices.IndexFunc(all.Items, func(d v1alpha1.GatewayDelivery) bool { return fits(&d) })
		if i >= 0 {
			found = &all.Items[i]
		}
		return i >= 0
	})
	return found
}

func delivered(d *v1alpha1.GatewayDelivery) bool {
	return d.Status.State == v1alpha1.GatewayDeliveryDelivered
}
