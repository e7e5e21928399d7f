// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// gateways calls the operations about gateways, of which there are two of each kind, for a second page.
func (r *replay) gateways(c typed.CoreV1alpha1Interface, k kubernetes.Interface) {
	r.t.Helper()
	ctx := r.t.Context()
	// Classes are outside namespaces.
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "adm"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-viewer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "adm"}},
	}
	kit.Must[*rbacv1.ClusterRoleBinding](r.t)(k.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}))
	now := metav1.NowMicro()
	for _, name := range []string{"a", "b"} {
		meta := metav1.ObjectMeta{Name: name}
		class := &v1alpha1.GatewayClass{ObjectMeta: meta, Spec: v1alpha1.GatewayClassSpec{ContractVersion: v1alpha1.GatewayContractV1}}
		kit.Must[*v1alpha1.GatewayClass](r.t)(c.GatewayClasses().Create(ctx, class, metav1.CreateOptions{}))
		g := &v1alpha1.Gateway{ObjectMeta: meta, Spec: v1alpha1.GatewaySpec{
			GatewayClassName: name, Adapter: v1alpha1.GatewayAdapter{Endpoint: "https://adapter.example"},
			InboundAuthRef: v1alpha1.KeyReference{Name: "in", Key: "token"}, OutboundAuthRef: v1alpha1.KeyReference{Name: "out", Key: "token"},
		}}
		kit.Must[*v1alpha1.Gateway](r.t)(c.Gateways("default").Create(ctx, g, metav1.CreateOptions{}))
		b := &v1alpha1.GatewayBinding{ObjectMeta: meta, Spec: v1alpha1.GatewayBindingSpec{
			GatewayRef: v1alpha1.LocalReference{Name: name}, AgentRef: v1alpha1.LocalReference{Name: "x"}, Match: v1alpha1.GatewayMatch{AccountID: "bot", ContextID: "room"},
		}}
		kit.Must[*v1alpha1.GatewayBinding](r.t)(c.GatewayBindings("default").Create(ctx, b, metav1.CreateOptions{}))
		owner := v1alpha1.GatewayOwner{GatewayName: name, GatewayUID: "u"}
		e := &v1alpha1.GatewayEvent{ObjectMeta: meta, Spec: v1alpha1.GatewayEventSpec{
			GatewayOwner: owner, ExternalEventID: name, PayloadSHA256: "0", ProtocolVersion: v1alpha1.GatewayContractV1, EventType: "text",
			AccountID: "bot", ContextID: "room", SenderID: "ada", Text: "hello", CreatedAt: now,
		}}
		kit.Must[*v1alpha1.GatewayEvent](r.t)(c.GatewayEvents("default").Create(ctx, e, metav1.CreateOptions{}))
		d := &v1alpha1.GatewayDelivery{ObjectMeta: meta, Spec: v1alpha1.GatewayDeliverySpec{
			GatewayOwner: owner, IdempotencyID: name, EventID: name, SessionName: "s", Kind: v1alpha1.GatewayDeliveryFinal, AccountID: "bot", ContextID: "room", Text: "hello", CreatedAt: now,
		}}
		d = kit.Must[*v1alpha1.GatewayDelivery](r.t)(c.GatewayDeliveries("default").Create(ctx, d, metav1.CreateOptions{}))
		d.Status.State = v1alpha1.GatewayDeliveryDeadLettered
		kit.Must[*v1alpha1.GatewayDelivery](r.t)(c.GatewayDeliveries("default").UpdateStatus(ctx, d, metav1.UpdateOptions{}))
	}
	for _, path := range []string{"gatewayclasses", "gateways", "gatewaybindings", "gateway-events", "gateway-deliveries"} {
		r.call(r.admin, http.MethodGet, "/api/v1/"+path, "")
		r.call(r.admin, http.MethodGet, "/api/v1/"+path+"/a", "")
	}
	r.call(r.admin, http.MethodPost, "/api/v1/gateway-deliveries/a/retry", "")
}
