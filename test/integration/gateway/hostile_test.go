// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/corpus/hostile"
	"github.com/platform-ai/platform/test/kit"
)

// door is the path of the door of the gateway chat.
const door = "/api/v1/gateways/default/chat/events"

// shortAnswer is more than the door answers to anything, in bytes.
const shortAnswer = 4 << 10

// TestHostileBodies: each of 316 bodies is refused with its status, whoever sends it, and leaves nothing: an event with the same id is a new
// one afterwards. The longest events that may be sent are accepted.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	right := x.Stranger(t).With("Authorization", "Bearer "+chatadapter.Inbound).With("Content-Type", "application/json")
	wrong := right.With("Authorization", "Bearer "+chatadapter.Token)
	for _, b := range hostile.Events(protocol.MaxEventBody) {
		if a := right.Do(http.MethodPost, door, b.Text); a.Code != b.Code || len(a.Body) > shortAnswer {
			t.Errorf("%s: %d, not %d: %.300s", b.Name, a.Code, b.Code, a.Body)
		}
		if a := wrong.Do(http.MethodPost, door, b.Text); a.Code != http.StatusUnauthorized || a.Body != `{"error":{"code":401,"message":"Unauthorized"}}`+"\n" {
			t.Errorf("%s, with another token: %d %.300s", b.Name, a.Code, a.Body)
		}
	}
	if all := kit.Must[*v1alpha1.GatewayEventList](t)(x.API().GatewayEvents("").List(t.Context(), metav1.ListOptions{})); len(all.Items) > 0 {
		t.Errorf("%d events are stored, such as %+v", len(all.Items), all.Items[0])
	}
	if all := kit.Must[*v1alpha1.SessionList](t)(x.API().Sessions("").List(t.Context(), metav1.ListOptions{})); len(all.Items) > 0 {
		t.Errorf("%d sessions are stored", len(all.Items))
	}
	if r := x.send(hostile.Right()); r.Code != http.StatusAccepted || r.Status != protocol.ReplyAccepted {
		t.Errorf("an event that is right: %+v", r)
	}
	id := func(n string) string { return `"` + n + strings.Repeat("x", protocol.MaxID-len(n)) + `"` }
	for what, body := range map[string]string{
		"the longest body":           strings.Replace(hostile.Padded(protocol.MaxEventBody), hostile.ID, "longest-event", 1), // as long as the other id
		"the longest id":             hostile.With("externalEventId", id("e")),
		"the longest text":           strings.Replace(hostile.With("text", `"`+strings.Repeat("😀", protocol.MaxText/4)+`"`), hostile.ID, "text", 1),
		"the longest text, escaped":  strings.Replace(hostile.With("text", `"`+strings.Repeat(`\"`, protocol.MaxText)+`"`), hostile.ID, "escaped", 1),
		"NUL in the text":            strings.Replace(hostile.With("text", `"a\u0000b"`), hostile.ID, "nul", 1),
		"a pair":                     strings.Replace(hostile.With("text", `"\ud83d\ude00"`), hostile.ID, "pair", 1),
		"a pair after an escape":     strings.Replace(hostile.With("text", `"\\\ud83d\ude00 \\ud800"`), hostile.ID, "pairs", 1),
		"other names":                strings.Replace(hostile.With("sender.displayName", `"\u202e <@everyone> /approve"`), hostile.ID, "names", 1),
		"the first and the last day": strings.Replace(strings.Replace(hostile.With("occurredAt", `"0001-01-01T00:00:00Z"`), hostile.ID, "days", 1), "2026-03-01T10:00:01Z", "9999-12-31T23:59:59Z", 1),
	} {
		r := x.send(body)
		if r.Code != http.StatusAccepted || r.Status != protocol.ReplyAccepted {
			t.Errorf("%s: %+v", what, r)
			continue
		}
		x.event(r.EventID)
	}
	kit.Must[*v1alpha1.GatewayEventList](t)(x.API().GatewayEvents("").List(t.Context(), metav1.ListOptions{}))
}
