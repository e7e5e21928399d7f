// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestConversation: what people write is answered, in order, by an Agent that knows what was said before; what the records say is what the
// contract says.
func TestConversation(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	var events []string
	for i := range 5 {
		events = append(events, x.accept(chatadapter.Event(fmt.Sprint("e-", i), "t1", fmt.Sprint("message ", i))))
	}
	other := x.accept(chatadapter.Event("other", "t2", "elsewhere"))
	for i, name := range events {
		e := x.awaitEvent(name, v1alpha1.GatewayEventCompleted)
		if e.Status.TranscriptOrder != int64(i)+1 || !strings.HasPrefix(e.Name, "gev-") || len(e.Name) != len("gev-")+40 {
			t.Errorf("event %d: %s %+v", i, e.Name, e.Status)
		}
		d := x.delivery(name, delivered)
		if d.Name != e.Status.DeliveryID || d.Spec.Kind != v1alpha1.GatewayDeliveryFinal || d.Status.AttemptCount != 1 || d.Status.OutcomeUnknown || d.Status.ProviderMessageID == "" {
			t.Errorf("delivery %d: %+v %+v", i, d.Spec, d.Status)
		}
	}
	x.delivery(other, delivered)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint("You said: message ", i))
	}
	if got := x.adapter.Said("t1"); !slices.Equal(got, want) {
		t.Errorf("thread t1: %q", got)
	}
	if got := x.adapter.Said("t2"); len(got) != 1 {
		t.Errorf("thread t2: %q", got)
	}
	e := x.event(events[4])
	said := x.Transcript(e.Status.SessionName, 100)
	if len(said) != 10 || said[0].ID != gateway.MessageID(events[0], v1alpha1.RoleUser) || said[0].Content != "message 0" {
		t.Errorf("%d messages: %+v", len(said), said)
	}
	task := kit.Must[*v1alpha1.Task](t)(x.Tasks().Get(t.Context(), e.Status.TaskName, metav1.GetOptions{}))
	by := task.Spec.RequestedBy
	if by == nil || by.Subject != "ada" || !slices.Equal(by.Groups, []string{"gateway:chat"}) || !slices.Equal(by.Roles, []string{"gateway-sender"}) ||
		!strings.HasPrefix(task.Name, "gw-") || task.UID != e.Status.TaskUID || task.Spec.SessionRef.ThroughMessageID != gateway.MessageID(e.Name, v1alpha1.RoleUser) {
		t.Errorf("task: %+v, for %+v", task.Spec, by)
	}
	if b := kit.Must[*v1alpha1.GatewayBinding](t)(x.API().GatewayBindings("default").Get(t.Context(), "room", metav1.GetOptions{})); !b.Status.Programmed {
		t.Errorf("binding: %+v", b.Status)
	}
}

// TestDoor: what the door answers.
func TestDoor(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo, func(o *standalone.Options) { o.Gateways.Limits.Pending = 2 })
	first := x.accept(chatadapter.Event("a", "t", "hello"))
	x.awaitEvent(first, v1alpha1.GatewayEventCompleted)
	if r := x.post(chatadapter.Event("a", "t", "hello")); r.Code != http.StatusAccepted || r.Status != protocol.ReplyDuplicate || r.EventID != first || r.State != string(v1alpha1.GatewayEventCompleted) {
		t.Errorf("repeated: %+v", r)
	}
	if r := x.post(chatadapter.Event("a", "t", "something else")); r.Code != http.StatusConflict || r.Error.Code != http.StatusConflict {
		t.Errorf("the same id: %+v", r)
	}
	if e := x.event(first); e.Status.Duplicates != 1 || e.Status.Mismatches != 1 {
		t.Errorf("%+v", e.Status)
	}
	again := chatadapter.Event("a", "t", "hello")
	again.Sender.DisplayName, again.ReceivedAt = "Somebody", new(time.Now())
	if r := x.post(again); r.Status != protocol.ReplyDuplicate {
		t.Errorf("shown otherwise: %+v", r)
	}
	for what, change := range map[string]func(e *protocol.Event){
		v1alpha1.ReasonNoBinding:        func(e *protocol.Event) { e.ContextID = "elsewhere" },
		v1alpha1.ReasonSenderNotAllowed: func(e *protocol.Event) { e.Sender.ID = "mallory"; e.Sender.DisplayName = "ada" },
	} {
		e := chatadapter.Event(what, "t", "hello")
		change(e)
		r := x.post(e)
		if r.Code != http.StatusAccepted || r.Status != protocol.ReplyRejected || r.State != string(v1alpha1.GatewayEventRejected) || x.event(r.EventID).Status.Reason != what {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for what, c := range map[string]struct {
		change func(*standalone.Client) *standalone.Client
		path   string
		body   string
		code   int
	}{
		"no token": {func(c *standalone.Client) *standalone.Client { return c.With("Authorization", "") }, "", "", 401},
		"another":  {func(c *standalone.Client) *standalone.Client { return c.With("Authorization", "Bearer x") }, "", "", 401},
		"outbound": {func(c *standalone.Client) *standalone.Client {
			return c.With("Authorization", "Bearer "+chatadapter.Token)
		}, "", "", 401},
		"no gateway":   {nil, "/api/v1/gateways/default/none/events", "", 404},
		"compressed":   {func(c *standalone.Client) *standalone.Client { return c.With("Content-Encoding", "gzip") }, "", "", 415},
		"another type": {func(c *standalone.Client) *standalone.Client { return c.With("Content-Type", "text/plain") }, "", "", 415},
		"too long":     {nil, "", `{"text":"` + strings.Repeat("x", protocol.MaxEventBody) + `"}`, 413},
		"unknown":      {nil, "", `{"surprise":1}`, 400},
		"trailing":     {nil, "", `{} {}`, 400},
		"version":      {nil, "", `{"protocolVersion":"platform.gateway.v2"}`, 400},
	} {
		client := x.Stranger(t).With("Authorization", "Bearer "+chatadapter.Inbound).With("Content-Type", "application/json")
		if c.change != nil {
			client = c.change(client)
		}
		path, body := c.path, c.body
		if path == "" {
			path = "/api/v1/gateways/default/chat/events"
		}
		if body == "" {
			body = "{}"
		}
		if a := client.Do(http.MethodPost, path, body); a.Code != c.code || !strings.Contains(a.Body, `"error"`) {
			t.Errorf("%s: %d %s", what, a.Code, a.Body)
		}
	}
	metadata := chatadapter.Event("m", "t", "hello")
	metadata.Metadata = map[string]string{"other": "x"}
	if r := x.post(metadata); r.Code != http.StatusBadRequest || !strings.Contains(r.Error.Message, `"other"`) {
		t.Errorf("metadata: %+v", r)
	}
	// Of a session that waits, more than two are too many.
	x.adapter.Misbehave(func(w http.ResponseWriter, _ *protocol.Delivery) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	var states []string
	for i := range 8 {
		states = append(states, x.post(chatadapter.Event(fmt.Sprint("many-", i), "full", "hello")).Status)
	}
	if n := strings.Count(strings.Join(states, " "), protocol.ReplyDeadLettered); n == 0 {
		t.Errorf("%q", states)
	}
}
