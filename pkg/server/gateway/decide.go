// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	restclient "k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// What is said in a conversation about a decision that does not count. Who is known here, and to whom, is nobody's business there.
const (
	notAllowed  = "You may not decide about this."
	notWaiting  = "Nothing with this code waits for a decision here."
	decidedElse = "This was decided already."
	notHere     = "Nothing can be decided here now."
)

// refusal is why a decision does not count.
type refusal struct {
	// told is what its writer is told, and why what the record says.
	told, why string
}

func (r refusal) Error() string { return r.why }

// decisions makes the decisions that people write.
type decisions struct{ *Hub }

// Decide decides on an approval as an event says, in the name of the user who its sender is. It is the decision of that user: whether it
// counts is decided as for any other of theirs, by their rights and by policies. What was begun when a server was killed is recognised by the
// reason, which names the event. A decision that counts is told in the conversation by the controller, like any other.
func (h *Hub) Decide(ctx context.Context, e *v1alpha1.GatewayEvent) (*v1alpha1.GatewayEvent, error) {
	return decisions{h}.take(ctx, e.DeepCopy()) // what is found out is added to it
}

// take makes a decision, and ends its event.
func (h decisions) take(ctx context.Context, e *v1alpha1.GatewayEvent) (*v1alpha1.GatewayEvent, error) {
	if at := e.Status.ExpiresAt; at != nil && !at.After(h.o.Clock.Now()) {
		return h.decided(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
			s.State, s.Reason, s.StateMessage = v1alpha1.GatewayEventExpired, v1alpha1.ReasonGatewayExpired, "it could not be decided in time"
		})
	}
	err := h.decide(ctx, e)
	r, refused := errors.AsType[refusal](err)
	switch {
	case err == nil:
		return h.decided(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
			s.State, s.Reason, s.StateMessage = v1alpha1.GatewayEventCompleted, v1alpha1.ReasonGatewayDecided, ""
			s.Decision.Accepted = true
		})
	case !refused:
		return nil, err
	}
	delivery, err := h.tell(ctx, e, r.told)
	if err != nil {
		return nil, err
	}
	return h.decided(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
		s.State, s.Reason, s.StateMessage, s.DeliveryID = v1alpha1.GatewayEventRejected, v1alpha1.ReasonGatewayDecisionRefused, clip.Text(r.why, maxMessage), delivery
	})
}

// decided ends an event, with what was found out about its decision.
func (h decisions) decided(ctx context.Context, e *v1alpha1.GatewayEvent, how func(*v1alpha1.GatewayEventStatus)) (*v1alpha1.GatewayEvent, error) {
	now := h.now()
	return h.o.Stored.Events.UpdateStored(resource.AsServer(context.WithoutCancel(ctx), e.Namespace), e.Name, func(row *v1alpha1.GatewayEvent) error {
		if row.UID != e.UID || row.Status.State != e.Status.State || row.Status.Replays != e.Status.Replays {
			return apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, errors.New("it was changed meanwhile"))
		}
		row.Status.Decision = e.Status.Decision.DeepCopy()
		row.Status.NextAttemptAt, row.Status.UpdatedAt = nil, &now
		how(&row.Status)
		if row.Status.State != v1alpha1.GatewayEventQueued {
			row.Status.CompletedAt = &now
		}
		return nil
	})
}

// tell has the sender of an event told something, and returns the delivery.
func (h decisions) tell(ctx context.Context, e *v1alpha1.GatewayEvent, text string) (string, error) {
	g, err := h.gateway(ctx, e.Namespace, e.Spec.GatewayName)
	if apierrors.IsNotFound(err) || err == nil && g.UID != e.Spec.GatewayUID {
		return "", nil // nobody can be told
	}
	if err != nil {
		return "", err
	}
	d, _, err := h.o.Stored.Deliveries.Ensure(ctx, gateway.Named(gateway.DeliveryOf(e, g, v1alpha1.GatewayDeliveryError, text), gateway.DeliveryID(e.UID, e.Status.Replays)), false)
	if err != nil {
		return "", err
	}
	return d.Name, nil
}

// decide makes a decision. The error may be a refusal. What it found out is in e.
func (h decisions) decide(ctx context.Context, e *v1alpha1.GatewayEvent) error {
	b, err := h.o.Stored.Bindings.Get(resource.AsServer(ctx, e.Namespace), e.Status.BindingName)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err != nil || b.UID != e.Status.BindingUID:
		return refusal{notHere, "the GatewayBinding is gone"}
	case b.Spec.Approvals != v1alpha1.GatewayApprovalsConversation || !b.Status.Programmed || b.Status.ObservedGeneration != b.Generation:
		return refusal{notHere, "the GatewayBinding does not permit decisions, or its adapter cannot verify senders: " + b.Status.Message}
	}
	who, err := h.o.Stored.IdentityOf(ctx, e.Namespace, e.Spec.GatewayName, e.Spec.AccountID, e.Spec.SenderID)
	if err != nil {
		return err
	}
	if who == nil {
		return refusal{notAllowed, "no GatewayIdentity says which user the sender is"}
	}
	server, err := h.client(restclient.ImpersonationConfig{})
	if err != nil {
		return err
	}
	d := e.Status.Decision
	again := d.Approval != ""
	if !again {
		a, err := h.waiting(ctx, server, e)
		if err != nil {
			return err
		}
		d.Approval, d.Subject = a.Name, who.Spec.Username
		if _, err := h.decided(ctx, e, func(*v1alpha1.GatewayEventStatus) {}); err != nil { // before anything is decided
			return err
		}
	}
	user, err := h.client(restclient.ImpersonationConfig{UserName: who.Spec.Username, Groups: who.Spec.Groups})
	if err != nil {
		return err
	}
	_, reason := gateway.DecisionOf(e.Spec.Text)
	mark := "(gateway event " + e.Name + ")"
	if again { // a server was killed when it had begun
		a, err := server.CoreV1alpha1().Approvals(e.Namespace).Get(ctx, d.Approval, metav1.GetOptions{})
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("approval: %w", err)
		case err == nil && strings.HasSuffix(a.Status.DecisionReason, mark) && a.Status.DecisionActor == d.Subject:
			return nil
		}
		d.Subject = who.Spec.Username // another object may say by now who the sender is
	}
	_, err = user.CoreV1alpha1().Approvals(e.Namespace).Decide(ctx, d.Approval, &v1alpha1.ApprovalDecision{
		Spec: v1alpha1.ApprovalDecisionSpec{Decision: d.Decision, Reason: strings.TrimSpace(reason + " " + mark)},
	}, metav1.CreateOptions{})
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err): // a policy may answer with the latter two
		return refusal{notAllowed, err.Error()}
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsGone(err):
		return refusal{decidedElse, err.Error()}
	}
	return fmt.Errorf("decide on %s: %w", d.Approval, err)
}

// client returns a client of this server that acts as somebody; as the server itself if that is empty.
func (h decisions) client(as restclient.ImpersonationConfig) (versioned.Interface, error) {
	c := restclient.CopyConfig(h.o.Loopback)
	c.QPS = -1 // events are limited where they arrive
	c.Impersonate = as
	client, err := versioned.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client of this server: %w", err)
	}
	return client, nil
}

// waiting returns the approval that an event means: one that waits, with the code that it names, of a task that answers somebody in the place
// where the event was written.
func (h decisions) waiting(ctx context.Context, server versioned.Interface, e *v1alpha1.GatewayEvent) (*v1alpha1.Approval, error) {
	list, err := server.CoreV1alpha1().Approvals(e.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("status.state", string(v1alpha1.ApprovalPending)).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	var found []*v1alpha1.Approval
	for i := range list.Items {
		a := &list.Items[i]
		if gateway.ApprovalCode(a) != e.Status.Decision.Code {
			continue
		}
		asked, err := h.asked(ctx, server, a)
		if err != nil {
			return nil, err
		}
		if asked != nil && gateway.SamePlace(&asked.Spec, &e.Spec) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return nil, refusal{notWaiting, fmt.Sprintf("no approval with the code %s waits in this conversation", e.Status.Decision.Code)}
	case 1:
		return found[0], nil
	}
	return nil, refusal{notWaiting, fmt.Sprintf("%d approvals with the code %s wait in this conversation; decide on them elsewhere", len(found), e.Status.Decision.Code)}
}

// asked returns the event that the task at the top of the tree of an approval answers; nil if there is none.
func (h decisions) asked(ctx context.Context, server versioned.Interface, a *v1alpha1.Approval) (*v1alpha1.GatewayEvent, error) {
	root := a.Spec.RootTask
	if root == "" {
		root = a.Spec.TaskName
	}
	t, err := server.CoreV1alpha1().Tasks(a.Namespace).Get(ctx, root, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the task is gone
	}
	if err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	name := t.Annotations[v1alpha1.AnnotationGatewayEvent]
	if name == "" || a.Spec.RootTaskUID != "" && t.UID != a.Spec.RootTaskUID {
		return nil, nil //nolint:nilnil // it answers nobody
	}
	e, err := h.o.Stored.Events.Get(resource.AsServer(ctx, a.Namespace), name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // its record is gone
	}
	return e, err
}
