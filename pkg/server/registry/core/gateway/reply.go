// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/object"
)

const (
	// MaxReplyBytes is the maximum length of a reply as JSON, in bytes. JSON needs up to six bytes for a character.
	MaxReplyBytes = 128 << 10
	// maxReplyText is the maximum length of the text of a reply, in characters.
	maxReplyText = 16 << 10
	// maxReplies is how much a task may say before its answer.
	maxReplies = 100
)

// Reply serves POST of the subresource reply of tasks: it makes a delivery of what a task says before its answer. A text of the same messageID
// is delivered once.
func (s Stored) Reply(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	r, ok := obj.(*v1alpha1.TaskReply)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskReply, not %T", obj))
	}
	switch n := utf8.RuneCountInString(r.Spec.Text); {
	case strings.TrimSpace(r.Spec.Text) == "":
		return nil, apierrors.NewBadRequest("spec.text: must say something")
	case n > maxReplyText:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.text: must have at most %d characters, has %d", maxReplyText, n))
	case r.Spec.MessageID == "":
		return nil, apierrors.NewBadRequest("spec.messageID: is required")
	}
	t := p.Object
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, fmt.Errorf(format, args...))
	}
	switch {
	case t.Annotations[v1alpha1.AnnotationGatewayEvent] == "":
		return nil, refuse("the task answers no event of a gateway")
	case t.Annotations[v1alpha1.AnnotationGatewayInterim] != "true":
		return nil, refuse("the adapter of the gateway posts nothing while a task runs")
	case t.Status.Phase != v1alpha1.TaskRunning:
		return nil, refuse("the task is not running")
	}
	e, err := s.Events.Get(ctx, t.Annotations[v1alpha1.AnnotationGatewayEvent])
	if err != nil {
		return nil, err
	}
	if e.Status.State != v1alpha1.GatewayEventTaskCreated || e.Status.TaskUID != t.UID {
		return nil, refuse("the event of the gateway is not answered by this task any more")
	}
	g, err := s.Gateways.Get(ctx, e.Spec.GatewayName)
	if apierrors.IsNotFound(err) || err == nil && g.UID != e.Spec.GatewayUID {
		return nil, refuse("the gateway is gone")
	}
	if err != nil {
		return nil, err
	}
	text, _ := redact.Text(r.Spec.Text)
	d := gateway.Named(gateway.DeliveryOf(e, g, v1alpha1.GatewayDeliveryInterim, text), gateway.InterimID(e.UID, e.Status.Replays, "reply", r.Spec.MessageID))
	if err := s.roomFor(ctx, e, d.Name); err != nil {
		return nil, err
	}
	if _, _, err = s.Deliveries.Ensure(ctx, d, p.DryRun); err != nil {
		return nil, err
	}
	return &v1alpha1.TaskReply{Spec: r.Spec, Status: v1alpha1.TaskReplyStatus{Delivery: d.Name}}, nil
}

// roomFor refuses a text of an event that has too many; one that is there already is always accepted.
func (s Stored) roomFor(ctx context.Context, e *v1alpha1.GatewayEvent, name string) error {
	n, err := s.said(e.Name)
	if err != nil || n < maxReplies {
		return err
	}
	if _, err := s.Deliveries.Get(ctx, name); !apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, errors.New("as much was said before the answer as may be; say the rest in the answer"))
}

// said returns how many deliveries an event has.
func (s Stored) said(event string) (int, error) {
	from, to := object.Only(event)
	return s.Deliveries.Count(FieldDeliveryEvent, from, to, maxReplies+1)
}
