// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestEventOnAFullDisk: an event for which there is no room is refused with 429 and leaves nothing, neither a record nor a session, nor is its
// id known. One that was accepted before is still recognised. Repeated when there is room, the event is accepted and answered, once.
func TestEventOnAFullDisk(t *testing.T) {
	t.Parallel()
	volume, metrics := standalone.SmallVolume(t, 96), prometheus.NewRegistry()
	x := newConnected(t, chatadapter.Echo, func(o *standalone.Options) {
		o.DataDir, o.Metrics, o.DiskReserve.Quantity = filepath.Join(volume, "data"), metrics, resource.MustParse("16Mi")
	})
	before := chatadapter.Event("before", "t", "hello")
	x.delivery(x.accept(before), delivered)
	filler := filepath.Join(volume, "filler")
	standalone.FillVolume(t, filler, 4<<20)
	standalone.AwaitDiskFull(t, metrics)
	e := chatadapter.Event("a", "full", "hello")
	c := x.Stranger(t).With("Authorization", "Bearer "+chatadapter.Inbound).With("Content-Type", "application/json")
	if a := c.Do(http.MethodPost, door, string(encoded(t, e))); a.Code != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("on a full disk: %d %s, Retry-After %q", a.Code, a.Body, a.Header.Get("Retry-After"))
	}
	if r := x.post(before); r.Code != http.StatusAccepted || r.Status != protocol.ReplyDuplicate {
		t.Errorf("what is known, on a full disk: %+v", r)
	}
	other := chatadapter.Event("a", "full", "something else")
	if r := x.post(other); r.Code != http.StatusTooManyRequests {
		t.Errorf("something else with the id that was refused: %+v", r)
	}
	if all := x.events(); len(all) != 1 {
		t.Errorf("%d events are stored", len(all))
	}
	if all := kit.Must[*v1alpha1.SessionList](t)(x.Sessions().List(t.Context(), metav1.ListOptions{})); len(all.Items) != 1 {
		t.Errorf("%d sessions are stored", len(all.Items))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	var r replied
	kit.Await(t, "room on the disk", func() bool { r = x.post(e); return r.Code != http.StatusTooManyRequests })
	if r.Code != http.StatusAccepted || r.Status != protocol.ReplyAccepted {
		t.Fatalf("with room: %+v", r)
	}
	if again := x.post(e); again.Status != protocol.ReplyDuplicate || again.EventID != r.EventID {
		t.Errorf("and again: %+v", again)
	}
	x.delivery(r.EventID, delivered)
	if got := x.adapter.Said("full"); !slices.Equal(got, []string{"You said: hello"}) || len(x.events()) != 2 {
		t.Errorf("%q, %d events", got, len(x.events()))
	}
	if said := x.Transcript(x.event(r.EventID).Status.SessionName, 10); len(said) != 2 {
		t.Errorf("%d messages: %+v", len(said), said)
	}
}

// events returns all events of the namespace.
func (x *connected) events() []v1alpha1.GatewayEvent {
	x.t.Helper()
	return kit.Must[*v1alpha1.GatewayEventList](x.t)(x.API().GatewayEvents("default").List(x.t.Context(), metav1.ListOptions{})).Items
}
