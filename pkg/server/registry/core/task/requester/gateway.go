// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package requester

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// gatewayMarks returns the labels and annotations of a task that say which event of a gateway it answers, in order.
func gatewayMarks(t *v1alpha1.Task) (marks []*field.Path) {
	var names []string
	add := func(in string, of map[string]string) {
		for key := range of {
			if strings.HasPrefix(key, v1alpha1.GatewayPrefix) {
				names = append(names, in+"\x00"+key)
			}
		}
	}
	add("annotations", t.Annotations)
	add("labels", t.Labels)
	slices.Sort(names)
	for _, n := range names {
		in, key, _ := strings.Cut(n, "\x00")
		marks = append(marks, field.NewPath("metadata", in).Key(key))
	}
	return marks
}

// sourceGateway is where the identity of a sender comes from.
const sourceGateway = "gateway"

// movable are the marks that a controller sets later, because they are not known before.
var movable = []string{v1alpha1.AnnotationGatewayDelivery, v1alpha1.AnnotationGatewayMessage}

// validateMarks refuses that a task gets other marks than it has.
func validateMarks(t, old *v1alpha1.Task) (errs field.ErrorList) {
	for _, m := range []struct {
		in      string
		is, was map[string]string
	}{{"labels", t.Labels, old.Labels}, {"annotations", t.Annotations, old.Annotations}} {
		keys := slices.Sorted(maps.Keys(m.is))
		for key := range m.was {
			if _, kept := m.is[key]; !kept {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			if strings.HasPrefix(key, v1alpha1.GatewayPrefix) && !slices.Contains(movable, key) && rule.Changed(m.is, m.was, key) {
				errs = append(errs, field.Forbidden(field.NewPath("metadata", m.in).Key(key), "is set by the server"))
			}
		}
	}
	return errs
}

// eventOf returns for whom a task is that answers an event of a gateway: for the sender, as the record of the event says. Only a controller
// makes such a task, and only the one that belongs to the event.
func (r Requesters) eventOf(ctx context.Context, t *v1alpha1.Task, marks []*field.Path) (*stamp, field.ErrorList, error) {
	if ok, err := guard.MayControl(ctx, r.Authorizer, request.NamespaceValue(ctx)); !ok || err != nil {
		return nil, field.ErrorList{field.Forbidden(marks[0], "is set by the server, for tasks that answer events of gateways")}, err
	}
	path := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationGatewayEvent)
	name := t.Annotations[v1alpha1.AnnotationGatewayEvent]
	if r.Event == nil {
		return nil, nil, apierrors.NewServiceUnavailable("this server has no gateways")
	}
	e, err := r.Event(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, field.ErrorList{field.NotFound(path, name)}, nil
	case err != nil:
		return nil, nil, err
	case t.Name != gateway.TaskName(e.UID, e.Status.Replays):
		return nil, field.ErrorList{field.Invalid(path, name, "the task has not the name of the one that answers this event")}, nil
	case e.Status.State != v1alpha1.GatewayEventDispatching:
		return nil, field.ErrorList{field.Invalid(path, name, "the event is "+string(e.Status.State)+", not Dispatching")}, nil
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[v1alpha1.AnnotationGatewayName] = e.Spec.GatewayName
	t.Annotations[v1alpha1.AnnotationRequestedBy] = gateway.Issuer(e.Namespace, &e.Spec.GatewayOwner) + "#" + e.Spec.SenderID
	return &stamp{requester: gateway.Requester(e), profile: sourceGateway, source: sourceGateway}, nil, nil
}
