// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// causes returns the fields of an error and what is wrong with each.
func causes(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if err == nil || !ok || !apierrors.IsInvalid(err) {
		return fmt.Sprint(err)
	}
	var all []string
	for _, c := range status.ErrStatus.Details.Causes {
		all = append(all, c.Field+": "+c.Message)
	}
	return strings.Join(all, "\n")
}

// TestRules: each rule, of tags and by hand, refuses with one cause that names the field.
func TestRules(t *testing.T) {
	w := newWorld(t, Options{})
	long := strings.Repeat("a", 257)
	const (
		auth = "inboundAuthRef: {name: in, key: token}, outboundAuthRef: {name: out, key: token}"
		gate = "gatewayClassName: matrix, adapter: {endpoint: 'https://chat.example/x'}, " + auth
		bind = "gatewayRef: {name: g}, agentRef: {name: a}"
	)
	at := func(endpoint string) string {
		return "{gatewayClassName: matrix, adapter: {endpoint: '" + endpoint + "'}, " + auth + "}"
	}
	match := 0
	bound := func(more string) string { // each is for a conversation of its own
		match++
		return fmt.Sprintf("{%s, match: {accountId: x, contextId: 'c%d'}, %s}", bind, match, more)
	}
	for _, c := range []struct{ kind, spec, want string }{
		{"GatewayClass", "{contractVersion: platform.gateway.v1, allowedMetadataKeys: [a.b/c_d-1]}", "<nil>"},
		{"GatewayClass", "{contractVersion: platform.gateway.v2}", "spec.contractVersion: "},
		{"GatewayClass", "{contractVersion: platform.gateway.v1, allowedMetadataKeys: ['a b']}", "spec.allowedMetadataKeys[0]: "},
		{"GatewayClass", "{contractVersion: platform.gateway.v1, allowedMetadataKeys: [" + long[:129] + "]}", "spec.allowedMetadataKeys[0]: "},

		{"Gateway", "{" + gate + "}", "<nil>"},
		{"Gateway", "{gatewayClassName: matrix, adapter: {serviceRef: {name: s}}, " + auth + "}", "<nil>"},
		{"Gateway", "{gatewayClassName: matrix, adapter: {}, " + auth + "}", "spec.adapter: Required value"},
		{"Gateway", "{gatewayClassName: matrix, adapter: {endpoint: 'https://h', serviceRef: {name: s}}, " + auth + "}", "spec.adapter.serviceRef: Forbidden"},
		{"Gateway", at("http://h"), "spec.adapter.endpoint: "},
		{"Gateway", at("https://u:secret@h"), "spec.adapter.endpoint: "},
		{"Gateway", at("https://h?a=b"), "spec.adapter.endpoint: "},
		{"Gateway", at("https://h#f"), "spec.adapter.endpoint: "},
		{"Gateway", at("https://:443/"), "spec.adapter.endpoint: Invalid value: must have a host"},
		{"Gateway", at("https://h:65536/"), "spec.adapter.endpoint: Invalid value: port must be"},
		{"Gateway", "{gatewayClassName: matrix, adapter: {endpoint: 'https://h'}, inboundAuthRef: {name: s, key: a}, outboundAuthRef: {name: s, key: b}}", "spec.outboundAuthRef.name: "},
		{"Gateway", "{" + gate + ", metadata: {platform.ai/x: a}}", "spec.metadata[platform.ai/x]: "},
		{"Gateway", "{" + gate + ", metadata: {'a b': a}}", "spec.metadata[a b]: "},
		{"Gateway", "{" + gate + ", metadata: {a: " + strings.Repeat("a", 1025) + "}}", "spec.metadata[a]: Too long"},

		{"GatewayBinding", bound(""), "<nil>"},
		{"GatewayBinding", "{" + bind + ", match: {accountId: x}}", "spec.match.contextId: Required value"},
		{"GatewayBinding", "{" + bind + ", match: {accountId: x, contextId: ' '}}", "spec.match.contextId: "},
		{"GatewayBinding", "{" + bind + ", match: {accountId: x, contextId: " + long + "}}", "spec.match.contextId: "},
		{"GatewayBinding", "{" + bind + ", match: {accountId: x, contextId: c, threadId: \"a\\nb\"}}", "spec.match.threadId: "},
		{"GatewayBinding", bound("senderPolicy: {allowedSenderIds: [a, '']}"), "spec.senderPolicy.allowedSenderIds[1]: Required value"},
		{"GatewayBinding", bound("session: {name: s}"), "spec.session.name: Forbidden"},
		{"GatewayBinding", bound("session: {mode: explicit}"), "spec.session.name: Required value"},
		{"GatewayBinding", bound("session: {mode: explicit, name: s}"), "<nil>"},
		{"GatewayBinding", bound("priority: 1001"), "spec.priority: "},
		{"GatewayBinding", bound("taskDefaults: {timeout: 24h, retryPolicy: {maxRetries: 10, backoffMultiplier: 10, initialDelay: 1h}}, lateAnswers: {after: 24h}"), "<nil>"},
		{"GatewayBinding", bound("taskDefaults: {timeout: 24h1s}"), "spec.taskDefaults.timeout: "},
		{"GatewayBinding", bound("taskDefaults: {timeout: 0s}"), "spec.taskDefaults.timeout: "},
		{"GatewayBinding", bound("taskDefaults: {retryPolicy: {maxRetries: 11}}"), "spec.taskDefaults.retryPolicy.maxRetries: "},
		{"GatewayBinding", bound("taskDefaults: {retryPolicy: {backoffMultiplier: 10.5}}"), "spec.taskDefaults.retryPolicy.backoffMultiplier: "},
		{"GatewayBinding", bound("taskDefaults: {retryPolicy: {initialDelay: 61m}}"), "spec.taskDefaults.retryPolicy.initialDelay: "},
		{"GatewayBinding", bound("lateAnswers: {after: -1s}"), "spec.lateAnswers.after: "},

		{"GatewayIdentity", "{gatewayRef: {name: g}, accountId: x, senderId: s, username: ada, groups: [g]}", "<nil>"},
		{"GatewayIdentity", "{gatewayRef: {name: g}, accountId: x, senderId: \"s\\u0000\", username: ada}", "spec.senderId: "},
		{"GatewayIdentity", "{gatewayRef: {name: g}, accountId: x, senderId: s2, username: \"ada\\n\"}", "spec.username: "},
		{"GatewayIdentity", "{gatewayRef: {name: g}, accountId: x, senderId: s2, username: ada, groups: ['']}", "spec.groups[0]: Required value"},
	} {
		plural := map[string]string{"GatewayClass": "gatewayclasses", "Gateway": "gateways", "GatewayBinding": "gatewaybindings", "GatewayIdentity": "gatewayidentities"}[c.kind]
		_, err := w.create(plural, w.decode(c.kind, c.spec))
		if got := causes(err); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") || strings.Contains(got, "secret@") {
			t.Errorf("%s %.120s:\n%s, want %s", c.kind, c.spec, got, c.want)
		}
	}
}

// TestAmbiguousBindings: no binding is written beside which another one would match the same with the same priority.
func TestAmbiguousBindings(t *testing.T) {
	w := newWorld(t, Options{})
	binding := func(name, gateway string, priority int32) *v1alpha1.GatewayBinding {
		b := w.decode("GatewayBinding", "{gatewayRef: {name: "+gateway+"}, agentRef: {name: a}, match: {accountId: x, contextId: c}}").(*v1alpha1.GatewayBinding)
		b.Name, b.GenerateName, b.Spec.Priority = name, "", priority
		return b
	}
	for _, b := range []*v1alpha1.GatewayBinding{binding("first", "g", 0), binding("other", "h", 0), binding("second", "g", 1)} {
		if _, err := w.create("gatewaybindings", b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.create("gatewaybindings", binding("third", "g", 1)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "GatewayBinding second") {
		t.Errorf("create: %v", err)
	}
	set := func(change func(*v1alpha1.GatewayBindingSpec)) error {
		_, err := w.update("gatewaybindings", "first", false, func(o runtime.Object) { change(&o.(*v1alpha1.GatewayBinding).Spec) })
		return err
	}
	if err := set(func(s *v1alpha1.GatewayBindingSpec) { s.Priority = 1 }); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "GatewayBinding second") {
		t.Errorf("update: %v", err)
	}
	if err := set(func(s *v1alpha1.GatewayBindingSpec) { s.GatewayRef.Name = "h" }); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.gatewayRef") {
		t.Errorf("another gateway: %v", err)
	}
	if err := set(func(s *v1alpha1.GatewayBindingSpec) { s.AgentRef.Name = "b" }); err != nil {
		t.Errorf("its own conversation: %v", err)
	}
}

// TestImpersonation: whoever says who a sender is must be able to be that user and a member of each group; a sender is one user, who stays.
func TestImpersonation(t *testing.T) {
	w := newWorld(t, Options{})
	var asked []string
	w.may = func(a authorizer.Attributes) bool {
		if a.GetVerb() != "impersonate" {
			return true
		}
		asked = append(asked, fmt.Sprintf("%s %q/%s %s/%s", a.GetUser().GetName(), a.GetAPIGroup(), a.GetResource(), a.GetNamespace(), a.GetName()))
		return a.GetName() != "root" && a.GetName() != "admins"
	}
	identity := func(sender, user string, groups ...string) *v1alpha1.GatewayIdentity {
		i := &v1alpha1.GatewayIdentity{Spec: v1alpha1.GatewayIdentitySpec{GatewayRef: v1alpha1.LocalReference{Name: "g"}, AccountID: "x", SenderID: sender, Username: user, Groups: groups}}
		i.Name = sender
		return i
	}
	for _, c := range []struct {
		i    *v1alpha1.GatewayIdentity
		want string
	}{
		{identity("a", "bob", "writers"), "<nil>"},
		{identity("b", "root"), `spec.username: Forbidden: this needs the right to impersonate the user "root"`},
		{identity("b", "bob", "writers", "admins"), `spec.groups[1]: Forbidden: this needs the right to impersonate the group "admins"`},
		{identity("b", "system:serviceaccount:team:root"), `spec.username: Forbidden: this needs the right to impersonate the serviceaccount "root"`},
	} {
		if _, err := w.create("gatewayidentities", c.i); causes(err) != c.want {
			t.Errorf("%v: %v", c.i.Spec, causes(err))
		}
		_, err := w.update("gatewayidentities", "applied", true, func(o runtime.Object) {
			c.i.DeepCopyInto(o.(*v1alpha1.GatewayIdentity))
			o.(*v1alpha1.GatewayIdentity).Name = "applied"
		})
		if want := strings.Replace(c.want, "<nil>", "spec.senderId: Forbidden: the GatewayIdentity a says who this sender is", 1); !strings.HasPrefix(causes(err), want) {
			t.Errorf("%v, applied: %v", c.i.Spec, causes(err))
		}
	}
	if got, want := asked[0], `ada ""/users /bob`; got != want || !strings.Contains(strings.Join(asked, ","), `""/serviceaccounts team/root`) {
		t.Errorf("asked %v", asked)
	}
	if _, err := w.create("gatewayidentities", identity("c", "carol")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.update("gatewayidentities", "c", false, func(o runtime.Object) { o.(*v1alpha1.GatewayIdentity).Spec.Username = "bob" }); !apierrors.IsInvalid(err) {
		t.Errorf("another user: %v", err)
	}
	again := identity("c", "bob")
	again.Name = "again"
	if _, err := w.create("gatewayidentities", again); !strings.Contains(causes(err), "spec.senderId") {
		t.Errorf("a second user of a sender: %v", err)
	}
	ctx := w.as("ada", "elsewhere", "tasks")
	if i, err := w.o.Stored.IdentityOf(ctx, "default", "g", "x", "c"); err != nil || i == nil || i.Spec.Username != "carol" {
		t.Errorf("%v, %v", i, err)
	}
	for _, unknown := range [][4]string{{"default", "g", "x", "C"}, {"default", "g", "y", "c"}, {"default", "h", "x", "c"}, {"other", "g", "x", "c"}} {
		if i, err := w.o.Stored.IdentityOf(ctx, unknown[0], unknown[1], unknown[2], unknown[3]); i != nil || err != nil {
			t.Errorf("%v: %v, %v", unknown, i, err)
		}
	}
}
