// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/visible"
)

// What is told about approvals. Each text has a delivery whose name is derived, so that whoever tells it again, after a crash, tells it once.
const (
	toldAsked   = "asked"
	toldDecided = "decided"
)

// rootOf returns the UID of the task at the top of the tree that waits for an approval.
func rootOf(a *v1alpha1.Approval) string {
	return string(cmp.Or(a.Spec.RootTaskUID, a.Spec.TaskUID))
}

// waitsOrDecided wakes the session of the event that the tree of an approval answers. Only approvals that wait are cached, so one that was
// decided looks as if it were deleted.
func (w *world) waitsOrDecided(ctx context.Context, o client.Object) []reconcile.Request {
	a, ok := o.(*v1alpha1.Approval)
	if !ok {
		return nil
	}
	t := &v1alpha1.Task{}
	if found, err := get(ctx, w, a.Namespace, cmp.Or(a.Spec.RootTask, a.Spec.TaskName), t); err != nil || !found || string(t.UID) != rootOf(a) {
		return nil // the session is looked at again in a minute
	}
	return toSession(ctx, t)
}

// announce tells in the conversation of an event what its task asks an approval for, and what was decided about it, wherever that was.
func (d *dispatcher) announce(ctx context.Context, e *v1alpha1.GatewayEvent, t *v1alpha1.Task) error {
	b := &v1alpha1.GatewayBinding{}
	if found, err := get(ctx, d, e.Namespace, e.Status.BindingName, b); err != nil || !found {
		return err
	}
	if b.Spec.Approvals != v1alpha1.GatewayApprovalsConversation || t.Annotations[v1alpha1.AnnotationGatewayInterim] != "true" {
		return nil
	}
	var pending v1alpha1.ApprovalList
	if err := d.List(ctx, &pending, client.InNamespace(e.Namespace), client.MatchingFields{ofRoot: string(t.UID)}); err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	var said v1alpha1.GatewayDeliveryList
	if err := d.live.List(ctx, &said, client.InNamespace(e.Namespace), client.MatchingFields{"spec.eventId": e.Name}); err != nil {
		return fmt.Errorf("deliveries of event %s: %w", e.Name, err)
	}
	told := map[string]bool{}
	for i := range said.Items {
		told[said.Items[i].Name] = true
	}
	waits := map[string]bool{}
	slices.SortFunc(pending.Items, func(a, b v1alpha1.Approval) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Status.RequestedSeq, b.Status.RequestedSeq))
	})
	for i := range pending.Items {
		a := &pending.Items[i]
		waits[a.Name] = true
		if err := d.tell(ctx, e, a.Name, toldAsked, question(a), told); err != nil {
			return err
		}
	}
	for i := range said.Items {
		name := said.Items[i].Annotations[v1alpha1.AnnotationGatewayApproval]
		if name == "" || waits[name] || told[toldName(e, name, toldDecided)] {
			continue
		}
		a := &v1alpha1.Approval{}
		found, err := get(ctx, d.live, e.Namespace, name, a)
		if err != nil {
			return fmt.Errorf("approval: %w", err)
		}
		if !found || a.Status.State == v1alpha1.ApprovalPending {
			continue
		}
		if err := d.tell(ctx, e, a.Name, toldDecided, verdict(a), told); err != nil {
			return err
		}
	}
	return nil
}

func toldName(e *v1alpha1.GatewayEvent, approval, what string) string {
	return gateway.InterimID(e.UID, e.Status.Replays, what, approval)
}

// tell makes the delivery of a text about an approval, unless there is one.
func (d *dispatcher) tell(ctx context.Context, e *v1alpha1.GatewayEvent, approval, what, text string, told map[string]bool) error {
	name := toldName(e, approval, what)
	if told[name] {
		return nil
	}
	g := &v1alpha1.Gateway{}
	if _, err := get(ctx, d, e.Namespace, e.Spec.GatewayName, g); err != nil {
		return fmt.Errorf("read the gateway: %w", err)
	}
	o := gateway.Named(gateway.DeliveryOf(e, g, v1alpha1.GatewayDeliveryInterim, text), name)
	o.Annotations = map[string]string{v1alpha1.AnnotationGatewayApproval: approval}
	o.Spec.MaxAttempts = d.o.DeliveryAttempts
	if err := d.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("delivery %s: %w", name, err)
	}
	told[name] = true
	return nil
}

// maxLine is the maximum length of a line of a question, in bytes.
const maxLine = 8 << 10

// question returns what people are told who can decide about an approval. What the agent says of it is on lines of their own that begin with
// what it is, so that it cannot speak for the platform.
func question(a *v1alpha1.Approval) string {
	code := gateway.ApprovalCode(a)
	var b strings.Builder
	line := func(what, text string) {
		if text = strings.TrimSpace(visible.Line(text)); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", what, clip.Marked(text, maxLine))
		}
	}
	fmt.Fprintf(&b, "An approval is needed: %s\n", code)
	line("Action", a.Spec.Action)
	line("Risk", a.Spec.RiskSummary)
	line("Tool", a.Spec.TargetTool)
	if p := a.Spec.TargetArgsPreview; p != nil {
		line("Arguments", string(p.Raw))
		if !a.Status.ArgumentsExact {
			b.WriteString("The arguments are not shown in full.\n")
		}
	}
	if at := a.Spec.ExpiresAt; at != nil {
		line("Until", at.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, "To decide, write \"%s %s\" or \"%s %s\".", gateway.Approve, code, gateway.Decline, code)
	return clip.Text(b.String(), protocol.MaxText)
}

// verdict returns what people are told about an approval that does not wait any more.
func verdict(a *v1alpha1.Approval) string {
	code := gateway.ApprovalCode(a)
	switch a.Status.State {
	case v1alpha1.ApprovalApproved:
		return code + " was approved."
	case v1alpha1.ApprovalDeclined:
		return code + " was declined."
	case v1alpha1.ApprovalExpired:
		return code + " was not decided in time."
	}
	return code + " is not needed any more."
}
