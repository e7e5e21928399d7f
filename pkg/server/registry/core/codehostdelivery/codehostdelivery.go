// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codehostdelivery serves codehostdeliveries: the ledger of what code hosts delivered to the webhook. The webhook appends (package
// pkg/server/webhook) and decides; people read, and may have a delivery decided again (replay).
package codehostdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// retention is how long a delivery is kept after it was decided.
const retention = 14 * 24 * time.Hour

// Options are what deliveries need. All fields are required.
type Options struct {
	Stored *resource.Stored[*v1alpha1.CodeHostDelivery]
	Clock  clock.PassiveClock
	// Wake tells the webhook that a delivery is to be decided.
	Wake func()
}

// Fields by which deliveries are found: those of one event, and those about one pull request or issue (ItemKey).
const (
	FieldID   = "spec.deliveryID"
	FieldItem = "item"
)

// ItemKey returns the value of FieldItem; empty for a delivery about something else.
func ItemKey(d *v1alpha1.CodeHostDelivery) string {
	if d.Spec.TargetKind == "" {
		return ""
	}
	return fmt.Sprintf("%s#%d", strings.ToLower(cmp.Or(d.Spec.RepositoryURL, d.Spec.Repository)), d.Spec.Number)
}

// Definition returns the resource codehostdeliveries.
func Definition(o Options) resource.Resource {
	begin := func(d *v1alpha1.CodeHostDelivery) {
		now := metav1.NewTime(o.Clock.Now()).Rfc3339Copy() // what is due is found by the stored time
		d.Status.State, d.Status.NextAttemptAt = v1alpha1.DeliveryReceived, &now
	}
	return &resource.Definition[*v1alpha1.CodeHostDelivery]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("codehostdeliveries"),
		Kind:       "CodeHostDelivery",
		Singular:   "codehostdelivery",
		ShortNames: []string{"chd"},
		Categories: []string{"platform-monitors"},
		Roles:      resource.Roles{Readers: resource.Users()},
		Scopes:     &external.Scopes{Read: "monitors:read"},
		Stored:     o.Stored,
		Fields: []resource.Field[*v1alpha1.CodeHostDelivery]{
			{Path: "status.state", Indexed: true, Value: func(d *v1alpha1.CodeHostDelivery) string { return string(d.Status.State) }},
			{Path: FieldID, Indexed: true, Value: func(d *v1alpha1.CodeHostDelivery) string { return d.Spec.DeliveryID }},
			{Path: FieldItem, Indexed: true, Value: ItemKey},
			{Path: "spec.repository", Value: func(d *v1alpha1.CodeHostDelivery) string { return d.Spec.Repository }},
			{Path: "spec.event", Value: func(d *v1alpha1.CodeHostDelivery) string { return d.Spec.Event }},
		},
		Columns: []resource.Column[*v1alpha1.CodeHostDelivery]{
			{Name: "Event", Description: "What happened.", Value: func(d *v1alpha1.CodeHostDelivery) any {
				return strings.TrimSuffix(d.Spec.Event+"/"+d.Spec.Action, "/")
			}},
			{Name: "Repository", Description: "The repository.", Value: func(d *v1alpha1.CodeHostDelivery) any { return d.Spec.Repository }},
			{Name: "Number", Type: "integer", Description: "The pull request or issue.", Value: func(d *v1alpha1.CodeHostDelivery) any { return d.Spec.Number }},
			{Name: "Labels", Description: "The labels that were set or removed.", Value: func(d *v1alpha1.CodeHostDelivery) any { return strings.Join(d.Spec.Labels, ",") }},
			{Name: "State", Description: "What became of it.", Value: func(d *v1alpha1.CodeHostDelivery) any { return string(d.Status.State) }},
			{Name: "Caused", Description: "What it caused.", Value: caused},
			{Name: "Delivery", Wide: true, Description: "The identity of the event.", Value: func(d *v1alpha1.CodeHostDelivery) any { return d.Spec.DeliveryID }},
			{Name: "Message", Wide: true, Description: "Why.", Value: func(d *v1alpha1.CodeHostDelivery) any { return d.Status.Message }},
		},
		Shape: resource.StateLedger[*v1alpha1.CodeHostDelivery]{
			Kept: resource.Kept[*v1alpha1.CodeHostDelivery]{PrepareForCreate: func(_ context.Context, d *v1alpha1.CodeHostDelivery) { begin(d) }},
			States: resource.States{
				Initial: []string{"Received"}, Ended: []string{"Processed", "Ignored", "Duplicate", "Failed"},
				Table: []resource.Transition{
					{From: "Received", To: "Processed"},
					{From: "Received", To: "Ignored"},
					{From: "Received", To: "Duplicate"},
					{From: "Received", To: "Failed"},
					{From: "Processed", To: "Received", Via: "replay"},
					{From: "Ignored", To: "Received", Via: "replay"},
					{From: "Duplicate", To: "Received", Via: "replay"},
					{From: "Failed", To: "Received", Via: "replay"},
				},
			},
			Entry: func(d *v1alpha1.CodeHostDelivery) resource.Entry {
				e := resource.Entry{State: string(d.Status.State)}
				if d.Status.NextAttemptAt != nil {
					e.Next = d.Status.NextAttemptAt.Time
				}
				return e
			},
			Retention: retention,
		},
		Subresources: []resource.Subresource[*v1alpha1.CodeHostDelivery]{{
			Name: "replay", New: func() runtime.Object { return &v1alpha1.CodeHostDelivery{} }, Creators: []resource.Role{resource.Operator},
			Create: func(ctx context.Context, p resource.Parent[*v1alpha1.CodeHostDelivery], _ runtime.Object) (runtime.Object, error) {
				caller, ok := request.UserFrom(ctx)
				if !ok {
					return nil, apierrors.NewUnauthorized("the caller is not known")
				}
				out, err := p.Update(ctx, func(now *v1alpha1.CodeHostDelivery) error {
					if now.Status.State == v1alpha1.DeliveryReceived {
						return apierrors.NewConflict(v1alpha1.Resource("codehostdeliveries"), now.Name, errors.New("the delivery is not decided yet"))
					}
					now.Status = v1alpha1.CodeHostDeliveryStatus{Redeliveries: now.Status.Redeliveries, Replays: now.Status.Replays + 1, ReplayedBy: caller.GetName()}
					begin(now)
					return nil
				})
				if err == nil && !p.DryRun {
					o.Wake()
				}
				return out, err
			},
		}},
	}
}

// caused returns what a delivery caused, for people.
func caused(d *v1alpha1.CodeHostDelivery) any {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{len(d.Status.Tasks), "task"}, {int(d.Status.MonitorRunsQueued), "run"}, {len(d.Status.Commands), "command"}} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 "+c.what)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}
