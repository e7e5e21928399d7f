// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
)

// api is the native path of a namespace.
func api(namespace string) string {
	return "/apis/core.platform.ai/v1alpha1/namespaces/" + namespace + "/"
}

// answered has one event answered, and returns it and its delivery.
func answered(x *connected) (*v1alpha1.GatewayEvent, *v1alpha1.GatewayDelivery) {
	x.t.Helper()
	e := x.awaitEvent(x.accept(chatadapter.Event("a", "t", "the secret plan")), v1alpha1.GatewayEventCompleted)
	return e, x.delivery(e.Name, delivered)
}

// TestTokenOfAnotherGateway: the token of a gateway opens no other, of the same namespace or of another, and a gateway that names the Secrets
// of another one gets nothing of them. Which of two names does not exist is not told, be it the namespace's or the gateway's.
func TestTokenOfAnotherGateway(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	x.Namespaces(t, "elsewhere")
	secrets := map[string]string{}
	for _, g := range []struct{ namespace, name string }{{"default", "second"}, {"elsewhere", "chat"}} {
		for _, s := range x.adapter.Secrets() {
			s.Name += "-" + g.name
			s.Annotations[v1alpha1.AnnotationGatewayName] = g.name
			if s.Labels[v1alpha1.LabelGatewayInboundAuth] != "" {
				s.StringData["token"] = "token-of-" + g.namespace + "-" + g.name
				secrets[g.namespace+"/"+g.name] = s.StringData["token"]
			}
			kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets(g.namespace).Create(t.Context(), s, metav1.CreateOptions{}))
		}
		o := x.adapter.Gateway()
		o.Name, o.Spec.InboundAuthRef.Name, o.Spec.OutboundAuthRef.Name = g.name, "in-"+g.name, "out-"+g.name
		kit.Must[*v1alpha1.Gateway](t)(x.API().Gateways(g.namespace).Create(t.Context(), o, metav1.CreateOptions{}))
		kit.Await(t, "the gateway "+g.name, func() bool {
			return kit.Must[*v1alpha1.Gateway](t)(x.API().Gateways(g.namespace).Get(t.Context(), g.name, metav1.GetOptions{})).Status.Ready
		})
	}
	secrets["default/chat"] = chatadapter.Inbound
	c := x.Stranger(t).With("Content-Type", "application/json")
	body := string(encoded(t, chatadapter.Event("a", "t", "hello")))
	refusals := map[string]bool{}
	for of, token := range secrets {
		for to := range secrets {
			a := c.With("Authorization", "Bearer "+token).Do(http.MethodPost, "/api/v1/gateways/"+to+"/events", body)
			if of == to {
				if a.Code != http.StatusAccepted {
					t.Errorf("its own gateway %s: %d %s", to, a.Code, a.Body)
				}
				continue
			}
			if refusals[a.Body] = true; a.Code != http.StatusUnauthorized {
				t.Errorf("the token of %s at %s: %d %s", of, to, a.Code, a.Body)
			}
		}
	}
	missing := map[string]bool{}
	for _, to := range []string{"default/none", "elsewhere/none", "none/chat", "none/none"} {
		a := c.With("Authorization", "Bearer "+chatadapter.Inbound).Do(http.MethodPost, "/api/v1/gateways/"+to+"/events", body)
		if missing[a.Body] = true; a.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", to, a.Code, a.Body)
		}
	}
	if len(refusals) != 1 || len(missing) != 1 {
		t.Errorf("refusals differ: %v %v", refusals, missing)
	}
	// The event of each gateway is that gateway's alone, and nobody's binding was for the others.
	if all := kit.Must[*v1alpha1.GatewayEventList](t)(x.API().GatewayEvents("").List(t.Context(), metav1.ListOptions{})); len(all.Items) != len(secrets) {
		t.Errorf("%d events", len(all.Items))
	}
	thief := x.adapter.Gateway()
	thief.Name = "thief"
	kit.Must[*v1alpha1.Gateway](t)(x.API().Gateways("default").Create(t.Context(), thief, metav1.CreateOptions{}))
	kit.Await(t, "the controller has looked at the gateway", func() bool {
		thief = kit.Must[*v1alpha1.Gateway](t)(x.API().Gateways("default").Get(t.Context(), "thief", metav1.GetOptions{}))
		return thief.Status.ObservedGeneration == thief.Generation
	})
	a := c.With("Authorization", "Bearer "+chatadapter.Inbound).Do(http.MethodPost, "/api/v1/gateways/default/thief/events", body)
	if thief.Status.Ready || thief.Status.ResolvedRefs || thief.Status.Connected || a.Code != http.StatusServiceUnavailable || strings.Contains(a.Body, `"in"`) {
		t.Errorf("with the Secrets of another gateway: %+v, %d %s", thief.Status, a.Code, a.Body)
	}
}

// TestAnotherTenant: who may operate gateways in one namespace sees and does nothing in another, by REST and by the native API.
func TestAnotherTenant(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	e, d := answered(x)
	operator := x.REST(t, "elsewhere", "operator", "platform-operator")
	native := operator.At(x.URL)
	for _, path := range []string{
		"gateways", "gateways/chat", "gatewaybindings", "gatewaybindings/room", "gateway-events", "gateway-events/" + e.Name, "gateway-deliveries", "gateway-deliveries/" + d.Name,
		"gateway-events?gateway=chat", "gateway-deliveries?event=" + e.Name,
	} {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		if a := operator.Get("/api/v1/" + path + sep + "namespace=default"); a.Code != http.StatusForbidden || strings.Contains(a.Body, "secret plan") {
			t.Errorf("GET %s: %d %.300s", path, a.Code, a.Body)
		}
	}
	if a := operator.Post("/api/v1/gateway-deliveries/"+d.Name+"/retry?namespace=default", ""); a.Code != http.StatusForbidden {
		t.Errorf("retry: %d %s", a.Code, a.Body)
	}
	for _, kind := range []string{"gateways/chat", "gatewaybindings/room", "gatewayevents/" + e.Name, "gatewaydeliveries/" + d.Name, "gatewayidentities/x"} {
		list, _, _ := strings.Cut(kind, "/")
		for _, path := range []string{api("default") + kind, api("default") + list, api("default") + list + "?watch=true", "/apis/core.platform.ai/v1alpha1/" + list} {
			if a := native.Get(path); a.Code != http.StatusForbidden || strings.Contains(a.Body, "secret plan") {
				t.Errorf("GET %s: %d %.300s", path, a.Code, a.Body)
			}
		}
		if a := native.Do(http.MethodDelete, api("default")+kind, ""); a.Code != http.StatusForbidden {
			t.Errorf("DELETE %s: %d %s", kind, a.Code, a.Body)
		}
	}
	for path, kind := range map[string]string{
		"gatewayevents/" + e.Name + "/replay": "GatewayEvent", "gatewaydeliveries/" + d.Name + "/retry": "GatewayDelivery", "gatewaydeliveries/" + d.Name + "/abandon": "GatewayDelivery",
		"gatewaydeliveries/" + d.Name + "/send": "GatewayDelivery", "gatewaydeliveries": "GatewayDelivery", "gatewayevents": "GatewayEvent", "gateways/chat/probe": "GatewayProbe",
		"gatewayrecordqueries": "GatewayRecordQuery",
	} {
		if a := native.Post(api("default")+path, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"`+kind+`","metadata":{"name":"x"}}`); a.Code != http.StatusForbidden {
			t.Errorf("POST %s: %d %.300s", path, a.Code, a.Body)
		}
	}
	// Records are made by the platform alone, and sent by it alone, also in one's own namespace.
	for path, kind := range map[string]string{"gatewaydeliveries": "GatewayDelivery", "gatewayevents": "GatewayEvent"} {
		if a := native.Post(api("elsewhere")+path, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"`+kind+`","metadata":{"name":"x"}}`); a.Code != http.StatusForbidden {
			t.Errorf("POST %s: %d %.300s", path, a.Code, a.Body)
		}
	}
}

// TestAsTheAgent: the program that an agent runs has the token of its worker. With it nothing of gateways can be read or done, neither of other
// conversations nor of its own.
func TestAsTheAgent(t *testing.T) {
	t.Parallel()
	x := newConnected(t, chatadapter.Echo)
	e, d := answered(x)
	_, worker := x.RESTTask(t, "agent", func(s *v1alpha1.TaskSpec) {
		s.Type, s.Command, s.Suspend, s.Schedule = v1alpha1.TaskTypeContainer, []string{"true"}, true, "@daily"
	})
	native := worker.At(x.URL)
	paths := []string{"/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/secrets/in", "/api/v1/namespaces/default/secrets/out"}
	for _, kind := range []string{"gateways/chat", "gatewaybindings/room", "gatewayevents/" + e.Name, "gatewaydeliveries/" + d.Name, "gatewayidentities/x"} {
		list, _, _ := strings.Cut(kind, "/")
		paths = append(paths, api("default")+kind, api("default")+list, api("default")+list+"?watch=true&fieldSelector=status.sessionName%3D"+e.Status.SessionName)
	}
	paths = append(paths, api("default")+"sessions/"+e.Status.SessionName, api("default")+"sessions/"+e.Status.SessionName+"/transcript", api("default")+"tasks/"+e.Status.TaskName)
	for _, path := range paths {
		if a := native.Get(path); a.Code != http.StatusForbidden && a.Code != http.StatusNotFound || strings.Contains(a.Body, "secret plan") || strings.Contains(a.Body, chatadapter.Token) {
			t.Errorf("GET %s: %d %.300s", path, a.Code, a.Body)
		}
	}
	for path, kind := range map[string]string{
		"gatewaydeliveries": "GatewayDelivery", "gatewaydeliveries/" + d.Name + "/send": "GatewayDelivery", "gatewaydeliveries/" + d.Name + "/retry": "GatewayDelivery",
		"gatewaydeliveries/" + d.Name + "/abandon": "GatewayDelivery", "gatewayevents": "GatewayEvent", "gatewayevents/" + e.Name + "/replay": "GatewayEvent",
		"gateways/chat/probe": "GatewayProbe", "gatewayrecordqueries": "GatewayRecordQuery", "gateways": "Gateway", "gatewaybindings": "GatewayBinding", "gatewayidentities": "GatewayIdentity",
	} {
		if a := native.Post(api("default")+path, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"`+kind+`","metadata":{"name":"x"}}`); a.Code != http.StatusForbidden {
			t.Errorf("POST %s: %d %.300s", path, a.Code, a.Body)
		}
	}
	for _, path := range []string{"/api/v1/gateway-events", "/api/v1/gateway-deliveries", "/api/v1/gateway-events/" + e.Name, "/api/v1/gateways/chat"} {
		if a := worker.Get(path); a.Code != http.StatusForbidden && a.Code != http.StatusNotFound || strings.Contains(a.Body, "secret plan") {
			t.Errorf("GET %s: %d %.300s", path, a.Code, a.Body)
		}
	}
	body := string(encoded(t, chatadapter.Event("forged", "t", "hello")))
	if a := worker.With("Content-Type", "application/json").Do(http.MethodPost, door, body); a.Code != http.StatusUnauthorized {
		t.Errorf("the door: %d %s", a.Code, a.Body)
	}
	if n := len(x.adapter.Said("")); n != 1 {
		t.Errorf("%d texts in the chat", n)
	}
	if r := x.post(chatadapter.Event("a", "t", "the secret plan")); r.Status != protocol.ReplyDuplicate || len(x.events()) != 1 {
		t.Errorf("%+v, %d events", r, len(x.events()))
	}
}
