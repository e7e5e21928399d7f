// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/plan"
)

// TestTask: the task of an event has what its binding says, is one that can run without a prompt of its own, and can be told from others.
func TestTask(t *testing.T) {
	long := strings.Repeat("a-long-name.", 15) + "x"
	e := &v1alpha1.GatewayEvent{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "gev-1", UID: "u"}}
	e.Spec.GatewayName, e.Spec.ExternalEventID, e.Status.SessionName = long, "$event:host", "gateway-session-"+strings.Repeat("0", 40)
	b := &v1alpha1.GatewayBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	var o Options
	o.complete()

	plain := taskOf(e, b, a, &o)
	want := v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: "a"}, Timeout: new(v1alpha1.Duration("30m0s")),
		SessionRef: &v1alpha1.TaskSessionReference{
			Name: e.Status.SessionName, Append: new(false), MaxMessages: new(int32(50)), ThroughMessageID: "gateway:gev-1:user", PromptIncluded: true,
		},
	}
	if diff := cmp.Diff(want, plain.Spec); diff != "" {
		t.Error(diff)
	}
	if plain.Name != gateway.TaskName("u", 0) || plain.Annotations[v1alpha1.AnnotationGatewayName] != long || !answers(plain, e) {
		t.Errorf("%+v", plain.ObjectMeta)
	}
	for key, value := range plain.Labels {
		if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 || value == "" {
			t.Errorf("label %s=%s: %v", key, value, errs)
		}
	}
	if got := plain.Labels[v1alpha1.LabelGatewaySession]; got != e.Status.SessionName {
		t.Errorf("the label of the session is %s", got)
	}

	a.Spec.Runtime = &v1alpha1.AgentCodingRuntime{}
	b.Spec.TaskDefaults = v1alpha1.GatewayTaskDefaults{
		Priority: new(int32(7)), Timeout: new(v1alpha1.Duration("5m")), RetryPolicy: &v1alpha1.RetryPolicy{MaxRetries: 2}, AgentRuntimeMaxTurns: new(int32(3)),
	}
	e.Status.Replays = 1
	coding := taskOf(e, b, a, &o)
	want.Type, want.Priority, want.Timeout, want.RetryPolicy = v1alpha1.TaskTypeAgent, new(int32(7)), new(v1alpha1.Duration("5m")), &v1alpha1.RetryPolicy{MaxRetries: 2}
	want.AgentRuntime = &v1alpha1.TaskAgentRuntime{MaxTurns: new(int32(3))}
	if diff := cmp.Diff(want, coding.Spec); diff != "" || coding.Name == plain.Name {
		t.Errorf("%s: %s", coding.Name, diff)
	}
	for _, task := range []*v1alpha1.Task{plain, coding} {
		if refused := plan.OfTask(task); len(refused) > 0 {
			t.Errorf("%s: %v", task.Spec.Type, refused[0])
		}
	}
	foreign := plain.DeepCopy()
	foreign.Annotations[v1alpha1.AnnotationGatewayEvent] = "gev-2"
	if answers(foreign, e) {
		t.Error("a task of another event is taken for that of this one")
	}
}

// TestFitting: an answer that is too long is cut between characters, and says so.
func TestFitting(t *testing.T) {
	whole := strings.Repeat("x", protocol.MaxText)
	if fitting(whole) != whole {
		t.Error("an answer that may be sent was changed")
	}
	for n := range 4 {
		got := fitting(strings.Repeat("x", n) + strings.Repeat("😀", protocol.MaxText/4))
		if n > 0 && (len(got) > protocol.MaxText || !utf8.ValidString(got) || !strings.HasSuffix(got, " bytes]")) {
			t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-40:])
		}
	}
}

// TestDelivery: an answer goes where the event came from, and is about the gateway as it is now, unless that is another one.
func TestDelivery(t *testing.T) {
	e := &v1alpha1.GatewayEvent{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "gev-1", UID: "u"}}
	e.Spec = v1alpha1.GatewayEventSpec{
		GatewayOwner: v1alpha1.GatewayOwner{NamespaceUID: "nu", GatewayName: "g", GatewayUID: "gu", GatewayGeneration: 1}, AccountID: "acc", ContextID: "ctx", ThreadID: "thr", ReplyTarget: "rt",
	}
	e.Status = v1alpha1.GatewayEventStatus{BindingName: "b", SessionName: "s", TaskName: "gw-1", TranscriptOrder: 7}
	g := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{UID: "gu", Generation: 3}, Spec: v1alpha1.GatewaySpec{Metadata: map[string]string{"k": "v"}}}
	name := gateway.DeliveryID("u", 0)
	want := v1alpha1.GatewayDeliverySpec{
		GatewayOwner: v1alpha1.GatewayOwner{NamespaceUID: "nu", GatewayName: "g", GatewayUID: "gu", GatewayGeneration: 3}, IdempotencyID: name, BindingName: "b", EventID: "gev-1", TaskName: "gw-1",
		SessionName: "s", Sequence: 7, Kind: v1alpha1.GatewayDeliveryFinal, AccountID: "acc", ContextID: "ctx", ThreadID: "thr", ReplyTarget: "rt", Text: "hello",
		Metadata: map[string]string{"k": "v"}, MaxAttempts: 10, CreatedAt: metav1.NewMicroTime(noon),
	}
	w := &world{now: func() time.Time { return noon }, o: Options{DeliveryAttempts: 10}}
	got := w.answerOf(e, g, v1alpha1.GatewayDeliveryFinal, "hello")
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Name != name || got.Namespace != "n" {
		t.Errorf("%s: %s", got.Name, diff)
	}
	g.UID = "another"
	if got := w.answerOf(e, g, v1alpha1.GatewayDeliveryFinal, "hello"); got.Spec.GatewayGeneration != 1 || got.Spec.Metadata != nil {
		t.Errorf("it has what another gateway says: %+v", got.Spec)
	}
}
