// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// say posts an event of the gateway chat as its adapter does, and returns the name of its record.
func say(t testing.TB, s *standalone.Server, namespace string, e *protocol.Event) string {
	t.Helper()
	c := s.Stranger(t).With("Authorization", "Bearer "+chatadapter.Inbound).With("Content-Type", "application/json")
	a := c.Do(http.MethodPost, "/api/v1/gateways/"+namespace+"/chat/events", string(quoted(t, e)))
	var r protocol.Reply
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil || a.Code != http.StatusAccepted {
		t.Fatalf("%s: %d %s", e.ExternalEventID, a.Code, a.Body)
	}
	return r.EventID
}

// conversation connects the gateway chat of the scene, has something written, and answers the first of two messages. It returns the session.
func (f *filled) conversation() string {
	f.t.Helper()
	ctx, c := f.t.Context(), f.API.CoreV1alpha1()
	in := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "chat-in", Labels: map[string]string{v1alpha1.LabelGatewayInboundAuth: "true"}, Annotations: map[string]string{v1alpha1.AnnotationGatewayName: "chat"},
	}, StringData: map[string]string{"token": chatadapter.Inbound}}
	kit.Must[*corev1.Secret](f.t)(f.Kubernetes(f.t).CoreV1().Secrets("team").Create(ctx, in, metav1.CreateOptions{}))
	g := kit.Must[*v1alpha1.Gateway](f.t)(c.Gateways("team").Get(ctx, "chat", metav1.GetOptions{}))
	g.Status.Connected, g.Status.Ready, g.Status.Message = true, true, ""
	for i := range g.Status.Conditions {
		g.Status.Conditions[i].Status = metav1.ConditionTrue
	}
	kit.Must[*v1alpha1.Gateway](f.t)(c.Gateways("team").UpdateStatus(ctx, g, metav1.UpdateOptions{}))
	asked := say(f.t, f.Server, "team", chatadapter.Event("first", "t1", "When is the next release?"))
	say(f.t, f.Server, "team", chatadapter.Event("second", "t1", "And the one after it?"))
	f.Answer(asked, "On Tuesday.")
	return kit.Must[*v1alpha1.GatewayEvent](f.t)(c.GatewayEvents("team").Get(ctx, asked, metav1.GetOptions{})).Status.SessionName
}

// chat is a server whose Agents answer in a chat system.
type chat struct {
	*standalone.Platform
	t       *testing.T
	adapter *chatadapter.Adapter
}

// faults are what the adapter does instead of posting.
var faults = map[string]func(a *chatadapter.Adapter, w http.ResponseWriter, d *protocol.Delivery) bool{
	"refuses": func(_ *chatadapter.Adapter, w http.ResponseWriter, _ *protocol.Delivery) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	},
	"is busy": func(_ *chatadapter.Adapter, w http.ResponseWriter, _ *protocol.Delivery) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	},
	// It posts the first attempt, and nobody is told; it does not recognise the second one.
	"is mute": func(a *chatadapter.Adapter, w http.ResponseWriter, d *protocol.Delivery) bool {
		if a.Attempts(d.ThreadID) == 1 {
			a.Post(d)
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	},
}

// control does for the script of the page what it asks for: somebody writes, the adapter misbehaves or is away, an operator writes an object.
func (x *chat) control(w http.ResponseWriter, r *http.Request) {
	t, ctx, api := x.t, r.Context(), x.API()
	switch r.URL.Path {
	case "/say":
		e := chatadapter.Event(r.FormValue("id"), r.FormValue("thread"), r.FormValue("text"))
		e.Sender = protocol.Sender{ID: r.FormValue("sender"), DisplayName: r.FormValue("name")}
		say(t, x.Server, "default", e)
	case "/adapter":
		fault := faults[r.FormValue("fault")]
		if fault == nil {
			x.adapter.Misbehave(nil)
			return
		}
		x.adapter.Misbehave(func(w http.ResponseWriter, d *protocol.Delivery) bool { return fault(x.adapter, w, d) })
	case "/said":
		if err := json.NewEncoder(w).Encode(x.adapter.Said(r.FormValue("thread"))); err != nil {
			t.Error(err)
		}
	case "/allow":
		b := kit.Must[*v1alpha1.GatewayBinding](t)(api.GatewayBindings("default").Get(ctx, "room", metav1.GetOptions{}))
		b.Spec.SenderPolicy.AllowedSenderIDs = append(b.Spec.SenderPolicy.AllowedSenderIDs, r.FormValue("sender"))
		kit.Must[*v1alpha1.GatewayBinding](t)(api.GatewayBindings("default").Update(ctx, b, metav1.UpdateOptions{}))
	case "/touch": // so that a controller looks at the gateway
		g := kit.Must[*v1alpha1.Gateway](t)(api.Gateways("default").Get(ctx, "chat", metav1.GetOptions{}))
		g.Spec.Metadata = map[string]string{"touched": r.FormValue("with")}
		g.Spec.OutboundAuthRef.Name = r.FormValue("with")
		kit.Must[*v1alpha1.Gateway](t)(api.Gateways("default").Update(ctx, g, metav1.UpdateOptions{}))
	case "/delete":
		if err := api.Gateways("default").Delete(ctx, "chat", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	default:
		http.NotFound(w, r)
	}
}

// The views of gateways show conversations as they go on, with what strangers write as text, and whoever may operate a gateway steps in.
func TestGateways(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	x := &chat{t: t, adapter: chatadapter.New(t)}
	x.Platform, _ = standalone.WithModel(t, chatadapter.Echo, standalone.OnAPort(t), func(o *standalone.Options) { o.Gateways.Allow = []string{x.adapter.Host()} })
	ctx, api := t.Context(), x.API()
	kit.Must[*v1alpha1.Agent](t)(api.Agents("default").Create(ctx, x.adapter.Talker(), metav1.CreateOptions{}))
	kit.Must[*v1alpha1.GatewayClass](t)(api.GatewayClasses().Create(ctx, x.adapter.Class(), metav1.CreateOptions{}))
	for _, s := range x.adapter.Secrets() {
		kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("default").Create(ctx, s, metav1.CreateOptions{}))
	}
	kit.Must[*v1alpha1.Gateway](t)(api.Gateways("default").Create(ctx, x.adapter.Gateway(), metav1.CreateOptions{}))
	kit.Must[*v1alpha1.GatewayBinding](t)(api.GatewayBindings("default").Create(ctx, x.adapter.Binding("room"), metav1.CreateOptions{}))
	kit.Await(t, "the gateway is ready", func() bool {
		return kit.Must[*v1alpha1.Gateway](t)(api.Gateways("default").Get(ctx, "chat", metav1.GetOptions{})).Status.Ready
	})
	// Who may retry, and may not change the gateway.
	half := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "half"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"gatewaydeliveries/retry", "gatewayevents/replay"}},
	}}
	kit.Must[*rbacv1.ClusterRole](t)(x.Kubernetes(t).RbacV1().ClusterRoles().Create(ctx, half, metav1.CreateOptions{}))
	control := httptest.NewServer(http.HandlerFunc(x.control))
	defer control.Close()
	scene.Drive(t, root, "gateways.mjs", 9, "BASE="+x.RESTURL, "CONTROL="+control.URL, "TOKEN="+x.Token(t, "default", "ann", "platform-operator"),
		"HALF="+x.Token(t, "default", "vic", "platform-viewer", "half"), "HOSTILE="+hostile[0]+" \u202egnp.exe "+hostile[2])

	events := kit.Must[*v1alpha1.GatewayEventList](t)(api.GatewayEvents("default").List(ctx, metav1.ListOptions{}))
	for i := range events.Items {
		if e := &events.Items[i]; strings.HasPrefix(e.Spec.ExternalEventID, "replay") && (e.Status.Replays != 1 || !strings.HasSuffix(e.Status.ReplayedBy, ":ann")) {
			t.Errorf("%s: %+v", e.Spec.ExternalEventID, e.Status)
		}
	}
}
